"""Writing one kernel: what it binds and shares is declared where the text first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from webnn_py.device.on_wgpu.codegen.elementwise import Chain
from webnn_py.device.on_wgpu.codegen.entry_point import grid
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.codegen.reduction.operands import Input, Operand, Repeated, Target
from webnn_py.device.on_wgpu.codegen.reduction.rows import Lanes, Vector, View
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.lowering import Lowering

Reader = Callable[[str, str], list[str]]
"""(the number of a lane, or of four; the number of an element in it, or of four) → names of the elements there."""

FIRST_FRESH: Final = 100
"""The numbers of arrays that are used once begin here."""


class Writer:
    """The declarations and the statements of a kernel."""

    def __init__(self, lowering: Lowering, label: str) -> None:
        self.features = lowering.features
        self._lowering = lowering
        self._label = label
        self._reads: dict[tuple[Buffer, str], str] = {}
        self._writes: dict[tuple[Buffer, str], str] = {}
        self._shared: dict[str, tuple[str, int]] = {}
        self._chains: dict[Chain, str] = {}
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

    def reads(self, operand: Operand, kind: str) -> str:
        """The name of an operand's buffer, bound as an array of ``kind``."""
        return self._reads.setdefault((operand.buffer, kind), f"in{len(self._reads)}")

    def writes(self, target: Target, kind: str) -> str:
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

    def reader(self, source: Input, lanes: Lanes, vector: Vector) -> Reader:
        """How to name the elements of units of an operand, or to compute them.

        Args:
            source: what to read.
            lanes: its shape, and which of its axes the outputs keep.
            vector: which way four neighbours lie in the kernel, whether or not they lie so in memory.
        """
        if isinstance(source, Operand):
            view = lanes.view(source.layout)
            return lambda output, position: self.load(source, view, vector, output, position)
        if isinstance(source, Repeated):
            return lambda _output, _position: [source.text] * (1 if vector == "none" else WIDTH)
        readers = [self.reader(term, lanes, vector) for term in source.terms]
        return lambda *at: self._call(source.chain, [read(*at) for read in readers])

    def read_flat(self, source: Input, shape: tuple[int, ...], vector: Vector, places: Sequence[str]) -> list[str]:
        """Name the elements of an operand of a shape that have these numbers, or are the fours of these numbers."""
        read = self.reader(source, Lanes(shape, ()), vector)
        return [name for place in places for name in read(place, "0u")]

    def stored(self, target: Target, values: Sequence[str], beside: Sequence[Sequence[str]]) -> list[str]:
        """Name what is to be stored for computed elements: they, or what the target's chain makes of them.

        Args:
            target: where they go.
            values: expressions for the elements.
            beside: the elements of each of the target's terms that lie where these go.
        """
        if target.behind is None:
            return list(values)
        narrowed = [self.let(target.behind.computed.narrow(value)) for value in values]
        return self._call(target.behind.chain, [narrowed, *beside])

    def _call(self, chain: Chain, columns: Sequence[Sequence[str]]) -> list[str]:
        """Name what a chain makes of each of some elements, given what it reads, column by column."""
        name = self._chains.setdefault(chain, f"chain{len(self._chains)}")
        return [self.let(f"{name}({', '.join(items)})") for items in zip(*columns, strict=True)]

    def load(self, operand: Operand, view: View, vector: Vector, output: str, position: str) -> list[str]:
        """Name the elements of a unit: the one, or four that are ``position`` or ``output`` times four and on.

        Args:
            operand: what to read.
            view: its lanes.
            vector: which way four neighbours lie in the kernel, whether or not they lie so in memory.
            output: the number of the lane, or of four lanes.
            position: the number of the element in its lane, or of four elements.
        """
        if vector == "none" or view.is_one(vector):
            places = [output, position]
            if vector != "none":
                places[vector == "along"] = f"({places[vector == 'along']} * {WIDTH}u)"
            load = operand.element.load(self.reads(operand, operand.element.one), view.index(places[0], places[1]))
            return [self.let(load)] * (1 if vector == "none" else WIDTH)
        fours = view.fours(vector)
        if fours is not None:
            buffer = self.reads(operand, operand.element.four)
            four = self.let(f"{buffer}[{fours.index(output, position)}]", "four")
            names = [self.let(value) for value in operand.element.unpack(four)]
            return names[::-1] if fours.backwards else names
        buffer = self.reads(operand, operand.element.one)
        return [
            self.let(operand.element.load(buffer, view.index(*lane))) for lane in self._lanes(vector, output, position)
        ]

    def _lanes(self, vector: Vector, output: str, position: str) -> list[tuple[str, str]]:
        if vector == "along":
            return [(output, self.let(f"{position} * {WIDTH}u + {lane}u", "at")) for lane in range(WIDTH)]
        return [(self.let(f"{output} * {WIDTH}u + {lane}u", "at"), position) for lane in range(WIDTH)]

    def store(
        self, target: Target, view: View, vector: Vector, output: str, position: str, values: Sequence[str]
    ) -> None:
        """Write a unit: one element, or four that lie whole."""
        fours = view.fours(vector)
        if fours is not None:
            values = values[::-1] if fours.backwards else values
            buffer = self.writes(target, target.element.four)
            self.add(f"{buffer}[{fours.index(output, position)}] = {target.element.pack(list(values))};")
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
        chains = [chain.function(name) for chain, name in self._chains.items()]
        source = module(declared, *shared, *chains, f"{main}\n}}\n")
        buffers = [tuple(dict.fromkeys(names)) for names in (self._reads, self._writes)]
        reads, writes = (tuple(buffer for buffer, _ in bound) for bound in buffers)
        self._lowering.emit(Kernel(self._label, source, reads, writes, (columns, rows, depth)))


def store_expression(element: Element, value: str) -> str:
    """A value of the computing type as the smallest piece of a buffer, for data types that are not packed."""
    return f"f16({value})" if element.one == "f16" else value
