"""Reshapes: what acts as one, the value that a chain of them starts from, those that passes draw, and their axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Node, Output, Value
from webnn_py.core.operators import movement


def origin_of(value: Value) -> Value:
    """Return the value that a chain of reshapes starts from; the value itself where it is no reshape."""
    while isinstance(value, Output) and acts_as_reshape(value.node):
        value = value.node.inputs[0]
    return value


def acts_as_reshape(node: Node) -> bool:
    """Return whether a node is a reshape, or a transpose or a reduction that acts as one."""
    operator = node.operator
    if operator is movement.reshape:
        return True
    if operator is movement.transpose:
        order = node.options["permutation"]
        return _keeps_order(node.inputs[0].descriptor.shape, None if order is None else tuple(order))
    return operator.keeps_one_element and node.operand("input").element_count == node.outputs[0].element_count


@lru_cache(1024)  # most calls repeat earlier arguments
def _keeps_order(shape: tuple[int, ...], permutation: tuple[int, ...] | None) -> bool:
    """Return whether a transpose keeps the order of the axes that are longer than 1."""
    order = permutation or range(len(shape))[::-1]
    long = [axis for axis in order if shape[axis] > 1]
    return long == sorted(long)


def long(shape: Sequence[int]) -> list[int]:
    """Return the sizes of the axes that are longer than 1."""
    return [size for size in shape if size > 1]


def places(before: Sequence[int], after: Sequence[int], axis: int) -> set[int]:
    """Return the axes of the shape ``after`` that an axis of ``before``, of as many elements, becomes in a reshape."""
    first = math.prod(before[:axis])
    return {place for place, size in enumerate(after) if size == before[axis] and math.prod(after[:place]) == first}


def reshaped(value: Value, shape: tuple[int, ...], like: Node) -> Value:
    """Return a value in a shape, with the label of a node; itself where it has that shape."""
    return value if value.descriptor.shape == shape else reshape(value, shape, like).results[0]


def reshape(value: Value, shape: tuple[int, ...], like: Node) -> Node:
    """Return the reshape of a value, with the label of a node."""
    data_type, output, options = value.descriptor.data_type, like.outputs[0], {"new_shape": shape}
    if output.shape != shape or output.data_type != data_type:  # asked first, since to make one takes longer
        output = MLOperandDescriptor(data_type, shape)
    return Node(movement.reshape, {"input": value}, options, (output,), like.label, like.drawn)
