"""Normalization."""

import math

from webnn_py.onnx_models.axes import counted
from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.onnx_models.table import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


@rule("BatchNormalization", 7, 9, 14, 15)
def batch_normalization(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    b: MLOperand,
    mean: MLOperand,
    variance: MLOperand,
    *,
    epsilon: float,
    momentum: float,
) -> MLOperand:
    """Normalize with given means and variances; the momentum matters in training only."""
    return context.batch_normalization(x, mean, variance, scale=scale, bias=b, epsilon=epsilon)


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
    stash_type: int,
) -> MLOperand:
    """Normalize over the axes from one on; WebNN computes in float32, which is what ``stash_type`` 1 asks for."""
    if stash_type != 1:
        refuse("attribute stash_type", stash_type, "1")
    axes = range(counted(axis, x.rank), x.rank)
    normalized = x.shape[axes.start :]
    return context.layer_normalization(
        x,
        scale=_expanded(context, scale, normalized),
        bias=None if b is None else _expanded(context, b, normalized),
        axes=axes,
        epsilon=epsilon,
    )


def _expanded(context: ConversionContext, parameter: MLOperand, shape: tuple[int, ...]) -> MLOperand:
    """ONNX lets parameters broadcast, WebNN does not."""
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
    stash_type: int,
) -> MLOperand:
    """Normalize each group of channels of each sample by itself, then scale and shift each channel."""
    if stash_type != 1:
        refuse("attribute stash_type", stash_type, "1")
    if x.rank < 3 or num_groups < 1 or x.shape[1] % num_groups:
        refuse("attribute num_groups", num_groups, f"a divisor of the number of channels of {list(x.shape)}")
    groups = context.reshape(x, [x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups])
    normalized = context.reshape(context.layer_normalization(groups, axes=[2], epsilon=epsilon), x.shape)
    per_channel = [x.shape[1]] + [1] * (x.rank - 2)
    return context.add(context.mul(normalized, context.reshape(scale, per_channel)), context.reshape(b, per_channel))


@rule("LpNormalization", 1, 22)
def lp_normalization(context: ConversionContext, x: MLOperand, *, axis: int, p: int) -> MLOperand:
    """Divide by the norm along an axis."""
    if p not in (1, 2):
        refuse("attribute p", p, "1 or 2")
    norm = context.reduce_l1 if p == 1 else context.reduce_l2
    return context.div(x, norm(x, axes=[counted(axis, x.rank)], keep_dimensions=True))


@rule("MeanVarianceNormalization", 9, 13)
def mean_variance_normalization(context: ConversionContext, x: MLOperand, *, axes: tuple[int, ...]) -> MLOperand:
    """Normalize over axes; 1e-9 keeps the divisor from being 0."""
    reduced = [counted(axis, x.rank) for axis in axes]
    mean = context.reduce_mean(x, axes=reduced, keep_dimensions=True)
    centred = context.sub(x, mean)
    variance = context.reduce_mean(context.mul(centred, centred), axes=reduced, keep_dimensions=True)
    return context.div(centred, context.add(context.sqrt(variance), context.number(1e-9, x)))
