"""Nodes that move no element: reshapes, and what is like one."""

from __future__ import annotations

from typing import Final

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Node, Output, Value
from webnn_py.operators import movement

OF_ONE: Final = frozenset({"reduce_max", "reduce_mean", "reduce_min"})
"""Reductions that make of one element that element."""


def is_reshape(node: Node) -> bool:
    """Whether a node moves no element: a reshape, or what it makes of each element alone is that element."""
    if node.operator.name not in OF_ONE:
        return node.operator.name == "reshape"
    return node.operand("input").element_count == node.outputs[0].element_count


def origin_of(value: object) -> Value:
    """What a value is a reshape of, or itself."""
    assert isinstance(value, Value)  # noqa: S101 - for type checkers
    while isinstance(value, Output) and is_reshape(value.node):
        before = value.node.operands["input"]
        assert isinstance(before, Value)  # noqa: S101 - for type checkers
        value = before
    return value


def reshaped(value: Value, shape: tuple[int, ...], like: Node) -> Value:
    """A value in a shape, made in the place of a node; itself where it has that shape."""
    if value.descriptor.shape == shape:
        return value
    output, options = MLOperandDescriptor(value.descriptor.data_type, shape), {"new_shape": shape}
    return Node(movement.reshape, {"input": value}, options, (output,), like.label, like.drawn).results[0]
