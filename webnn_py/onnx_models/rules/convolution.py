"""Convolutions over one to three axes."""

import math
from collections.abc import Sequence

import attrs
import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.core.operators.windows import Slide
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.windows import (
    MAX_SPATIAL_AXES,
    ConvolutionAttributes,
    WindowAttributes,
    as_images,
    counts,
    given_padding,
    like,
    places_of,
    shared,
    sliding,
    windows,
)
from webnn_py.onnx_models.rule_table.declaration import Integers, rule


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
    if len(slid) > MAX_SPATIAL_AXES:
        return _conv_volumes(context, x, w, b, slid, attributes.group)
    images, filters = as_images(context, x), as_images(context, w)
    y = context.conv2d(images, filters, **sliding(slid), groups=attributes.group, bias=b)
    return like(context, y, x)


def _conv_volumes(
    context: ConversionContext, x: MLOperand, w: MLOperand, b: MLOperand | None, slid: Sequence[Slide], group: int
) -> MLOperand:
    """Convolve volumes: each output slice is one of images whose channels are those of a window's slices together."""
    depth = slid[0]
    (count,), reach = counts([depth]), depth.window
    if count < 1:
        refuse("the windows' depth", (depth.reach,), f"at most that of the padded input {list(x.shape)}")
    context.reserve(4 * count * reach)
    places = context.constant(places_of(attrs.evolve(depth, begin=0), count).astype(np.int32))
    padded = context.pad(x, [0, 0, depth.begin, 0, 0], [0, 0, depth.end, 0, 0])
    taken = context.gather(padded, places, axis=2)  # [batch, channels, count, reach, height, width]
    together = context.transpose(taken, permutation=[0, 2, 1, 3, 4, 5])
    y = context.conv2d(
        context.reshape(together, [x.shape[0] * count, x.shape[1] * reach, *x.shape[3:]]),
        context.reshape(w, [w.shape[0], w.shape[1] * reach, *w.shape[3:]]),
        **sliding(slid[1:]),
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
    appended = (0,) * len(slid) if output_padding is None else tuple(output_padding)
    if len(appended) != len(slid):
        refuse("attribute output_padding", appended, f"of length {len(slid)}")
    begins, ends = given_padding(auto_pad, attributes.pads, len(slid))
    if output_shape is not None or auto_pad.startswith("SAME"):
        appended = _appended_to(output_shape, slid, appended)
        begins, ends = _cut_to(output_shape, slid, appended, more_at_end=auto_pad == "SAME_UPPER")
    ends_of = zip(slid, begins, ends, strict=True)
    slid = [attrs.evolve(item, begin=begin, end=end) for item, begin, end in ends_of]
    if len(slid) > MAX_SPATIAL_AXES:
        return _conv_transpose_volumes(context, x, w, b, slid, group, appended)
    images, filters = as_images(context, x), as_images(context, w)
    y = context.conv_transpose2d(
        images, filters, **sliding(slid), output_padding=[0, *appended][-MAX_SPATIAL_AXES:], groups=group, bias=b
    )
    return like(context, y, x)


def _conv_transpose_volumes(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    b: MLOperand | None,
    slid: Sequence[Slide],
    group: int,
    appended: Sequence[int],
) -> MLOperand:
    """Transpose volumes: each slice as images, then a product with a matrix that sums the parts of each slice."""
    depth, channels = slid[0], w.shape[1] * group
    size, reach, new_size = depth.size, depth.window, depth.transposed_size + appended[0]
    if new_size < 1:
        refuse("the output's depth", new_size, "at least 1")
    slices = context.reshape(
        context.transpose(x, permutation=[0, 2, 1, 3, 4]), [x.shape[0] * size, x.shape[1], *x.shape[3:]]
    )
    y = context.conv_transpose2d(
        slices,
        context.reshape(w, [w.shape[0], w.shape[1] * reach, *w.shape[3:]]),
        **sliding(slid[1:]),
        output_padding=appended[1:],
        groups=group,
    )
    context.reserve(5 * new_size * size * reach)
    meets = np.arange(new_size)[:, np.newaxis, np.newaxis] == places_of(depth, size)
    parts = context.reshape(y, [x.shape[0], size, channels, reach, math.prod(y.shape[2:])])
    parts = context.reshape(
        context.transpose(parts, permutation=[0, 2, 1, 3, 4]),
        [x.shape[0], channels, size * reach, math.prod(y.shape[2:])],
    )
    added = context.matmul(context.constant(meets.reshape(new_size, -1).astype(x.data_type)), parts)
    volumes = context.reshape(added, [x.shape[0], channels, new_size, *y.shape[2:]])
    return volumes if b is None else context.add(volumes, context.reshape(b, [channels, 1, 1, 1]))


@rule("Col2Im", 18)
def images_of_columns(
    context: ConversionContext,
    input: MLOperand,
    image_shape: Integers,
    block_shape: Integers,
    *,
    attributes: WindowAttributes,
) -> MLOperand:
    """Sum blocks into images at their windows' places: the transpose of a convolution with ones."""
    axes, size = len(image_shape), math.prod(block_shape)
    sizes = [*image_shape, *block_shape]
    if input.rank != 3 or not axes or len(block_shape) != axes or min(sizes) < 1 or input.shape[1] % size:
        refuse("the shapes of the input, images and blocks", [*input.shape, *sizes], "[N, C · block, L] and as many")
    begins, ends = given_padding("NOTSET", attributes.pads, axes)
    strides, dilations = attributes.strides or (1,) * axes, attributes.dilations or (1,) * axes
    if not len(strides) == len(dilations) == axes or min(*strides, *dilations) < 1:
        refuse("attributes strides and dilations", [*strides, *dilations], f"{axes} numbers each, at least 1")
    slid = list(map(Slide, image_shape, block_shape, begins, ends, strides, dilations))
    blocks = counts(slid)
    if math.prod(blocks) != input.shape[2] or min(blocks) < 1:
        refuse("the number of blocks", input.shape[2], f"{list(blocks)} together")
    channels = input.shape[1] // size
    context.reserve(4 * input.shape[1] * size)
    ones = np.tile(np.eye(size, dtype=input.data_type), (channels, 1)).reshape(input.shape[1], 1, *block_shape)
    missing = [
        item.begin + item.size + item.end - (count - 1) * item.stride - item.reach
        for item, count in zip(slid, blocks, strict=True)
    ]
    return conv_transpose(
        context,
        context.reshape(input, [*input.shape[:2], *blocks]),
        context.constant(ones),
        attributes=ConvolutionAttributes(dilations=dilations, group=channels, pads=[*begins, *ends], strides=strides),
        output_padding=missing,
    )


def _appended_to(output_shape: Sequence[int] | None, slid: Sequence[Slide], appended: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes to append so that windows reach a given shape: less than a stride, or it is refused."""
    if output_shape is None or len(output_shape) != len(slid):
        return tuple(appended)
    sizes = zip(output_shape, slid, appended, strict=True)
    return tuple([min(item.stride - 1, max(more, wanted - item.transposed_size)) for wanted, item, more in sizes])


def _cut_to(
    output_shape: Sequence[int] | None, slid: Sequence[Slide], appended: Sequence[int], *, more_at_end: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what to cut off for the output to have a given shape, by default the input's times the strides."""
    wanted = [item.size * item.stride for item in slid] if output_shape is None else output_shape
    if len(wanted) != len(slid):
        refuse("attribute output_shape", tuple(wanted), f"of length {len(slid)}")
    whole = [item.transposed_size + more for item, more in zip(slid, appended, strict=True)]
    if any(size > most for size, most in zip(wanted, whole, strict=True)):
        refuse("the output's shape", tuple(wanted), f"at most {whole}, what the windows reach")
    return shared([most - size for size, most in zip(wanted, whole, strict=True)], more_at_end=more_at_end)
