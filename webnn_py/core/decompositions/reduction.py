"""Reductions, indices of extremes, and sums up to an element.

Sums and squares that overflow, or vanish, on the way are scaled by a power of two, which changes no digit.
"""

import math
from collections.abc import Sequence

from webnn_py.core.decompositions.common import GREATEST, along, cut, decomposition, number, padded, widened
from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.operators.declaration import Decomposition
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand


def _arg(name: str, reduce: str) -> Decomposition:
    """Return the decomposition of an arg-reduction, given the method that finds the extreme."""

    def arg(
        builder: Builder,
        input: MLOperand,
        axis: int,
        *,
        keep_dimensions: bool = False,
        output_data_type: MLOperandDataType = "int32",
    ) -> MLOperand:
        """Return the first place of the extreme along an axis, or of NaN."""
        is_there = builder.equal(input, getattr(builder, reduce)(input, axes=[axis], keep_dimensions=True))
        if input.data_type.startswith("float"):
            is_there = builder.logical_or(is_there, builder.is_nan(input))
        size = input.shape[axis]
        places = along(builder, range(size), axis, input.rank, output_data_type)
        found = builder.where(is_there, places, builder.constant(size, data_type=output_data_type))
        return builder.reduce_min(found, axes=[axis], keep_dimensions=keep_dimensions)

    arg.__name__ = name
    return arg


arg_min = decomposition(_arg("arg_min", "reduce_min"))


arg_max = decomposition(_arg("arg_max", "reduce_max"))


@widened
def cumulative_sum(
    builder: Builder, input: MLOperand, axis: int, *, exclusive: bool = False, reversed: bool = False
) -> MLOperand:
    """Sums of 2, 4, 8 … neighbours, in as many steps as that takes."""
    size = input.shape[axis]

    def shifted(operand: MLOperand, count: int) -> MLOperand:
        if reversed:
            return padded(builder, cut(builder, operand, axis, count, size), axis, 0, count, 0)
        return padded(builder, cut(builder, operand, axis, 0, size - count), axis, count, 0, 0)

    result = input
    if exclusive:
        if size == 1:
            return builder.expand(number(builder, 0, input), input.shape)
        result = shifted(result, 1)
    count = 1
    while count < size:
        result = builder.add(result, shifted(result, count))
        count *= 2
    return result


def scale_for(builder: Builder, greatest: MLOperand, *, squares: bool) -> MLOperand:
    """A power of two for each sum, by its greatest magnitude: it keeps the sum, or that of the squares, in range."""
    one, small = number(builder, 1, greatest), number(builder, 2.0**-80 if squares else 2.0**-40, greatest)
    limit = number(builder, 2.0**40 if squares else 2.0**80, greatest)
    scale = builder.where(builder.greater(greatest, limit), small, one)
    if not squares:
        return scale
    is_tiny = builder.lesser(greatest, number(builder, 2.0**-50, greatest))
    return builder.where(is_tiny, number(builder, 2.0**100, greatest), scale)


def _scaled(
    builder: Builder, input: MLOperand, axes: Sequence[int] | None, *, squares: bool
) -> tuple[MLOperand, MLOperand]:
    """Return the scaled input and the scale, which broadcasts to it."""
    greatest = builder.reduce_max(builder.abs(input), axes=axes, keep_dimensions=True)
    scale = scale_for(builder, greatest, squares=squares)
    return builder.mul(input, scale), scale


@widened
def reduce_mean(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    scaled, scale = _scaled(builder, input, axes, squares=False)
    total = builder.reduce_sum(scaled, axes=axes, keep_dimensions=keep_dimensions)
    count = math.prod(input.shape if axes is None else (input.shape[axis] for axis in axes))
    mean = builder.div(total, number(builder, count, input))
    return builder.div(mean, builder.reshape(scale, mean.shape))


@decomposition
def reduce_l1(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    magnitudes = input if input.data_type.startswith("uint") else builder.abs(input)
    return builder.reduce_sum(magnitudes, axes=axes, keep_dimensions=keep_dimensions)


@widened
def reduce_l2(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    scaled, scale = _scaled(builder, input, axes, squares=True)
    total = builder.reduce_sum(builder.mul(scaled, scaled), axes=axes, keep_dimensions=keep_dimensions)
    return builder.div(builder.sqrt(total), builder.reshape(scale, total.shape))


@widened
def reduce_log_sum(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    scaled, scale = _scaled(builder, input, axes, squares=False)
    total = builder.reduce_sum(scaled, axes=axes, keep_dimensions=keep_dimensions)
    return builder.sub(builder.log(total), builder.reshape(builder.log(scale), total.shape))


@widened
def reduce_log_sum_exp(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    """With the maximum m (a finite one, lest ∞ - ∞ arise) m + ln Σ exp(x - m), which is ln Σ exp(x)."""
    greatest = builder.reduce_max(input, axes=axes, keep_dimensions=True)
    greatest = builder.clamp(greatest, min_value=-GREATEST, max_value=GREATEST)
    powers = builder.exp(builder.sub(input, greatest))
    total = builder.reduce_sum(powers, axes=axes, keep_dimensions=keep_dimensions)
    return builder.add(builder.log(total), builder.reshape(greatest, total.shape))


@widened
def reduce_sum_square(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    return builder.reduce_sum(builder.mul(input, input), axes=axes, keep_dimensions=keep_dimensions)
