"""A writer of kernels, which declares bindings and workgroup memory on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from webnn_py.devices.wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.devices.wgpu.codegen.entry_point import grid
from webnn_py.devices.wgpu.codegen.module import Bindings, bound_kernel
from webnn_py.devices.wgpu.codegen.reduction.operands import (
    KernelOperand,
    StoreTarget,
    SummedOperand,
    TensorOperand,
)
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows, RowsView, VectorAxis
from webnn_py.devices.wgpu.records.element import WIDTH, Element
from webnn_py.devices.wgpu.records.lowering import Lowering

ElementReader = Callable[[str, str], list[str]]
"""(the index of a row or of a vec4 of rows, that of an element or vec4 in the row) → the names of the elements."""

FIRST_FRESH: Final = 100
"""The first number of arrays that are used once."""


class KernelWriter:
    """The bindings, workgroup arrays and statements of a kernel.

    Attributes:
        reads: the bindings of its operands.
        writes: the bindings of its targets.
    """

    def __init__(self, lowering: Lowering, label: str) -> None:
        self.features = lowering.features
        self._lowering = lowering
        self._label = label
        self.reads = Bindings("in")
        self.writes = Bindings("out")
        self._shared: dict[str, tuple[str, int]] = {}
        self._functions: dict[ElementwiseFunction, str] = {}
        self._names = 0
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Append statements."""
        self.lines.extend(lines)

    def let(self, expression: str, stem: str = "v") -> str:
        """Declare an immutable variable."""
        return self._declare("let", expression, stem)

    def var(self, expression: str, stem: str = "a") -> str:
        """Declare a mutable variable."""
        return self._declare("var", expression, stem)

    def _declare(self, how: str, expression: str, stem: str) -> str:
        self._names += 1
        self.add(f"{how} {stem}{self._names} = {expression};")
        return f"{stem}{self._names}"

    def shared(self, kind: str, number: int, size: int) -> str:
        """Return the name of an array in workgroup memory; repeated calls share it and enlarge it as needed."""
        name = f"shared_{kind}_{number}"
        self._shared[name] = kind, max(size, self._shared.get(name, (kind, 0))[1])
        return name

    def fresh(self, kind: str, size: int) -> str:
        """Return the name of an array in workgroup memory that is not shared."""
        return self.shared(kind, len(self._shared) + FIRST_FRESH, size)

    def is_shared(self, kind: str, number: int) -> bool:
        """Return whether this array has been used, so that invocations may still be reading it."""
        return f"shared_{kind}_{number}" in self._shared

    def reader(self, source: KernelOperand, rows: ReductionRows, vector: VectorAxis) -> ElementReader:
        """Return the function that loads or computes the elements of units of an operand.

        Args:
            source: the operand.
            rows: its rows.
            vector: the axis of the kernel's vec4s, whatever the operand's layout.
        """
        if isinstance(source, TensorOperand):
            view = rows.view(source.layout)
            return lambda output, position: self.load(source, view, vector, output, position)
        if isinstance(source, str):
            return lambda _output, _position: [source] * (1 if vector == "none" else WIDTH)
        if isinstance(source, SummedOperand):
            parts = [self.reader(part, rows, vector) for part in source.parts]
            return lambda *at: self._add_up(source.element, [read(*at) for read in parts])
        readers = [self.reader(term, rows, vector) for term in source.terms]
        return lambda *at: self._call(source.fused, [read(*at) for read in readers])

    def read_flat(
        self, source: KernelOperand, shape: tuple[int, ...], vector: VectorAxis, places: Sequence[str]
    ) -> list[str]:
        """Load the elements or vec4s of an operand at these row-major indices."""
        read = self.reader(source, ReductionRows(shape, ()), vector)
        return [name for place in places for name in read(place, "0u")]

    def stored(self, target: StoreTarget, values: Sequence[str], terms: Sequence[Sequence[str]]) -> list[str]:
        """Return the values to store for computed elements, after the target's epilogue.

        Args:
            target: the target.
            values: expressions for the elements.
            terms: for each operand of the epilogue, the corresponding elements.
        """
        if target.epilogue is None:
            return list(values)
        narrowed = [self.let(target.epilogue.computed.narrow(value)) for value in values]
        return self._call(target.epilogue.fused, [narrowed, *terms])

    def _add_up(self, element: Element, parts: Sequence[Sequence[str]]) -> list[str]:
        """Add up the partial sums of each element."""
        return [self.let(element.narrow(" + ".join(items))) for items in zip(*parts, strict=True)]

    def _call(self, fused: ElementwiseFunction, columns: Sequence[Sequence[str]]) -> list[str]:
        """Apply fused nodes to each of some elements, given a column of elements for each parameter."""
        name = self._functions.setdefault(fused, f"chain{len(self._functions)}")
        return [self.let(f"{name}({', '.join(items)})") for items in zip(*columns, strict=True)]

    def load(self, operand: TensorOperand, view: RowsView, vector: VectorAxis, output: str, position: str) -> list[str]:
        """Load the elements of a unit: a single element, or a vec4 along ``vector``.

        Args:
            operand: the operand.
            view: its rows.
            vector: the axis of the kernel's vec4s, whatever the operand's layout.
            output: the index of the row, or of a vec4 of rows.
            position: the index of the element or vec4 in its row.
        """
        if vector == "none" or view.is_one(vector):
            places = [output, position]
            if vector != "none":
                places[vector == "along"] = f"({places[vector == 'along']} * {WIDTH}u)"
            load = operand.element.load(
                self.reads.name(operand.buffer, operand.element.one), view.index(places[0], places[1])
            )
            return [self.let(load)] * (1 if vector == "none" else WIDTH)
        vec4s = view.vec4s(vector)
        if vec4s is not None:
            buffer = self.reads.name(operand.buffer, operand.element.vec4)
            vec4 = self.let(f"{buffer}[{vec4s.index(output, position)}]", "four")
            names = [self.let(value) for value in operand.element.unpack(vec4)]
            return names[::-1] if vec4s.backwards else names
        buffer = self.reads.name(operand.buffer, operand.element.one)
        return [
            self.let(operand.element.load(buffer, view.index(*place)))
            for place in self._places_of_vec4(vector, output, position)
        ]

    def _places_of_vec4(self, vector: VectorAxis, output: str, position: str) -> list[tuple[str, str]]:
        if vector == "along":
            return [(output, self.let(f"{position} * {WIDTH}u + {component}u", "at")) for component in range(WIDTH)]
        return [(self.let(f"{output} * {WIDTH}u + {component}u", "at"), position) for component in range(WIDTH)]

    def store(
        self, target: StoreTarget, view: RowsView, vector: VectorAxis, output: str, position: str, values: Sequence[str]
    ) -> None:
        """Store a unit: a single element, or a whole vec4."""
        vec4s = view.vec4s(vector)
        if vec4s is not None:
            values = values[::-1] if vec4s.backwards else values
            buffer = self.writes.name(target.buffer, target.element.vec4)
            self.add(f"{buffer}[{vec4s.index(output, position)}] = {target.element.pack(list(values))};")
            return
        buffer = self.writes.name(target.buffer, target.element.one)
        self.add(f"{buffer}[{view.index(output, position)}] = {store_expression(target.element, values[0])};")

    def emit(self, workgroup: int, groups: int, depth: int = 1) -> None:
        """Emit the kernel with at least ``groups`` × ``depth`` workgroups.

        In the statements, ``group`` and ``depth`` are the indices of the workgroup, and ``t`` that of the invocation.
        """
        columns, rows, _ = grid(groups)
        builtins = {"workgroup_id": "group_id: vec3<u32>", "local_invocation_index": "t: u32"}
        if any("subgroup_invocation_id" in line for line in self.lines):
            builtins["subgroup_invocation_id"] = "subgroup_invocation_id: u32"
        parameters = ", ".join(f"@builtin({name}) {declared}" for name, declared in builtins.items())
        main = "\n  ".join(
            [
                f"@compute @workgroup_size({workgroup})\nfn main({parameters}) {{",
                f"let group = group_id.x + group_id.y * {columns}u;" if rows > 1 else "let group = group_id.x;",
                "let depth = group_id.z;",
                *self.lines,
            ]
        )
        shared = [f"var<workgroup> {name}: array<{kind}, {size}>;" for name, (kind, size) in self._shared.items()]
        functions = [fused.function(name) for fused, name in self._functions.items()]
        parts = [*shared, *functions, f"{main}\n}}\n"]
        self._lowering.emit(bound_kernel(self._label, self.reads, self.writes, parts, (columns, rows, depth)))


def store_expression(element: Element, value: str) -> str:
    """Return a computed value in the storage type of a data type that is not packed."""
    return f"f16({value})" if element.one == "f16" else value
