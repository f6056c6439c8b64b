"""Movement of elements."""

import math
from collections.abc import Sequence
from itertools import accumulate

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
