"""Writing one kernel: what it binds and shares is declared where the text first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from webnn_py.device.on_wgpu.codegen.elementwise import ElementwiseFunction
from webnn_py.device.on_wgpu.codegen.entry_point import grid
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.codegen.reduction.operands import (
    KernelOperand,
    ScalarOperand,
    StoreTarget,
    SummedOperand,
    TensorOperand,
)
from webnn_py.device.on_wgpu.codegen.reduction.rows import ReductionRows, RowsView, VectorAxis
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering

ElementReader = Callable[[str, str], list[str]]
"""(the number of a row, or of four; the number of an element in it, or of four) → names of the elements there."""

FIRST_FRESH: Final = 100
"""The numbers of arrays that are used once begin here."""


class KernelWriter:
    """The declarations and the statements of a kernel."""

    def __init__(self, lowering: Lowering, label: str) -> None:
        self.features = lowering.features
        self._lowering = lowering
        self._label = label
        self._reads: dict[tuple[Buffer, str], str] = {}
        self._writes: dict[tuple[Buffer, str], str] = {}
        self._shared: dict[str, tuple[str, int]] = {}
        self._functions: dict[ElementwiseFunction, str] = {}
        self._names = 0
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Append statements."""
        self.lines.extend(lines)

    def name(self, stem: str = "v") -> str:
        """A name that nothing else has."""
        self._names += 1
        return f"{stem}{self._names}"

    def let(self, expression: str, stem: str = "v") -> str:
        """Name the value of an expression."""
        name = self.name(stem)
        self.add(f"let {name} = {expression};")
        return name

    def var(self, expression: str, stem: str = "a") -> str:
        """Name a variable that begins as an expression."""
        name = self.name(stem)
        self.add(f"var {name} = {expression};")
        return name

    def reads(self, operand: TensorOperand, kind: str) -> str:
        """The name of an operand's buffer, bound as an array of ``kind``."""
        return self._reads.setdefault((operand.buffer, kind), f"in{len(self._reads)}")

    def writes(self, target: StoreTarget, kind: str) -> str:
        """The name of a target's buffer, bound as an array of ``kind``."""
        return self._writes.setdefault((target.buffer, kind), f"out{len(self._writes)}")

    def shared(self, kind: str, number: int, size: int) -> str:
        """The name of a workgroup's array; asked for again, it is the same one, and large enough for both."""
        name = f"shared_{kind}_{number}"
        self._shared[name] = kind, max(size, self._shared.get(name, (kind, 0))[1])
        return name

    def fresh(self, kind: str, size: int) -> str:
        """The name of a workgroup's array that nothing else uses."""
        return self.shared(kind, len(self._shared) + FIRST_FRESH, size)

    def is_shared(self, kind: str, number: int) -> bool:
        """Whether the text has used this array before, so that invocations may still be reading it."""
        return f"shared_{kind}_{number}" in self._shared

    def reader(self, source: KernelOperand, rows: ReductionRows, vector: VectorAxis) -> ElementReader:
        """How to name the elements of units of an operand, or to compute them.

        Args:
            source: what to read.
            rows: its shape, and which of its axes the outputs keep.
            vector: which way four neighbours lie in the kernel, whether or not they lie so in memory.
        """
        if isinstance(source, TensorOperand):
            view = rows.view(source.layout)
            return lambda output, position: self.load(source, view, vector, output, position)
        if isinstance(source, ScalarOperand):
            return lambda _output, _position: [source.text] * (1 if vector == "none" else WIDTH)
        if isinstance(source, SummedOperand):
            parts = [self.reader(part, rows, vector) for part in source.parts]
            return lambda *at: self._add_up(source.element, [read(*at) for read in parts])
        readers = [self.reader(term, rows, vector) for term in source.terms]
        return lambda *at: self._call(source.fused, [read(*at) for read in readers])

    def read_flat(
        self, source: KernelOperand, shape: tuple[int, ...], vector: VectorAxis, places: Sequence[str]
    ) -> list[str]:
        """Name the elements of an operand of a shape that have these numbers, or are the vec4s of these numbers."""
        read = self.reader(source, ReductionRows(shape, ()), vector)
        return [name for place in places for name in read(place, "0u")]

    def stored(self, target: StoreTarget, values: Sequence[str], beside: Sequence[Sequence[str]]) -> list[str]:
        """Name what is to be stored for computed elements: they, or what the target's epilogue makes of them.

        Args:
            target: where they go.
            values: expressions for the elements.
            beside: the elements of each of the target's terms that lie where these go.
        """
        if target.epilogue is None:
            return list(values)
        narrowed = [self.let(target.epilogue.computed.narrow(value)) for value in values]
        return self._call(target.epilogue.fused, [narrowed, *beside])

    def _add_up(self, element: Element, parts: Sequence[Sequence[str]]) -> list[str]:
        """Name the sums of elements, part by part."""
        return [self.let(element.narrow(" + ".join(items))) for items in zip(*parts, strict=True)]

    def _call(self, fused: ElementwiseFunction, columns: Sequence[Sequence[str]]) -> list[str]:
        """Name what fused nodes make of each of some elements, given what it reads, column by column."""
        name = self._functions.setdefault(fused, f"chain{len(self._functions)}")
        return [self.let(f"{name}({', '.join(items)})") for items in zip(*columns, strict=True)]

    def load(self, operand: TensorOperand, view: RowsView, vector: VectorAxis, output: str, position: str) -> list[str]:
        """Name the elements of a unit: the one, or four that are ``position`` or ``output`` times four and on.

        Args:
            operand: what to read.
            view: its rows.
            vector: which way four neighbours lie in the kernel, whether or not they lie so in memory.
            output: the number of the row, or of four rows.
            position: the number of the element in its row, or of four elements.
        """
        if vector == "none" or view.is_one(vector):
            places = [output, position]
            if vector != "none":
                places[vector == "along"] = f"({places[vector == 'along']} * {WIDTH}u)"
            load = operand.element.load(self.reads(operand, operand.element.one), view.index(places[0], places[1]))
            return [self.let(load)] * (1 if vector == "none" else WIDTH)
        vec4s = view.vec4s(vector)
        if vec4s is not None:
            buffer = self.reads(operand, operand.element.vec4)
            vec4 = self.let(f"{buffer}[{vec4s.index(output, position)}]", "four")
            names = [self.let(value) for value in operand.element.unpack(vec4)]
            return names[::-1] if vec4s.backwards else names
        buffer = self.reads(operand, operand.element.one)
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
        """Write a unit: one element, or four that lie whole."""
        vec4s = view.vec4s(vector)
        if vec4s is not None:
            values = values[::-1] if vec4s.backwards else values
            buffer = self.writes(target, target.element.vec4)
            self.add(f"{buffer}[{vec4s.index(output, position)}] = {target.element.pack(list(values))};")
            return
        buffer = self.writes(target, target.element.one)
        self.add(f"{buffer}[{view.index(output, position)}] = {store_expression(target.element, values[0])};")

    def emit(self, workgroup: int, groups: int, depth: int = 1) -> None:
        """Make the kernel of ``groups`` times ``depth`` workgroups and add it to the lowering.

        The statements know the number ``group`` of their workgroup, its ``depth``, and the number ``t`` of the
        invocation in it. There may be more workgroups than asked for, with higher numbers.
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
        declared = declare(
            [(buffer, name, kind) for (buffer, kind), name in self._reads.items()],
            [(buffer, name, kind) for (buffer, kind), name in self._writes.items()],
        )
        shared = [f"var<workgroup> {name}: array<{kind}, {size}>;" for name, (kind, size) in self._shared.items()]
        functions = [fused.function(name) for fused, name in self._functions.items()]
        source = module(declared, *shared, *functions, f"{main}\n}}\n")
        buffers = [tuple(dict.fromkeys(names)) for names in (self._reads, self._writes)]
        reads, writes = (tuple(buffer for buffer, _ in bound) for bound in buffers)
        self._lowering.emit(Kernel(self._label, source, reads, writes, (columns, rows, depth)))


def store_expression(element: Element, value: str) -> str:
    """A value of the computing type as the smallest piece of a buffer, for data types that are not packed."""
    return f"f16({value})" if element.one == "f16" else value
