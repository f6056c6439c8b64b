"""Reshapes that passes draw, and the axes before and after a reshape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Node, Value
from webnn_py.core.operators import movement


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
