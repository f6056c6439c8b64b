"""Convolutions over one to three axes."""

import math
from collections.abc import Sequence

import attrs
import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue
from webnn_py.onnx_models.rule_helpers.axes import integers
from webnn_py.onnx_models.rule_helpers.windows import (
    MAX_SPATIAL_AXES,
    SlidingWindows,
    as_images,
    given_padding,
    lifted,
    like,
    shared,
    windows,
)
from webnn_py.onnx_models.rule_table.declaration import rule
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
    if len(slid.sizes) > MAX_SPATIAL_AXES:
        return _conv_volumes(context, x, w, b, slid, group)
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


def _conv_volumes(
    context: ConversionContext, x: MLOperand, w: MLOperand, b: MLOperand | None, slid: SlidingWindows, group: int
) -> MLOperand:
    """Convolve volumes: each output slice is one of images whose channels are those of a window's slices together."""
    images, depth = slid.along(1, 3), slid.along(0, 1)
    (count,), (reach,) = depth.counts, depth.kernel
    if count < 1:
        refuse("the windows' depth", depth.reaches, f"at most that of the padded input {list(x.shape)}")
    context.reserve(4 * count * reach)
    starts = np.arange(count)[:, np.newaxis] * depth.strides[0]  # of one window any stride may be said
    places = context.constant((starts + np.arange(reach) * depth.dilations[0]).astype(np.int32))
    padded = context.pad(x, [0, 0, depth.begins[0], 0, 0], [0, 0, depth.ends[0], 0, 0])
    taken = context.gather(padded, places, axis=2)  # [batch, channels, count, reach, height, width]
    together = context.transpose(taken, permutation=[0, 2, 1, 3, 4, 5])
    y = context.conv2d(
        context.reshape(together, [x.shape[0] * count, x.shape[1] * reach, *x.shape[3:]]),
        context.reshape(w, [w.shape[0], w.shape[1] * reach, *w.shape[3:]]),
        padding=images.padding,
        strides=images.strides,
        dilations=images.dilations,
        groups=group,
        bias=b,
    )
    slices = context.reshape(y, [x.shape[0], count, *y.shape[1:]])
    return context.transpose(slices, permutation=[0, 2, 1, 3, 4])


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
        appended = _appended_to(output_shape, slid, appended)
        begins, ends = _cut_to(output_shape, slid, appended, more_at_end=auto_pad == "SAME_UPPER")
    slid = attrs.evolve(slid, begins=begins, ends=ends)
    if len(slid.sizes) > MAX_SPATIAL_AXES:
        return _conv_transpose_volumes(context, x, w, b, slid, group, appended)
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


def _conv_transpose_volumes(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    b: MLOperand | None,
    slid: SlidingWindows,
    group: int,
    appended: Sequence[int],
) -> MLOperand:
    """Do the same to volumes: each slice to images, and a product with a matrix that adds what meets in one slice."""
    images, depth = slid.along(1, 3), slid.along(0, 1)
    (size,), (reach,), channels = depth.sizes, depth.kernel, w.shape[1] * group
    new_size = (size - 1) * depth.strides[0] + depth.reaches[0] + appended[0] - depth.begins[0] - depth.ends[0]
    if new_size < 1:
        refuse("the output's depth", new_size, "at least 1")
    slices = context.reshape(
        context.transpose(x, permutation=[0, 2, 1, 3, 4]), [x.shape[0] * size, x.shape[1], *x.shape[3:]]
    )
    y = context.conv_transpose2d(
        slices,
        context.reshape(w, [w.shape[0], w.shape[1] * reach, *w.shape[3:]]),
        padding=images.padding,
        strides=images.strides,
        dilations=images.dilations,
        output_padding=appended[1:],
        groups=group,
    )
    context.reserve(5 * new_size * size * reach)
    starts = np.arange(size)[:, np.newaxis] * depth.strides[0] - depth.begins[0]
    places = starts + np.arange(reach) * depth.dilations[0]
    meets = np.arange(new_size)[:, np.newaxis, np.newaxis] == places
    parts = context.reshape(y, [x.shape[0], size, channels, reach, math.prod(y.shape[2:])])
    parts = context.reshape(
        context.transpose(parts, permutation=[0, 2, 1, 3, 4]),
        [x.shape[0], channels, size * reach, math.prod(y.shape[2:])],
    )
    added = context.matmul(context.constant(meets.reshape(new_size, -1).astype(x.data_type)), parts)
    volumes = context.reshape(added, [x.shape[0], channels, new_size, *y.shape[2:]])
    return volumes if b is None else context.add(volumes, context.reshape(b, [channels, 1, 1, 1]))


