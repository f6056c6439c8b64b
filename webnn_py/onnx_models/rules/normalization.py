"""Normalization; means of squares are computed in float32, since they overflow in float16."""

import math
from typing import Literal

from webnn_py.core.decompositions.normalization import moments
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.declaration import rule


@rule("BatchNormalization", 1, 6, 7, 9, 14, 15)
def batch_normalization(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    b: MLOperand,
    mean: MLOperand,
    variance: MLOperand,
    *,
    epsilon: float,
    is_test: Literal[1] | None = None,
    momentum: float,
    training_mode: bool = False,
) -> list[MLOperand]:
    """Normalize with given means and variances; in training with those of the batch, and update the running ones.

    Before opset 7, training is not supported, nor a mean for each element.
    """
    if not training_mode:
        return [context.batch_normalization(x, mean, variance, scale=scale, bias=b, epsilon=epsilon)]
    reduced = [axis for axis in range(x.rank) if axis != 1]
    wide, scale, b = (context.cast(item, "float32") for item in (x, scale, b))
    own_mean = context.reduce_mean(wide, axes=reduced)
    per_channel = [size if axis == 1 else 1 for axis, size in enumerate(x.shape)]
    centred = context.sub(wide, context.reshape(own_mean, per_channel))
    own_variance = context.reduce_mean(context.mul(centred, centred), axes=reduced)
    y = context.batch_normalization(wide, own_mean, own_variance, scale=scale, bias=b, epsilon=epsilon)
    running = [
        context.cast(_mixed(context, context.cast(old, "float32"), new, momentum), old.data_type)
        for old, new in ((mean, own_mean), (variance, own_variance))
    ]
    return [context.cast(y, x.data_type), *running]


def _mixed(context: ConversionContext, old: MLOperand, new: MLOperand, momentum: float) -> MLOperand:
    """Return a running mean of an old one and a new value."""
    return context.add(
        context.mul(old, context.number(momentum, old)), context.mul(new, context.number(1 - momentum, new))
    )


@rule("InstanceNormalization", 6, 22)
def instance_normalization(
    context: ConversionContext, x: MLOperand, scale: MLOperand, b: MLOperand, *, epsilon: float
) -> MLOperand:
    """Normalize each channel of each sample by itself, over however many spatial axes."""
    if x.rank < 3:
        refuse("the rank of the input", x.rank, "at least 3")
    images = context.reshape(x, [*x.shape[:2], 1, math.prod(x.shape[2:])])
    return context.reshape(context.instance_normalization(images, scale=scale, bias=b, epsilon=epsilon), x.shape)


@rule("LayerNormalization", 17)
def layer_normalization(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    b: MLOperand | None = None,
    *,
    axis: int,
    epsilon: float,
    stash_type: Literal[1],
) -> list[MLOperand]:
    """Normalize over the axes from one on; WebNN computes in float32, which is what ``stash_type`` 1 asks for.

    The means, and the inverse standard deviations, are outputs, too: in float32. ONNX's body would be 13 nodes and more
    where WebNN has an operator.
    """
    axes = range(counted(axis, x.rank), x.rank)
    normalized = x.shape[axes.start :]
    scale = _expanded(context, scale, normalized)
    bias = None if b is None else _expanded(context, b, normalized)
    y = context.layer_normalization(x, scale=scale, bias=bias, axes=axes, epsilon=epsilon)
    return [y, *mean_and_inverse(context, x, axes.start, epsilon)] if any(context.wanted[1:]) else [y]


def mean_and_inverse(context: ConversionContext, x: MLOperand, first: int, epsilon: float) -> list[MLOperand]:
    """Return the means over the axes from one on, and the inverse standard deviations, in float32."""
    axes = range(first, x.rank)
    wide = context.cast(x, "float32")
    mean, _, variance = moments(context, wide, axes)
    return [mean, context.reciprocal(context.sqrt(context.add(variance, context.number(epsilon, wide))))]


def _expanded(context: ConversionContext, parameter: MLOperand, shape: tuple[int, ...]) -> MLOperand:
    """Expand a parameter, which broadcasts in ONNX, but not in WebNN."""
    return parameter if parameter.shape == shape else context.expand(parameter, shape)


