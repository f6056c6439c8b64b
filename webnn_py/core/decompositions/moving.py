"""Movement, gather and scatter, and the blocks of quantization."""

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from webnn_py.core.decompositions.common import along, cut, decomposition, number, padded
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.movement import PaddingMode
from webnn_py.core.operators.operand import MLOperand


@decomposition
def split(builder: Builder, input: MLOperand, splits: int | Sequence[int], *, axis: int = 0) -> list[MLOperand]:
    sizes = [input.shape[axis] // splits] * splits if isinstance(splits, int) else splits
    ends = list(accumulate(sizes))
    return [cut(builder, input, axis, end - size, end) for end, size in zip(ends, sizes, strict=True)]


def picked(builder: Builder, input: MLOperand, axis: int, places: Sequence[int]) -> MLOperand:
    """Return the elements at some places of an axis."""
    return builder.gather(input, along(builder, places, 0, 1), axis=axis)


@decomposition
def pad(
    builder: Builder,
    input: MLOperand,
    beginning_padding: Sequence[int],
    ending_padding: Sequence[int],
    *,
    mode: PaddingMode = "constant",
    value: MLNumber = 0,
) -> MLOperand:
    result = input
    for axis, (begin, end) in enumerate(zip(beginning_padding, ending_padding, strict=True)):
        if mode == "constant":
            result = padded(builder, result, axis, begin, end, value)
        elif begin or end:
            last = input.shape[axis] - 1
            places = [min(max(place, 0), last) for place in range(-begin, last + 1 + end)]
            if mode == "reflection":
                places = [last - abs(last - abs(place)) for place in range(-begin, last + 1 + end)]
            result = picked(builder, result, axis, places)
    return result


@decomposition
def reverse(builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None) -> MLOperand:
    result = input
    for axis in range(input.rank) if axes is None else axes:
        if input.shape[axis] > 1:
            result = picked(builder, result, axis, range(input.shape[axis])[::-1])
    return result


@decomposition
def tile(builder: Builder, input: MLOperand, repetitions: Sequence[int]) -> MLOperand:
    result = input
    for axis, count in enumerate(repetitions):
        if count > 1:
            shape = result.shape
            outer, inner = math.prod(shape[:axis]), math.prod(shape[axis:])
            copies = builder.expand(builder.reshape(result, [outer, 1, inner]), [outer, count, inner])
            result = builder.reshape(copies, [*shape[:axis], count * shape[axis], *shape[axis + 1 :]])
    return result


@decomposition
def triangular(builder: Builder, input: MLOperand, *, upper: bool = True, diagonal: int = 0) -> MLOperand:
    height, width = input.shape[-2:]
    diagonal = min(max(diagonal, -height), width)  # one further keeps, or drops, no more
    rows = along(builder, [row + diagonal for row in range(height)], 0, 2)
    columns = along(builder, range(width), 1, 2)
    is_dropped = builder.lesser(columns, rows) if upper else builder.greater(columns, rows)
    return builder.where(is_dropped, number(builder, 0, input), input)


# --- gather and scatter ------------------------------------------------------------------------------------------


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


def blockwise_expand(builder: Builder, input: MLOperand, shape: Sequence[int]) -> MLOperand:
    """Repeat each element, so that it becomes a block, until the input has ``shape``."""
    result = input
    for axis, size in enumerate(shape):
        before, repeated, after = result.shape[:axis], result.shape[axis], result.shape[axis + 1 :]
        if size != repeated:
            outer, inner = math.prod(before), math.prod(after)
            elements = builder.reshape(result, [outer, repeated, 1, inner])
            blocks = builder.expand(elements, [outer, repeated, size // repeated, inner])
            result = builder.reshape(blocks, [*before, size, *after])
    return result
