# ruff: noqa: D103 - the functions are documented where the operators are declared
"""Operators said in terms of others: the emulations of the specification, for all options.

Each function is called as the operator of its name is, with a builder in front and without a label, and returns what
that operator's method would. Numbers take the data type of the input. Where the specification's formula overflows
on the way, an equal one that does not stands here. The recurrent operators are in ``unrolling``. The last functions
are no operators, but the utilities of the section "Operator Emulation".

A device that has no kernel for an operator can run its decomposition; a test can compare the two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from webnn_py.descriptors import MLOperandDataType
from webnn_py.operators.builder_protocol import Builder
from webnn_py.operators.casting import INTEGER_RANGES
from webnn_py.operators.idl import MLNumber
from webnn_py.operators.normalization import layer_axes
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.unrolling import gru, gru_cell, lstm, lstm_cell
from webnn_py.operators.windows import InputLayout, image_axes

GREATEST: Final[Mapping[MLOperandDataType, float]] = {"float32": (2 - 2**-23) * 2.0**127, "float16": 65504.0}
"""The greatest finite number of each float data type."""


def _number(builder: Builder, value: MLNumber, like: MLOperand) -> MLOperand:
    return builder.constant(value, data_type=like.data_type)


# --- element by element ----------------------------------------------------------------------------------------


def not_equal(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.logical_not(builder.equal(a, b))


def greater_or_equal(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.logical_or(builder.greater(a, b), builder.equal(a, b))


def lesser_or_equal(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.logical_or(builder.lesser(a, b), builder.equal(a, b))


def where(builder: Builder, condition: MLOperand, true_value: MLOperand, false_value: MLOperand) -> MLOperand:
    """The value that is not chosen is multiplied by 0: where it is infinite or NaN, the output is NaN."""
    chosen = builder.clamp(condition, min_value=0, max_value=1)
    return builder.add(
        builder.mul(true_value, builder.cast(chosen, true_value.data_type)),
        builder.mul(false_value, builder.cast(builder.logical_not(chosen), false_value.data_type)),
    )


def sign(builder: Builder, input: MLOperand) -> MLOperand:
    zero, one, minus_one = (_number(builder, value, input) for value in (0, 1, -1))
    negative_or_zero = builder.where(builder.lesser(input, zero), minus_one, zero)
    return builder.where(builder.greater(input, zero), one, negative_or_zero)


def clamp(
    builder: Builder, input: MLOperand, *, min_value: MLNumber | None = None, max_value: MLNumber | None = None
) -> MLOperand:
    result = input
    if min_value is not None and not _is_nan(min_value):
        result = builder.max(result, _number(builder, min_value, input))
    if max_value is not None and not _is_nan(max_value):
        result = builder.min(result, _number(builder, max_value, input))
    return result


def _is_nan(value: MLNumber) -> bool:
    return isinstance(value, float) and math.isnan(value)


def elu(builder: Builder, input: MLOperand, *, alpha: float = 1.0) -> MLOperand:
    zero, one = _number(builder, 0, input), _number(builder, 1, input)
    below = builder.sub(builder.exp(builder.min(zero, input)), one)
    return builder.add(builder.max(zero, input), builder.mul(_number(builder, alpha, input), below))


def gelu(builder: Builder, input: MLOperand) -> MLOperand:
    half, one, root = (_number(builder, value, input) for value in (0.5, 1, math.sqrt(2)))
    return builder.mul(builder.mul(input, half), builder.add(one, builder.erf(builder.div(input, root))))


def hard_sigmoid(builder: Builder, input: MLOperand, *, alpha: float = 0.2, beta: float = 0.5) -> MLOperand:
    zero, one = _number(builder, 0, input), _number(builder, 1, input)
    line = linear(builder, input, alpha=alpha, beta=beta)
    return builder.max(builder.min(line, one), zero)


def hard_swish(builder: Builder, input: MLOperand) -> MLOperand:
    zero, three, six = (_number(builder, value, input) for value in (0, 3, 6))
    gate = builder.max(zero, builder.min(six, builder.add(input, three)))
    return builder.div(builder.mul(input, gate), six)


def leaky_relu(builder: Builder, input: MLOperand, *, alpha: float = 0.01) -> MLOperand:
    return prelu(builder, input, _number(builder, alpha, input))


def linear(builder: Builder, input: MLOperand, *, alpha: float = 1.0, beta: float = 0.0) -> MLOperand:
    return builder.add(builder.mul(input, _number(builder, alpha, input)), _number(builder, beta, input))


def prelu(builder: Builder, input: MLOperand, slope: MLOperand) -> MLOperand:
    zero = _number(builder, 0, input)
    return builder.add(builder.max(zero, input), builder.mul(slope, builder.min(zero, input)))


def relu(builder: Builder, input: MLOperand) -> MLOperand:
    return builder.max(_number(builder, 0, input), input)


def sigmoid(builder: Builder, input: MLOperand) -> MLOperand:
    one = _number(builder, 1, input)
    return builder.div(one, builder.add(builder.exp(builder.neg(input)), one))


def softmax(builder: Builder, input: MLOperand, axis: int) -> MLOperand:
    greatest = builder.reduce_max(input, axes=[axis], keep_dimensions=True)
    powers = builder.exp(builder.sub(input, greatest))
    return builder.div(powers, builder.reduce_sum(powers, axes=[axis], keep_dimensions=True))


def softplus(builder: Builder, input: MLOperand) -> MLOperand:
    """max(0, x) + ln(1 + exp(-|x|)), which is ln(1 + exp(x))."""
    zero, one = _number(builder, 0, input), _number(builder, 1, input)
    power = builder.exp(builder.neg(builder.abs(input)))
    return builder.add(builder.max(zero, input), builder.log(builder.add(one, power)))


def softsign(builder: Builder, input: MLOperand) -> MLOperand:
    return builder.div(input, builder.add(_number(builder, 1, input), builder.abs(input)))


def tanh(builder: Builder, input: MLOperand) -> MLOperand:
    """1 - 2 / (exp(2x) + 1), which is (exp(2x) - 1) / (exp(2x) + 1)."""
    one, two = _number(builder, 1, input), _number(builder, 2, input)
    power = builder.exp(builder.mul(two, input))
    return builder.sub(one, builder.div(two, builder.add(power, one)))


# --- quantization ----------------------------------------------------------------------------------------------


def dequantize_linear(builder: Builder, input: MLOperand, scale: MLOperand, zero_point: MLOperand) -> MLOperand:
    zero = blockwise_expand(builder, builder.cast(zero_point, scale.data_type), input.shape)
    shifted = builder.sub(builder.cast(input, scale.data_type), zero)
    return builder.mul(shifted, blockwise_expand(builder, scale, input.shape))


def quantize_linear(builder: Builder, input: MLOperand, scale: MLOperand, zero_point: MLOperand) -> MLOperand:
    zero = blockwise_expand(builder, builder.cast(zero_point, scale.data_type), input.shape)
    steps = builder.round_even(builder.div(input, blockwise_expand(builder, scale, input.shape)))
    lowest, highest = INTEGER_RANGES[zero_point.data_type]
    in_range = builder.clamp(builder.add(steps, zero), min_value=lowest, max_value=highest)
    return builder.cast(in_range, zero_point.data_type)


# --- reductions, matrices, movement ----------------------------------------------------------------------------


def reduce_l1(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    magnitudes = input if input.data_type.startswith("uint") else builder.abs(input)
    return builder.reduce_sum(magnitudes, axes=axes, keep_dimensions=keep_dimensions)


def reduce_l2(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    return builder.sqrt(reduce_sum_square(builder, input, axes=axes, keep_dimensions=keep_dimensions))


def reduce_log_sum(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    return builder.log(builder.reduce_sum(input, axes=axes, keep_dimensions=keep_dimensions))


def reduce_log_sum_exp(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    """With the maximum m (a finite one, lest ∞ - ∞ arise) m + ln Σ exp(x - m), which is ln Σ exp(x)."""
    limit = GREATEST[input.data_type]
    greatest = builder.reduce_max(input, axes=axes, keep_dimensions=True)
    greatest = builder.clamp(greatest, min_value=-limit, max_value=limit)
    powers = builder.exp(builder.sub(input, greatest))
    total = builder.reduce_sum(powers, axes=axes, keep_dimensions=keep_dimensions)
    return builder.add(builder.log(total), builder.reshape(greatest, total.shape))


def reduce_sum_square(
    builder: Builder, input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False
) -> MLOperand:
    return builder.reduce_sum(builder.mul(input, input), axes=axes, keep_dimensions=keep_dimensions)


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
    product = builder.matmul(builder.mul(_number(builder, alpha, a), a), b)
    return product if c is None else builder.add(product, builder.mul(_number(builder, beta, a), c))


def split(builder: Builder, input: MLOperand, splits: int | Sequence[int], *, axis: int = 0) -> list[MLOperand]:
    sizes = [input.shape[axis] // splits] * splits if isinstance(splits, int) else splits
    pieces, start = [], 0
    for size in sizes:
        starts, shape = [0] * input.rank, list(input.shape)
        starts[axis], shape[axis] = start, size
        pieces.append(builder.slice(input, starts, shape))
        start += size
    return pieces


# --- normalization ---------------------------------------------------------------------------------------------


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
    centered, variance = _moments(builder, input, [height, width])
    return _normalized(builder, centered, variance, epsilon, scale, bias, _sizes_at(input, [channels]))


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
    centered, variance = _moments(builder, input, reduced)
    return _normalized(builder, centered, variance, epsilon, scale, bias, _sizes_at(input, reduced))


def _sizes_at(input: MLOperand, axes: Sequence[int]) -> list[int]:
    """The input's shape, but 1 at all other axes."""
    return [size if axis in axes else 1 for axis, size in enumerate(input.shape)]


