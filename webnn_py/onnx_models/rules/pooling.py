"""Pooling over one or two axes, and over all of them."""

from collections.abc import Sequence

from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.onnx_models.table import rule
from webnn_py.onnx_models.windows import SlidingWindows, as_images, like, windows
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
    """The Euclidean norm of each window's elements."""
    if p != 2:
        refuse("attribute p", p, "2")
    slid = windows(x, kernel_shape, auto_pad=auto_pad, pads=pads, strides=strides, dilations=dilations)
    return _pooled(context, "l2", x, slid.rounded_up() if ceil_mode else slid)


def _pooled(context: ConversionContext, kind: str, x: MLOperand, slid: SlidingWindows) -> MLOperand:
    pool = {"average": context.average_pool2d, "l2": context.l2_pool2d, "max": context.max_pool2d}[kind]
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
