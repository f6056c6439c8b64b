"""Convolutions over one or two axes."""

from collections.abc import Sequence

import attrs

from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.onnx_models.table import rule
from webnn_py.onnx_models.windows import SlidingWindows, as_images, given_padding, lifted, like, shared, windows
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


@rule("Conv", 1, 11, 22)
def conv(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    b: MLOperand | None = None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None = None,
    group: int,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """A convolution, also with groups."""
    _check_kernel(w, kernel_shape)
    slid = windows(x, w.shape[2:], auto_pad=auto_pad, pads=pads, strides=strides, dilations=dilations)
    y = context.conv2d(
        as_images(context, x),
        as_images(context, w),
        padding=slid.padding,
        strides=slid.two_strides,
        dilations=slid.two_dilations,
        groups=group,
        bias=b,
    )
    return like(context, y, x)


@rule("ConvTranspose", 1, 11, 22)
def conv_transpose(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    b: MLOperand | None = None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None = None,
    group: int,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """The transpose of a convolution; the padding is what is cut from its output."""
    _check_kernel(w, kernel_shape)
    slid = windows(x, w.shape[2:], auto_pad="NOTSET", pads=None, strides=strides, dilations=dilations)
    appended = tuple(output_padding or (0,) * len(slid.sizes))
    if len(appended) != len(slid.sizes):
        refuse("attribute output_padding", appended, f"of length {len(slid.sizes)}")
    begins, ends = given_padding(auto_pad, pads, len(slid.sizes))
    if output_shape is not None or auto_pad.startswith("SAME"):
        begins, ends = _cut_to(output_shape, slid, appended, more_at_end=auto_pad == "SAME_UPPER")
    slid = attrs.evolve(slid, begins=begins, ends=ends)
    y = context.conv_transpose2d(
        as_images(context, x),
        as_images(context, w),
        padding=slid.padding,
        strides=slid.two_strides,
        dilations=slid.two_dilations,
        output_padding=lifted(appended, [0]),
        groups=group,
        bias=b,
    )
    return like(context, y, x)


def _cut_to(
    output_shape: Sequence[int] | None, slid: SlidingWindows, appended: Sequence[int], *, more_at_end: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What to cut so that the output has a given shape, by default the input's times the strides."""
    wanted = output_shape or [size * stride for size, stride in zip(slid.sizes, slid.strides, strict=True)]
    if len(wanted) != len(slid.sizes):
        refuse("attribute output_shape", tuple(wanted), f"of length {len(slid.sizes)}")
    whole = [
        (size - 1) * stride + reach + more
        for size, stride, reach, more in zip(slid.sizes, slid.strides, slid.reaches, appended, strict=True)
    ]
    if any(size > most for size, most in zip(wanted, whole, strict=True)):
        refuse("the output's shape", tuple(wanted), f"at most {whole}, what the windows reach")
    return shared([most - size for size, most in zip(wanted, whole, strict=True)], more_at_end=more_at_end)


def _check_kernel(w: MLOperand, kernel_shape: Sequence[int] | None) -> None:
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        refuse("attribute kernel_shape", tuple(kernel_shape), f"that of input W, {list(w.shape[2:])}")