def _moments(builder: Builder, input: MLOperand, axes: Sequence[int]) -> tuple[MLOperand, MLOperand]:
    """The input less its mean, and its variance."""
    centered = builder.sub(input, builder.reduce_mean(input, axes=axes, keep_dimensions=True))
    return centered, builder.reduce_mean(builder.mul(centered, centered), axes=axes, keep_dimensions=True)


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
    deviation = builder.sqrt(builder.add(variance, _number(builder, epsilon, variance)))
    result = builder.div(centered, deviation)
    if scale is not None:
        result = builder.mul(result, builder.reshape(scale, shape))
    if bias is not None:
        result = builder.add(result, builder.reshape(bias, shape))
    return result


# --- utilities -------------------------------------------------------------------------------------------------


def squeeze(builder: Builder, input: MLOperand, axes: Sequence[int] | None = None) -> MLOperand:
    """Drop dimensions of size 1: those that ``axes`` name, or all of them."""
    dropped = range(input.rank) if axes is None else axes
    return builder.reshape(input, [size for axis, size in enumerate(input.shape) if size != 1 or axis not in dropped])


def unsqueeze(builder: Builder, input: MLOperand, axes: Sequence[int]) -> MLOperand:
    """Insert dimensions of size 1, so that ``axes`` are their places in the output."""
    shape = list(input.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return builder.reshape(input, shape)


def flatten(builder: Builder, input: MLOperand, axis: int = 1) -> MLOperand:
    """Reshape to two dimensions: those before ``axis`` as one, and the others as one."""
    if axis > input.rank:
        return input
    return builder.reshape(input, [math.prod(input.shape[:axis]), math.prod(input.shape[axis:])])


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


DECOMPOSITIONS: Final[Mapping[str, Callable[..., MLOperand | list[MLOperand]]]] = {
    function.__name__: function
    for function in (
        batch_normalization,
        clamp,
        not_equal,
        greater_or_equal,
        lesser_or_equal,
        sign,
        dequantize_linear,
        quantize_linear,
        elu,
        gelu,
        gemm,
        gru,
        gru_cell,
        hard_sigmoid,
        hard_swish,
        instance_normalization,
        layer_normalization,
        leaky_relu,
        linear,
        lstm,
        lstm_cell,
        prelu,
        reduce_l1,
        reduce_l2,
        reduce_log_sum,
        reduce_log_sum_exp,
        reduce_sum_square,
        relu,
        sigmoid,
        softmax,
        softplus,
        softsign,
        split,
        tanh,
        where,
    )
}
"""The decompositions by the operators' names, in the order of the specification."""
