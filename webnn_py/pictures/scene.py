"""A graph as boxes, wires between them, and frames around what became one kernel: what every kind of picture shows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, Self

import attrs

from webnn_py.core.message_text import in_brackets, shortened, visible
from webnn_py.devices.compiled_plan import CompiledPlan
from webnn_py.pictures.description import DrawnOperator, DrawnValue, GraphDescription

LONGEST_NAME: Final = 60

MOST_KERNELS: Final = 2
"""The number of kernels that a frame names."""

Kind = Literal["input", "operator", "folded", "view", "output"]


@attrs.frozen
class Box:
    """A graph input, an operator or a graph output.

    Attributes:
        key: a word of letters and digits that no other box or frame has.
        kind: what it is; ``folded`` is an operator that was computed at build, ``view`` one without a kernel.
        title: the operator with its label, or the name of the input or output.
        lines: constants and options, and what the device does with it.
    """

    key: str
    kind: Kind
    title: str
    lines: tuple[str, ...]


@attrs.frozen
class Wire:
    """A value's way from where it comes to one that reads it.

    Attributes:
        source: the key of a box.
        port: which of its outputs.
        target: the key of a box.
        entry: which of the wires to it, counted from 0.
        text: data type and shape.
    """

    source: str
    port: int
    target: str
    entry: int
    text: str


@attrs.frozen
class Frame:
    """Operators that are computed together.

    Attributes:
        key: a word.
        title: the kernels.
        members: the keys of the operators.
    """

    key: str
    title: str
    members: tuple[str, ...]


@attrs.frozen
class Scene:
    """All of it; wires go from earlier boxes to later ones."""

    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    frames: tuple[Frame, ...]

    @classmethod
    def from_graph(cls, graph: GraphDescription, plan: CompiledPlan | None) -> Self:
        """Arrange what is known of a graph."""
        fates = Fates.from_graph(graph, plan)
        boxes = [Box(f"i{index}", "input", _name(graph.values[index].name), ()) for index in graph.inputs]
        wires: list[Wire] = []
        for index, operator in enumerate(graph.operators):
            constants = _constants(graph, operator)
            lines = (*constants, *map(visible, operator.options_given()), *fates.remark(index))
            title = f"{operator.operator.spec_name}{in_brackets(operator.label)}"
            boxes.append(Box(f"n{index}", fates.kind(index), shortened(title, LONGEST_NAME), lines))
            live = [number for _, number in operator.operands if graph.values[number].kind != "constant"]
            wires += [_wire(graph.values[number], number, f"n{index}", entry) for entry, number in enumerate(live)]
        for position, (name, number) in enumerate(graph.outputs):
            boxes.append(Box(f"o{position}", "output", _name(name), ()))
            wires.append(_wire(graph.values[number], number, f"o{position}", 0))
        return cls(tuple(boxes), tuple(wires), tuple(fates.frames()))


def _wire(value: DrawnValue, number: int, target: str, entry: int) -> Wire:
    source = f"i{number}" if value.kind == "input" else f"n{value.source}"
    return Wire(source, value.port, target, entry, str(value.descriptor))


def _name(name: str) -> str:
    return visible(shortened(name, LONGEST_NAME))


def _constants(graph: GraphDescription, operator: DrawnOperator) -> Iterator[str]:
    for name, number in operator.operands:
        value = graph.values[number]
        if value.kind == "constant":
            yield f"{name} = {value.name}" if value.name else f"{name}: {value.descriptor}"


@attrs.frozen
class Fates:
    """The role of each operator of a graph on a device.

    Attributes:
        plan: the device's plan; None where nothing is known.
        kernels: for each operator, the indices of the kernels that compute it.
        folded: the operators that were computed at build.
        groups: those that have kernels in common, directly or by others.
    """

    plan: CompiledPlan | None
    kernels: Mapping[int, tuple[int, ...]]
    folded: frozenset[int]
    groups: tuple[tuple[int, ...], ...]
    grouped: frozenset[int] = attrs.field(init=False)

    @grouped.default
    def _grouped(self) -> frozenset[int]:
        return frozenset(index for members in self.groups for index in members)

    @classmethod
    def from_graph(cls, graph: GraphDescription, plan: CompiledPlan | None) -> Self:
        """Look up what a plan says of the operators."""
        if plan is None:
            return cls(None, {}, frozenset(), ())
        indices = {operator.place: index for index, operator in enumerate(graph.operators)}
        kernels: dict[int, list[int]] = {index: [] for index in range(len(graph.operators))}
        for number, kernel in enumerate(plan.kernels):
            for place in kernel.operators:
                if place in indices:
                    kernels[indices[place]].append(number)
        folded = frozenset(indices[place] for place in plan.folded if place in indices)
        lasting = {index: tuple(numbers) for index, numbers in kernels.items() if index not in folded}
        groups = tuple(tuple(members) for members in _joined(lasting) if len(members) > 1)
        return cls(plan, {index: tuple(numbers) for index, numbers in kernels.items()}, folded, groups)

    def kind(self, index: int) -> Kind:
        """Return the kind of box for an operator."""
        if index in self.folded:
            return "folded"
        return "view" if self.plan is not None and not self.kernels[index] else "operator"

    def remark(self, index: int) -> Iterator[str]:
        """Further notes on an operator."""
        kind = self.kind(index)
        if kind == "folded":
            yield "computed at build"
        elif kind == "view":
            yield "no kernel: a view"
        elif self.plan is not None and index not in self.grouped:
            yield self._title(self.kernels[index])

    def frames(self) -> Iterator[Frame]:
        """Operators that are computed together."""
        for number, members in enumerate(self.groups):
            numbers = sorted({kernel for index in members for kernel in self.kernels[index]})
            yield Frame(f"k{number}", self._title(numbers), tuple(f"n{index}" for index in members))

    def _title(self, numbers: Sequence[int]) -> str:
        assert self.plan is not None  # noqa: S101 - without it no operator has kernels
        names = [shortened(visible(self.plan.kernels[number].name), LONGEST_NAME) for number in numbers[:MOST_KERNELS]]
        more = f", and {len(numbers) - MOST_KERNELS} more" if len(numbers) > MOST_KERNELS else ""
        word = "kernel" if len(numbers) == 1 else f"{len(numbers)} kernels"
        return f"{word}: {', '.join(names)}{more}"


def _joined(kernels: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the operators in groups that have kernels in common."""
    root = {index: index for index in kernels}

    def find(index: int) -> int:
        while root[index] != index:
            root[index] = index = root[root[index]]
        return index

    first: dict[int, int] = {}
    for index, numbers in kernels.items():
        for number in numbers:
            root[find(index)] = find(first.setdefault(number, index))
    groups: dict[int, list[int]] = {}
    for index, numbers in kernels.items():
        if numbers:
            groups.setdefault(find(index), []).append(index)
    return list(groups.values())
