"""Convolution: what each element of a window gives is an image of its own."""

import math
from collections.abc import Iterator, Sequence
from functools import reduce

from webnn_py.core.decompositions.common import (
    Slides,
    channels_first,
    cut,
    joined,
    laid_out,
    padded,
    widened,
)
from webnn_py.core.operators.convolution import Conv2dFilterLayout, ConvTranspose2dFilterLayout, transposed_sizes
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.windows import InputLayout, slides


def _elements_of_windows(
    builder: Builder, images: MLOperand, windows: Slides, sizes: Sequence[int], fill: MLNumber
) -> list[MLOperand]:
    """For each element of a window, row by row, the images [batch, channels, *sizes] of all windows' ones."""
    for axis, slide, size in zip((2, 3), windows, sizes, strict=True):
        images = padded(builder, images, axis, slide.begin, slide.needed_end(size), fill)
    spans = [(size - 1) * slide.stride + 1 for slide, size in zip(windows, sizes, strict=True)]
    strides = [1, 1, windows[0].stride, windows[1].stride]
    return [
        builder.slice(images, [0, 0, row, column], [*images.shape[:2], *spans], strides=strides)
        for row, column in _offsets(windows)
    ]


def _offsets(windows: Slides) -> Iterator[tuple[int, int]]:
    rows, columns = windows
    for row in range(rows.window):
        for column in range(columns.window):
            yield row * rows.dilation, column * columns.dilation


@widened
def conv2d(
    builder: Builder,
    input: MLOperand,
    filter: MLOperand,
    *,
    padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    input_layout: InputLayout = "nchw",
    filter_layout: Conv2dFilterLayout = "oihw",
    bias: MLOperand | None = None,
) -> MLOperand:
    """A product of the filters with the elements of all windows."""
    images = channels_first(builder, input, input_layout)
    filters = builder.transpose(filter, permutation=[filter_layout.index(axis) for axis in "oihw"])
    outputs, depth, *window = filters.shape
    batch, _, *sizes = images.shape
    windows = slides(sizes, window, padding, strides, dilations)
    height, width = (math.floor(slide.output_size) for slide in windows)
    elements = [
        builder.reshape(element, [batch, groups, depth, 1, height * width])
        for element in _elements_of_windows(builder, images, windows, (height, width), 0)
    ]
    columns = builder.reshape(joined(builder, elements, 3), [batch, groups, depth * len(elements), height * width])
    rows = builder.reshape(filters, [groups, outputs // groups, depth * len(elements)])
    result = builder.reshape(builder.matmul(rows, columns), [batch, outputs, height, width])
    return laid_out(builder, _with_bias(builder, result, bias), input_layout)


def _with_bias(builder: Builder, images: MLOperand, bias: MLOperand | None) -> MLOperand:
    return images if bias is None else builder.add(images, builder.reshape(bias, [*bias.shape, 1, 1]))


@widened
def conv_transpose2d(
    builder: Builder,
    input: MLOperand,
    filter: MLOperand,
    *,
    padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_sizes: Sequence[int] | None = None,
    groups: int = 1,
    input_layout: InputLayout = "nchw",
    filter_layout: ConvTranspose2dFilterLayout = "iohw",
    bias: MLOperand | None = None,
) -> MLOperand:
    """A product of the filters with the input; each element of a window is added where it belongs.

    The input is not spread with zeros, which an infinite filter would make NaN.
    """
    images = channels_first(builder, input, input_layout)
    filters = builder.transpose(filter, permutation=[filter_layout.index(axis) for axis in "iohw"])
    inputs, outputs, *window = filters.shape
    batch, _, *sizes = images.shape
    windows = slides(sizes, window, padding, strides, dilations)
    new_sizes, count = transposed_sizes(windows, output_padding, output_sizes), math.prod(window)
    rows = builder.reshape(filters, [groups, inputs // groups, outputs * count])
    columns = builder.reshape(images, [batch, groups, inputs // groups, math.prod(sizes)])
    products = builder.matmul(builder.transpose(rows, permutation=[0, 2, 1]), columns)
    products = builder.reshape(products, [batch * groups * outputs, count, *sizes])
    placed = [
        _placed(builder, cut(builder, products, 1, index, index + 1), windows, offset, new_sizes)
        for index, offset in enumerate(_offsets(windows))
    ]
    result = builder.reshape(reduce(builder.add, placed), [batch, outputs * groups, *new_sizes])
    return laid_out(builder, _with_bias(builder, result, bias), input_layout)


def _placed(
    builder: Builder, images: MLOperand, windows: Slides, offset: Sequence[int], new_sizes: Sequence[int]
) -> MLOperand:
    """Return the output's share of one element of the windows, at an offset in them: [images, 1, *new_sizes]."""
    for axis, slide, before, size in zip((2, 3), windows, offset, new_sizes, strict=True):
        spread = _spread(builder, images, axis, slide.stride)
        whole = max(slide.begin + size, before + spread.shape[axis])
        spread = padded(builder, spread, axis, before, whole - before - spread.shape[axis], 0)
        images = cut(builder, spread, axis, slide.begin, slide.begin + size)
    return images


def _spread(builder: Builder, images: MLOperand, axis: int, stride: int) -> MLOperand:
    """Return the images with zeros between their elements along an axis."""
    if stride == 1 or images.shape[axis] == 1:
        return images
    before, size, after = images.shape[:axis], images.shape[axis], images.shape[axis + 1 :]
    flat = builder.reshape(images, [math.prod(before), size, 1, math.prod(after)])
    spread = builder.reshape(padded(builder, flat, 2, 0, stride - 1, 0), [*before, size * stride, *after])
    return cut(builder, spread, axis, 0, (size - 1) * stride + 1)
