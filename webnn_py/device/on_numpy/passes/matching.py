"""Looking back from a node at what its operands were made by."""

from __future__ import annotations

from webnn_py.graph import Node, Output, Value


class UnlikeError(Exception):
    """A graph is not of the form that is looked for."""


class Matched:
    """The nodes of a form, as they are found."""

    def __init__(self) -> None:
        self._nodes: dict[Node, None] = {}

    @property
    def drawn(self) -> tuple[int, ...]:
        """The places of all operators that they compute."""
        return tuple(sorted({place for node in self._nodes for place in node.drawn}))

    def include(self, node: Node) -> Node:
        """Count a node among them."""
        self._nodes[node] = None
        return node

    def before(self, value: object, operator: str) -> Node:
        """The node that a value comes from.

        Raises:
            UnlikeError: it comes from no node of this operator.
        """
        if not isinstance(value, Output) or value.node.operator.name != operator:
            raise UnlikeError
        return self.include(value.node)

    def through_reshapes(self, value: object) -> Value:
        """What reshapes of it, if any, give in another shape."""
        while isinstance(value, Output) and value.node.operator.name == "reshape":
            value = self.include(value.node).operands["input"]
        return single(value)


def single(operand: object) -> Value:
    """An operand that is a value.

    Raises:
        UnlikeError: it is absent, or a sequence.
    """
    if not isinstance(operand, Value):
        raise UnlikeError
    return operand


def check(condition: object) -> None:
    """Check what the form demands.

    Raises:
        UnlikeError: it is not so.
    """
    if not condition:
        raise UnlikeError
