"""A graph as boxes, wires between them, and frames around what became one kernel: what every kind of picture shows."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, Self

import attrs

from webnn_py.core.graph import Constant, Node, Output, Value
from webnn_py.core.message_text import in_brackets, shortened, visible
from webnn_py.pictures.drawn_graph import REMARKS, DrawnGraph, number_of, operands_of, options_given

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
    def from_graph(cls, drawn: DrawnGraph) -> Self:
        """Arrange what is known of a graph."""
        graph = drawn.graph
        keys: dict[Value, str] = {value: f"i{index}" for index, value in enumerate(graph.inputs.values())}
        boxes = [Box(keys[value], "input", _name(value.name), ()) for value in graph.inputs.values()]
        wires: list[Wire] = []

        def connect(value: Value, target: str, entry: int) -> None:
            source, port = keys.get(value, ""), 0
            if isinstance(value, Output):
                source, port = f"n{drawn.indices[value.node]}", value.index
            wires.append(Wire(source, port, target, entry, str(value.descriptor)))

        grouped = {index for members in drawn.groups for index in members}
        for index, node in enumerate(graph.nodes):
            remark = () if index in grouped else _remark(drawn, index)
            lines = (*_constants(node), *map(visible, options_given(node)), *remark)
            title = f"{node.operator.spec_name}{in_brackets(node.label)}"
            boxes.append(Box(f"n{index}", drawn.kind(index), shortened(title, LONGEST_NAME), lines))
            for entry, value in enumerate(value for value in node.inputs if not isinstance(value, Constant)):
                connect(value, f"n{index}", entry)
        for position, (name, value) in enumerate(graph.outputs.items()):
            boxes.append(Box(f"o{position}", "output", _name(name), ()))
            connect(value, f"o{position}", 0)
        return cls(tuple(boxes), tuple(wires), tuple(_frames(drawn)))


def _name(name: str) -> str:
    return visible(shortened(name, LONGEST_NAME))


def _constants(node: Node) -> Iterator[str]:
    for name, value in operands_of(node):
        if isinstance(value, Constant):
            number = number_of(value)
            yield f"{name} = {number}" if number else f"{name}: {value.descriptor}"


def _remark(drawn: DrawnGraph, index: int) -> Iterator[str]:
    """Yield what the device does with an operator that is in no frame; nothing where that is not known."""
    if drawn.plan is not None:
        kind = drawn.kind(index)
        yield _kernels(drawn, drawn.kernels[index]) if kind == "operator" else REMARKS[kind]


def _frames(drawn: DrawnGraph) -> Iterator[Frame]:
    """Yield the operators that are computed together."""
    for number, members in enumerate(drawn.groups):
        numbers = sorted({kernel for index in members for kernel in drawn.kernels[index]})
        yield Frame(f"k{number}", _kernels(drawn, numbers), tuple(f"n{index}" for index in members))


def _kernels(drawn: DrawnGraph, numbers: Sequence[int]) -> str:
    assert drawn.plan is not None  # noqa: S101 - without it no operator has kernels
    names = [shortened(visible(drawn.plan.kernels[number].name), LONGEST_NAME) for number in numbers[:MOST_KERNELS]]
    more = f", and {len(numbers) - MOST_KERNELS} more" if len(numbers) > MOST_KERNELS else ""
    word = "kernel" if len(numbers) == 1 else f"{len(numbers)} kernels"
    return f"{word}: {', '.join(names)}{more}"
