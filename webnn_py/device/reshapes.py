"""Nodes that move no element: reshapes, and what is like one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Node, Output, Value
from webnn_py.operators import movement
from webnn_py.operators.declaration import Operator


def is_reshape(node: Node) -> bool:
    """Whether a node moves no element: a reshape, a transpose, or what makes of each element alone that element."""
    operator = node.operator
    if operator is movement.reshape:
        return True
    if operator is movement.transpose:
        order = node.options["permutation"]
        return _keeps_order(node.inputs[0].descriptor.shape, None if order is None else tuple(order))
    return keeps_one_element(operator) and node.operand("input").element_count == node.outputs[0].element_count


def keeps_one_element(operator: Operator[..., Any]) -> bool:
    """Return whether an operator is a reduction that makes of one element that element, as its maximum and mean are."""
    return operator.is_average and operator.category == "reduction"


@lru_cache(1024)  # it is asked for the same time and again
def _keeps_order(shape: tuple[int, ...], permutation: tuple[int, ...] | None) -> bool:
    """Whether the axes that are longer than 1 stay in their order when they are transposed."""
    order = permutation or range(len(shape))[::-1]
    long = [axis for axis in order if shape[axis] > 1]
    return long == sorted(long)


def origin_of(value: object) -> Value:
    """What a value is a reshape of, or itself."""
    assert isinstance(value, Value)  # noqa: S101 - for type checkers
    while isinstance(value, Output) and is_reshape(value.node):
        before = value.node.operands["input"]
        assert isinstance(before, Value)  # noqa: S101 - for type checkers
        value = before
    return value


def long(shape: Sequence[int]) -> list[int]:
    """The sizes of the axes that are longer than 1."""
    return [size for size in shape if size > 1]


def places(before: Sequence[int], after: Sequence[int], axis: int) -> set[int]:
    """The axes of one shape that are what an axis of another one of as many elements is."""
    first = math.prod(before[:axis])
    return {place for place, size in enumerate(after) if size == before[axis] and math.prod(after[:place]) == first}


def reshaped(value: Value, shape: tuple[int, ...], like: Node) -> Value:
    """A value in a shape, made in the place of a node; itself where it has that shape."""
    return value if value.descriptor.shape == shape else reshape(value, shape, like).results[0]


def reshape(value: Value, shape: tuple[int, ...], like: Node) -> Node:
    """The reshape of a value, in the place of a node."""
    data_type, output, options = value.descriptor.data_type, like.outputs[0], {"new_shape": shape}
    if output.shape != shape or output.data_type != data_type:  # asked first, since to make one takes longer
        output = MLOperandDescriptor(data_type, shape)
    return Node(movement.reshape, {"input": value}, options, (output,), like.label, like.drawn)
