"""Pooling over one to three axes, and over all of them."""

import math
from collections.abc import Sequence

from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.onnx_models.table import rule
from webnn_py.onnx_models.windows import MAX_SPATIAL_AXES, SlidingWindows, as_images, like, windows
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


@rule("MaxPool", 1, 8, 10, 11, 12, 22)
def max_pool(
    context: ConversionContext,
    x: MLOperand,
    *,
    auto_pad: str,
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """The greatest of each window's elements; ``storage_order`` speaks of the second output only."""
    slid = windows(x, kernel_shape, auto_pad=auto_pad, pads=pads, strides=strides, dilations=dilations)
    return _pooled(context, "max", x, slid.rounded_up() if ceil_mode else slid)


@rule("AveragePool", 7, 10, 11, 19, 22)
def average_pool(
    context: ConversionContext,
    x: MLOperand,
    *,
    auto_pad: str,
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """The mean of each window's elements; WebNN never counts padding, so padding that counts becomes elements."""
    slid = windows(x, kernel_shape, auto_pad=auto_pad, pads=pads, strides=strides, dilations=dilations)
    rounded = slid.rounded_up() if ceil_mode else slid
    if not count_include_pad or not any((*slid.begins, *slid.ends)):
        return _pooled(context, "average", x, rounded)
    padded = context.pad(x, [0, 0, *slid.begins], [0, 0, *slid.ends])
    return _pooled(context, "average", padded, rounded.over_padded(slid))


@rule("LpPool", 2, 11, 18, 22)
def lp_pool(
    context: ConversionContext,
    x: MLOperand,
    *,
    auto_pad: str,
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    p: int,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """The norm of each window's elements: the root of the sum of powers, which for 2 WebNN has itself."""
    if p < 1:
        refuse("attribute p", p, "at least 1")
    slid = windows(x, kernel_shape, auto_pad=auto_pad, pads=pads, strides=strides, dilations=dilations)
    slid = slid.rounded_up() if ceil_mode else slid
    if p == 2:
        return _pooled(context, "l2", x, slid)
    powers = context.abs(x) if p == 1 else context.pow(context.abs(x), context.number(p, x))
    padded = context.pad(powers, [0, 0, *slid.begins], [0, 0, *slid.ends])
    means = _pooled(context, "average", padded, slid.over_padded(slid))
    sums = context.mul(means, context.number(math.prod(slid.kernel), means))
    return sums if p == 1 else context.pow(sums, context.number(1 / p, sums))


def _pooled(context: ConversionContext, kind: str, x: MLOperand, slid: SlidingWindows) -> MLOperand:
    """Pool over the last two axes, then over the one before: of boxes, that is the same as at once."""
    pool = {"average": context.average_pool2d, "l2": context.l2_pool2d, "max": context.max_pool2d}[kind]
    if len(slid.sizes) > MAX_SPATIAL_AXES:
        images, depth = slid.along(1, 3), slid.along(0, 1)
        slices = context.reshape(x, [x.shape[0], x.shape[1] * x.shape[2], *images.sizes])
        rows = context.reshape(_pooled(context, kind, slices, images), [*x.shape[:3], math.prod(images.counts)])
        y = pool(
            rows,
            window_dimensions=[*depth.kernel, 1],
            padding=[*depth.begins, *depth.ends, 0, 0],
            strides=[*depth.strides, 1],
            dilations=[*depth.dilations, 1],
        )
        return context.reshape(y, [*y.shape[:3], *images.counts])
    y = pool(
        as_images(context, x),
        window_dimensions=slid.window,
        padding=slid.padding,
        strides=slid.two_strides,
        dilations=slid.two_dilations,
    )
    return like(context, y, x)


@rule("GlobalAveragePool", 1, 22)
def global_average_pool(context: ConversionContext, x: MLOperand) -> MLOperand:
    """The mean over all spatial axes, however many."""
    return context.reduce_mean(x, axes=range(2, x.rank), keep_dimensions=True)


@rule("GlobalMaxPool", 1, 22)
def global_max_pool(context: ConversionContext, x: MLOperand) -> MLOperand:
    """The greatest over all spatial axes, however many."""
    return context.reduce_max(x, axes=range(2, x.rank), keep_dimensions=True)


@rule("GlobalLpPool", 2, 22)
def global_lp_pool(context: ConversionContext, x: MLOperand, *, p: int) -> MLOperand:
    """The norm over all spatial axes: the sum of absolute values, or the Euclidean norm."""
    if p not in (1, 2):
        refuse("attribute p", p, "1 or 2")
    reduce = context.reduce_l1 if p == 1 else context.reduce_l2
    return reduce(x, axes=range(2, x.rank), keep_dimensions=True)
