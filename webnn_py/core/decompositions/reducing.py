"""Reductions and what is made of them: indices of extremes, sums up to an element, softmax, normalization, gemm.

Sums and squares that overflow, or vanish, on the way are scaled by a power of two, which changes no digit.
"""

import math
from collections.abc import Sequence

from webnn_py.core.decompositions.common import along, cut, decomposition, number, padded, widened
from webnn_py.core.decompositions.elementwise import GREATEST
from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.operators.declaration import Decomposition
from webnn_py.core.operators.methods import Builder, OperatorMethods
from webnn_py.core.operators.normalization import layer_axes
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.windows import InputLayout, image_axes


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


# --- reductions --------------------------------------------------------------------------------------------------


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


@widened
def softmax(builder: Builder, input: MLOperand, axis: int) -> MLOperand:
    greatest = builder.reduce_max(input, axes=[axis], keep_dimensions=True)
    powers = builder.exp(builder.sub(input, greatest))
    return builder.div(powers, builder.reduce_sum(powers, axes=[axis], keep_dimensions=True))


@widened
def gemm(
    builder: Builder,
    a: MLOperand,
    b: MLOperand,
    *,
    c: MLOperand | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    a_transpose: bool = False,
    b_transpose: bool = False,
) -> MLOperand:
    a = builder.transpose(a) if a_transpose else a
    b = builder.transpose(b) if b_transpose else b
    product = builder.matmul(a, b)
    product = product if alpha == 1 else builder.mul(number(builder, alpha, a), product)
    if c is None:
        return product
    return builder.add(product, c if beta == 1 else builder.mul(number(builder, beta, a), c))


# --- normalization -------------------------------------------------------------------------------------------------


@widened
def batch_normalization(
    builder: Builder,
    input: MLOperand,
    mean: MLOperand,
    variance: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> MLOperand:
    shape = _sizes_at(input, [axis])
    centered = builder.sub(input, builder.reshape(mean, shape))
    return _normalized(builder, centered, builder.reshape(variance, shape), epsilon, scale, bias, shape)


@widened
def instance_normalization(
    builder: Builder,
    input: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    epsilon: float = 1e-5,
    layout: InputLayout = "nchw",
) -> MLOperand:
    _, channels, height, width = image_axes(layout)
    _, centered, variance = moments(builder, input, [height, width])
    return _normalized(builder, centered, variance, epsilon, scale, bias, _sizes_at(input, [channels]))


@widened
def layer_normalization(
    builder: Builder,
    input: MLOperand,
    *,
    scale: MLOperand | None = None,
    bias: MLOperand | None = None,
    axes: Sequence[int] | None = None,
    epsilon: float = 1e-5,
) -> MLOperand:
    reduced = layer_axes(axes, input.rank)
    ascending = sorted(range(len(reduced)), key=lambda index: reduced[index])
    scale, bias = (
        builder.transpose(operand, permutation=ascending) if operand is not None and operand.rank > 1 else operand
        for operand in (scale, bias)
    )
    _, centered, variance = moments(builder, input, reduced)
    return _normalized(builder, centered, variance, epsilon, scale, bias, _sizes_at(input, reduced))


def _sizes_at(input: MLOperand, axes: Sequence[int]) -> list[int]:
    """Return the input's shape, but 1 at all other axes."""
    return [size if axis in axes else 1 for axis, size in enumerate(input.shape)]


def moments(builder: OperatorMethods, input: MLOperand, axes: Sequence[int]) -> tuple[MLOperand, MLOperand, MLOperand]:
    """Return the mean over axes, the input less that, and the variance."""
    mean = builder.reduce_mean(input, axes=axes, keep_dimensions=True)
    centered = builder.sub(input, mean)
    return mean, centered, builder.reduce_mean(builder.mul(centered, centered), axes=axes, keep_dimensions=True)


def _normalized(
    builder: Builder,
    centered: MLOperand,
    variance: MLOperand,
    epsilon: float,
    scale: MLOperand | None,
    bias: MLOperand | None,
    shape: Sequence[int],
) -> MLOperand:
    """Divide by the deviation; then scale and bias, in the shape in which they broadcast."""
    deviation = builder.sqrt(builder.add(variance, number(builder, epsilon, variance)))
    result = builder.div(centered, deviation)
    if scale is not None:
        result = builder.mul(result, builder.reshape(scale, shape))
    if bias is not None:
        result = builder.add(result, builder.reshape(bias, shape))
    return result
