"""Between which integers values lie whatever a graph is given: indices that need not be cut to their range."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.onnx_export.model_export import ReadConstant
from webnn_py.operators.casting import INTEGER_RANGES

MOST_CONSTANTS: Final = 2**18
"""Elements of constants that are looked at."""

ONE_OF: Final[Mapping[str, slice]] = {
    **dict.fromkeys(("cast", "gather", "gather_elements", "gather_nd"), slice(1)),
    **dict.fromkeys(
        ("concat", "expand", "identity", "max", "min", "reshape", "reverse", "slice", "split", "tile", "transpose"),
        slice(None),
    ),
    "where": slice(1, None),
}
"""Operators whose elements are those of some of their operands, with which."""

TRUTHS: Final = frozenset(
    {
        "equal",
        "greater",
        "greater_or_equal",
        "is_infinite",
        "is_nan",
        "lesser",
        "lesser_or_equal",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "not_equal",
    }
)
"""Operators whose elements are 0 or 1."""

INDEXED: Final[Mapping[str, Callable[[Node], int]]] = {
    "gather": lambda node: node.operand("input").shape[node.options["axis"]],
    "gather_elements": lambda node: node.operand("input").shape[node.options["axis"]],
    "gather_nd": lambda node: min(node.operand("input").shape[: node.operand("indices").shape[-1]]),
}
"""Of how many elements the axis is along which an operator takes some; the shortest of several."""

COMBINED: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "mul": operator.mul,
    "sub": operator.sub,
}
"""Operators that are at their ends where their operands are."""

Range = tuple[int, int]
"""The lowest and the highest of some integers."""


def within(graph: Graph, contents: ReadConstant) -> frozenset[Node]:
    """The operators whose indices are computed by the graph, and are never out of range.

    Args:
        graph: the graph.
        contents: gives the values of constants.
    """
    if not any(node.operator.name in INDEXED and _are_computed(node) for node in graph.nodes):
        return frozenset()
    ranges = _Ranges(contents)
    found = set()
    for node in graph.nodes:
        if node.operator.name in INDEXED and _are_computed(node):
            indices, size = ranges.of(node.operands["indices"]), INDEXED[node.operator.name](node)
            if indices is not None and -size <= indices[0] and indices[1] < size:
                found.add(node)
        ranges.add(node)
    return frozenset(found)


def _are_computed(node: Node) -> bool:
    """Whether an operator makes the indices of another."""
    return isinstance(node.operands["indices"], Output)


class _Ranges:
    """The ranges of values of the nodes that were added.

    Args:
        contents: gives the values of constants.
    """

    def __init__(self, contents: ReadConstant) -> None:
        self._contents = contents
        self._found: dict[Value, Range | None] = {}
        self._left = MOST_CONSTANTS

    def of(self, value: Value | tuple[Value, ...]) -> Range | None:
        """The range of a value; None where none is known."""
        assert isinstance(value, Value)  # noqa: S101 - asked of those only
        if value not in self._found and isinstance(value, Constant):
            self._found[value] = self._of_constant(value)
        return self._found.get(value)

    def add(self, node: Node) -> None:
        """Find those of a node's results."""
        data_type = node.outputs[0].data_type
        found = self._of(node) if data_type in INTEGER_RANGES else None
        if found is None:
            return
        lowest, highest = INTEGER_RANGES[data_type]
        if lowest <= found[0] and found[1] <= highest:  # nothing wraps around, or is cut
            self._found.update(dict.fromkeys(node.results, found))

    def _of(self, node: Node) -> Range | None:
        name = node.operator.name
        if name in TRUTHS:
            return 0, 1
        if name in {"arg_max", "arg_min"}:
            return 0, node.operand("input").shape[node.options["axis"]] - 1
        if name in ONE_OF:
            return self._union(node.inputs[ONE_OF[name]])
        if name in COMBINED:
            a, b = map(self.of, node.inputs)
            ends = [COMBINED[name](x, y) for x in a for y in b] if a is not None and b is not None else []
            return (min(ends), max(ends)) if ends else None
        return None

    def _union(self, values: Sequence[Value]) -> Range | None:
        ranges = [found for value in values if (found := self.of(value)) is not None]
        if len(ranges) != len(values):
            return None
        return min(lowest for lowest, _ in ranges), max(highest for _, highest in ranges)

    def _of_constant(self, value: Constant) -> Range | None:
        count = value.descriptor.element_count
        if value.descriptor.data_type not in INTEGER_RANGES or not 0 < count <= self._left:
            return None
        self._left -= count
        array = self._contents(value)
        return int(array.min()), int(array.max())
