"""Functions that graphs draw in several operators: what reading them in a graph has in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import attrs
import numpy as np

from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.rewriting import readers_of

Alone = Callable[[Node], Node | None]
"""What alone reads the result of a node; None where others do as well, or nothing does."""


@attrs.frozen
class DrawnFunction:
    """The operators of a function of x between which nothing else reads.

    Attributes:
        x: its operand.
        nodes: from the first that reads x to the one that gives the result.
    """

    x: Value
    nodes: tuple[Node, ...]

    @property
    def drawn(self) -> tuple[int, ...]:
        """The places of all its operators."""
        return tuple(sorted({place for node in self.nodes for place in node.drawn}))


class DrawnFunctions:
    """Those of a graph.

    Args:
        found: the functions.
    """

    def __init__(self, found: list[DrawnFunction]) -> None:
        self._first = {one.nodes[0]: one for one in found}
        self._others = {node for one in found for node in one.nodes[1:]}

    def replace(
        self, node: Node, current: Node, make: Callable[[DrawnFunction, Value], Value]
    ) -> Mapping[Value, Value] | None:
        """What takes the place of a node of one: what is made of a function and of what its operand is by now."""
        if node in self._others:
            return {}  # nothing reads it
        one = self._first.get(node)
        if one is None:
            return None
        return {one.nodes[-1].results[0]: make(one, current.inputs[node.inputs.index(one.x)])}


def alone_in(graph: Graph) -> Alone:
    """What tells what alone reads a node's result."""
    readers = readers_of(graph)

    def alone(node: Node) -> Node | None:
        found = readers[node.results[0]]
        return found[0] if len(found) == 1 else None

    return alone


def maker(value: Value, operator: str) -> Node | None:
    """The node that makes a value, if it is of an operator."""
    return value.node if isinstance(value, Output) and value.node.operator.name == operator else None


def following(reader: Node | None, operator: str, node: Node) -> Node | None:
    """What reads a node's result, if it is of an operator, and reads something else beside."""
    is_it = reader is not None and reader.operator.name == operator and other(reader, node) is not node.results[0]
    return reader if is_it else None


def other(reader: Node, node: Node) -> Value:
    """What an operator of two operands reads beside a node's result."""
    return beside(reader, node.results[0])


def beside(reader: Node, value: Value) -> Value:
    """What an operator of two operands reads beside a value."""
    a, b = reader.inputs
    return b if a is value else a


def is_number(value: Value, expected: float) -> bool:
    """Whether a value is a number, as far as onnxruntime asks for."""
    if (
        not isinstance(value, Constant)
        or not isinstance(value.data, np.ndarray)
        or value.descriptor.shape not in ((), (1,))
    ):
        return False
    return math.isclose(float(value.data.reshape(-1)[0]), expected, rel_tol=1e-6)