@rule("GroupNormalization", 21)
def group_normalization(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    b: MLOperand,
    *,
    epsilon: float,
    num_groups: int,
    stash_type: Literal[1],
) -> MLOperand:
    """Normalize each group of channels of each sample by itself, then scale and shift each channel.

    ONNX's body would be twice as many nodes, and lose the variance of numbers far from 0: E[x²] - E[x]².
    """
    normalized = context.reshape(_normalized_groups(context, x, num_groups, epsilon), x.shape)
    per_channel = [x.shape[1]] + [1] * (x.rank - 2)
    return context.add(context.mul(normalized, context.reshape(scale, per_channel)), context.reshape(b, per_channel))


@rule("GroupNormalization", 18)
def group_normalization_of_groups(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    b: MLOperand,
    *,
    epsilon: float,
    num_groups: int,
) -> MLOperand:
    """Normalize each group of channels of each sample by itself, then scale and shift each group.

    ONNX has deprecated this version, and refuses it.
    """
    normalized = _normalized_groups(context, x, num_groups, epsilon)
    scaled = context.mul(normalized, context.reshape(scale, [num_groups, 1]))
    return context.reshape(context.add(scaled, context.reshape(b, [num_groups, 1])), x.shape)


def _normalized_groups(context: ConversionContext, x: MLOperand, num_groups: int, epsilon: float) -> MLOperand:
    """Return normalized groups: [batch, groups, elements of a group]."""
    if x.rank < 3 or num_groups < 1 or x.shape[1] % num_groups:
        refuse("attribute num_groups", num_groups, f"a divisor of the number of channels of {list(x.shape)}")
    groups = context.reshape(x, [x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups])
    return context.layer_normalization(groups, axes=[2], epsilon=epsilon)


@rule("LRN", 1, 13)
def local_response_normalization(
    context: ConversionContext, x: MLOperand, *, alpha: float, beta: float, bias: float, size: int
) -> MLOperand:
    """Return x / (bias + alpha · the mean of squares over ``size`` channels around) to the power of beta."""
    if x.rank < 3 or size < 1:
        refuse("the rank of the input and attribute size", f"{x.rank} and {size}", "at least 3, and at least 1")
    wide = context.cast(x, "float32")
    squares = context.reshape(context.mul(wide, wide), [x.shape[0], 1, x.shape[1], math.prod(x.shape[2:])])
    padded = context.pad(squares, [0, 0, (size - 1) // 2, 0], [0, 0, size // 2, 0])  # channels that lack are 0
    means = context.reshape(context.average_pool2d(padded, window_dimensions=[size, 1]), x.shape)
    divisor = context.add(context.mul(means, context.number(alpha, wide)), context.number(bias, wide))
    return context.cast(context.div(wide, context.pow(divisor, context.number(beta, wide))), x.data_type)


@rule("LpNormalization", 1, 22)
def lp_normalization(context: ConversionContext, x: MLOperand, *, axis: int, p: Literal[1, 2]) -> MLOperand:
    """Divide by the norm along an axis; zeros, whose norm is 0, stay zeros."""
    reduced = context.reduce_l1 if p == 1 else context.reduce_l2
    norm = reduced(x, axes=[counted(axis, x.rank)], keep_dimensions=True)
    zero, one = context.number(0, x), context.number(1, x)
    return context.div(x, context.where(context.equal(norm, zero), one, norm))


@rule("MeanVarianceNormalization", 9, 13)
def mean_variance_normalization(context: ConversionContext, x: MLOperand, *, axes: tuple[int, ...]) -> MLOperand:
    """Normalize over axes; 1e-9 keeps the divisor from being 0.

    ONNX's body would lose the variance of numbers far from 0, E[x²] - E[x]², and mix data types in float16.
    """
    if not axes:
        refuse("attribute axes", axes, "at least one axis, or absent")
    wide = context.cast(x, "float32")
    _, centred, variance = moments(context, wide, [counted(axis, x.rank) for axis in axes])
    normal = context.div(centred, context.add(context.sqrt(variance), context.number(1e-9, wide)))
    return context.cast(normal, x.data_type)