@rule("CausalConvWithState", 27)
def causal_conv(
    context: ConversionContext,
    input: MLOperand,
    weight: MLOperand,
    bias: MLOperand | None = None,
    past_state: MLOperand | None = None,
    *,
    activation: str,
) -> list[MLOperand | None]:
    """A convolution of each channel with what came before, and what the next call has to know of it."""
    if activation not in ("none", "silu", "swish"):
        refuse("attribute activation", activation, "none, silu or swish")
    if input.rank != 3 or weight.shape[:2] != (input.shape[1], 1) or weight.rank != 3:
        refuse("the shape of the weight", weight.shape, f"[channels, 1, width], for the input {list(input.shape)}")
    before = weight.shape[2] - 1
    if past_state is None:
        padded = context.pad(input, [0, 0, before], [0, 0, 0]) if before else input
    else:
        padded = context.concat([past_state, input], 2)
    y = conv(context, padded, weight, bias, auto_pad="NOTSET", group=input.shape[1])
    if activation != "none":
        y = context.mul(y, context.sigmoid(y))
    if not before or context.wanted[1:] != (True,):
        return [y]
    return [y, context.slice(padded, [0, 0, padded.shape[2] - before], [*input.shape[:2], before])]


@rule("Col2Im", 18)
def images_of_columns(
    context: ConversionContext,
    input: MLOperand,
    image_shape: StaticValue,
    block_shape: StaticValue,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """Add blocks up to images, where windows would have taken them: the transpose of a convolution with ones."""
    image, block = integers("input image_shape", image_shape), integers("input block_shape", block_shape)
    axes, size = len(image), math.prod(block)
    if input.rank != 3 or not axes or len(block) != axes or min(*image, *block) < 1 or input.shape[1] % size:
        refuse(
            "the shapes of the input, images and blocks",
            [*input.shape, *image, *block],
            "[N, C · block, L] and as many",
        )
    begins, ends = given_padding("NOTSET", pads, axes)
    strides, dilations = strides or (1,) * axes, dilations or (1,) * axes
    if not len(strides) == len(dilations) == axes or min(*strides, *dilations) < 1:
        refuse("attributes strides and dilations", [*strides, *dilations], f"{axes} numbers each, at least 1")
    slid = SlidingWindows(image, block, tuple(strides), tuple(dilations), begins, ends)
    if math.prod(slid.counts) != input.shape[2] or min(slid.counts) < 1:
        refuse("the number of blocks", input.shape[2], f"{list(slid.counts)} together")
    reached = [
        (count - 1) * stride + reach
        for count, stride, reach in zip(slid.counts, slid.strides, slid.reaches, strict=True)
    ]
    channels = input.shape[1] // size
    context.reserve(4 * input.shape[1] * size)
    ones = np.tile(np.eye(size, dtype=input.data_type), (channels, 1)).reshape(input.shape[1], 1, *block)
    missing = [
        begin + length + end - most for begin, length, end, most in zip(begins, image, ends, reached, strict=True)
    ]
    return conv_transpose(
        context,
        context.reshape(input, [*input.shape[:2], *slid.counts]),
        context.constant(ones),
        auto_pad="NOTSET",
        dilations=dilations,
        group=channels,
        output_padding=missing,
        pads=[*begins, *ends],
        strides=strides,
    )


def _appended_to(output_shape: Sequence[int] | None, slid: SlidingWindows, appended: Sequence[int]) -> tuple[int, ...]:
    """What to append so that the windows reach a given shape: less than a stride, or it is refused."""
    if output_shape is None or len(output_shape) != len(slid.sizes):
        return tuple(appended)
    return tuple(
        min(stride - 1, max(more, wanted - (size - 1) * stride - reach))
        for wanted, size, stride, reach, more in zip(
            output_shape, slid.sizes, slid.strides, slid.reaches, appended, strict=True
        )
    )


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
