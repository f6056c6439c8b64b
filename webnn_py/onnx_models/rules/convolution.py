"""Convolutions over one to three axes."""

import math
from collections.abc import Sequence
from typing import Literal

import attrs
import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.windows import (
    MAX_SPATIAL_AXES,
    ConvolutionAttributes,
    SlidingWindows,
    WindowAttributes,
    as_images,
    given_padding,
    lifted,
    like,
    shared,
    windows,
)
from webnn_py.onnx_models.rule_table.declaration import Integers, rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


@rule("Conv", 1, 11, 22)
def conv(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    b: MLOperand | None = None,
    *,
    attributes: ConvolutionAttributes,
) -> MLOperand:
    """Convolve, also in groups."""
    attributes.check_kernel(w)
    slid = windows(x, w.shape[2:], attributes, attributes.auto_pad)
    if len(slid.sizes) > MAX_SPATIAL_AXES:
        return _conv_volumes(context, x, w, b, slid, attributes.group)
    images, filters = as_images(context, x), as_images(context, w)
    y = context.conv2d(images, filters, **slid.two_axes, groups=attributes.group, bias=b)
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
    starts = np.arange(count)[:, np.newaxis] * depth.strides[0]  # of one window any stride may be given
    places = context.constant((starts + np.arange(reach) * depth.dilations[0]).astype(np.int32))
    padded = context.pad(x, [0, 0, depth.begins[0], 0, 0], [0, 0, depth.ends[0], 0, 0])
    taken = context.gather(padded, places, axis=2)  # [batch, channels, count, reach, height, width]
    together = context.transpose(taken, permutation=[0, 2, 1, 3, 4, 5])
    y = context.conv2d(
        context.reshape(together, [x.shape[0] * count, x.shape[1] * reach, *x.shape[3:]]),
        context.reshape(w, [w.shape[0], w.shape[1] * reach, *w.shape[3:]]),
        **images.two_axes,
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
    attributes: ConvolutionAttributes,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
) -> MLOperand:
    """Transpose a convolution; the padding is what is cut from its output."""
    attributes.check_kernel(w)
    auto_pad, group = attributes.auto_pad, attributes.group
    slid = windows(x, w.shape[2:], attrs.evolve(attributes, pads=None))
    appended = tuple(output_padding or (0,) * len(slid.sizes))
    if len(appended) != len(slid.sizes):
        refuse("attribute output_padding", appended, f"of length {len(slid.sizes)}")
    begins, ends = given_padding(auto_pad, attributes.pads, len(slid.sizes))
    if output_shape is not None or auto_pad.startswith("SAME"):
        appended = _appended_to(output_shape, slid, appended)
        begins, ends = _cut_to(output_shape, slid, appended, more_at_end=auto_pad == "SAME_UPPER")
    slid = attrs.evolve(slid, begins=begins, ends=ends)
    if len(slid.sizes) > MAX_SPATIAL_AXES:
        return _conv_transpose_volumes(context, x, w, b, slid, group, appended)
    images, filters = as_images(context, x), as_images(context, w)
    y = context.conv_transpose2d(
        images, filters, **slid.two_axes, output_padding=lifted(appended, [0]), groups=group, bias=b
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
        **images.two_axes,
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
    activation: Literal["none", "silu", "swish"],
) -> list[MLOperand | None]:
    """A convolution of each channel with what came before, and what the next call has to know of it."""
    if input.rank != 3 or weight.shape[:2] != (input.shape[1], 1) or weight.rank != 3:
        refuse("the shape of the weight", weight.shape, f"[channels, 1, width], for the input {list(input.shape)}")
    before = weight.shape[2] - 1
    if past_state is None:
        padded = context.pad(input, [0, 0, before], [0, 0, 0]) if before else input
    else:
        padded = context.concat([past_state, input], 2)
    y = conv(context, padded, weight, bias, attributes=ConvolutionAttributes(group=input.shape[1]))
    if activation != "none":
        y = context.mul(y, context.sigmoid(y))
    if not before or context.wanted[1:] != (True,):
        return [y]
    return [y, context.slice(padded, [0, 0, padded.shape[2] - before], [*input.shape[:2], before])]


@rule("Col2Im", 18)
def images_of_columns(
    context: ConversionContext,
    input: MLOperand,
    image_shape: Integers,
    block_shape: Integers,
    *,
    attributes: WindowAttributes,
) -> MLOperand:
    """Add blocks up to images, where windows would have taken them: the transpose of a convolution with ones."""
    axes, size = len(image_shape), math.prod(block_shape)
    sizes = [*image_shape, *block_shape]
    if input.rank != 3 or not axes or len(block_shape) != axes or min(sizes) < 1 or input.shape[1] % size:
        refuse("the shapes of the input, images and blocks", [*input.shape, *sizes], "[N, C · block, L] and as many")
    begins, ends = given_padding("NOTSET", attributes.pads, axes)
    strides, dilations = attributes.strides or (1,) * axes, attributes.dilations or (1,) * axes
    if not len(strides) == len(dilations) == axes or min(*strides, *dilations) < 1:
        refuse("attributes strides and dilations", [*strides, *dilations], f"{axes} numbers each, at least 1")
    slid = SlidingWindows(image_shape, block_shape, tuple(strides), tuple(dilations), begins, ends)
    if math.prod(slid.counts) != input.shape[2] or min(slid.counts) < 1:
        refuse("the number of blocks", input.shape[2], f"{list(slid.counts)} together")
    channels = input.shape[1] // size
    context.reserve(4 * input.shape[1] * size)
    ones = np.tile(np.eye(size, dtype=input.data_type), (channels, 1)).reshape(input.shape[1], 1, *block_shape)
    missing = [
        begin + length + end - (count - 1) * stride - reach
        for begin, length, end, count, stride, reach in zip(
            begins, image_shape, ends, slid.counts, strides, slid.reaches, strict=True
        )
    ]
    return conv_transpose(
        context,
        context.reshape(input, [*input.shape[:2], *slid.counts]),
        context.constant(ones),
        attributes=ConvolutionAttributes(dilations=dilations, group=channels, pads=[*begins, *ends], strides=strides),
        output_padding=missing,
    )


def _appended_to(output_shape: Sequence[int] | None, slid: SlidingWindows, appended: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes to append so that windows reach a given shape: less than a stride, or it is refused."""
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
    """Return what to cut off for the output to have a given shape, by default the input's times the strides."""
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
