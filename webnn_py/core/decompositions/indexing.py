"""Gather and scatter, by one index into the flat input."""

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from webnn_py.core.decompositions.common import along, cut, decomposition, number
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand


def counted_from_start(builder: Builder, indices: MLOperand, size: int) -> MLOperand:
    """Return indices along an axis of that size, of which negative ones count from the end."""
    if indices.data_type.startswith("uint"):
        return indices
    from_end = builder.add(indices, number(builder, size, indices))
    return builder.where(builder.lesser(indices, number(builder, 0, indices)), from_end, indices)


def _in_range(builder: Builder, indices: MLOperand, size: int) -> MLOperand:
    """Indices along an axis of that size as int32: negative ones count from the end, others are clamped."""
    within = builder.clamp(counted_from_start(builder, indices, size), min_value=0, max_value=size - 1)
    return builder.cast(within, "int32")


def _strides(shape: Sequence[int]) -> list[int]:
    """Return the row-major stride of each axis."""
    return list(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else []


def _places(builder: Builder, input: MLOperand, indices: MLOperand, axis: int) -> MLOperand:
    """Return the flat position of each index, with its own place along the other axes: [indices]."""
    strides = _strides(input.shape)
    places = builder.mul(
        _in_range(builder, indices, input.shape[axis]), builder.constant(strides[axis], data_type="int32")
    )
    for other, (size, stride) in enumerate(zip(indices.shape, strides, strict=True)):
        if other != axis and size > 1:
            steps = [stride * index for index in range(size)]
            places = builder.add(places, along(builder, steps, other, indices.rank))
    return builder.reshape(places, [math.prod(indices.shape)])


@decomposition
def gather_elements(builder: Builder, input: MLOperand, indices: MLOperand, *, axis: int = 0) -> MLOperand:
    flat = builder.reshape(input, [math.prod(input.shape)])
    return builder.reshape(builder.gather(flat, _places(builder, input, indices, axis)), indices.shape)


@decomposition
def gather_nd(builder: Builder, input: MLOperand, indices: MLOperand) -> MLOperand:
    length, count = indices.shape[-1], math.prod(indices.shape[:-1])
    leading, rest = input.shape[:length], input.shape[length:]
    coordinates = builder.reshape(indices, [count, length])
    places = builder.constant(0, data_type="int32")
    for axis, (size, stride) in enumerate(zip(leading, _strides(leading), strict=True)):
        of_axis = _in_range(builder, cut(builder, coordinates, 1, axis, axis + 1), size)
        places = builder.add(places, builder.mul(of_axis, builder.constant(stride, data_type="int32")))
    slices = builder.reshape(input, [math.prod(leading), math.prod(rest)])
    taken = builder.gather(slices, builder.reshape(places, [count]))
    return builder.reshape(taken, [*indices.shape[:-1], *rest])


@decomposition
def scatter_elements(
    builder: Builder, input: MLOperand, indices: MLOperand, updates: MLOperand, *, axis: int = 0
) -> MLOperand:
    places = _places(builder, input, indices, axis)
    count = math.prod(indices.shape)
    flat, flat_updates = builder.reshape(input, [math.prod(input.shape)]), builder.reshape(updates, [count])
    return builder.reshape(builder.scatter_nd(flat, builder.reshape(places, [count, 1]), flat_updates), input.shape)
