"""Convolutions on arrays."""

from math import prod
from typing import Any

import numpy as np

from webnn_py.device.on_numpy.bands import inside, steps_of, tile_size
from webnn_py.device.on_numpy.blas import float32, for_blas
from webnn_py.device.on_numpy.table import Array, Kernel, kernel
from webnn_py.device.on_numpy.unrolling import (
    PRODUCT_TILE,
    Conv,
    filter_matrices,
    shifted_pixels,
    unrolled_pixels,
    unrolled_planes,
)
from webnn_py.graph import Node
from webnn_py.operators import convolution
from webnn_py.operators.windows import Slide


def multiply_adds(node: Node) -> float:
    """One for each element of the output and each that it sums over."""
    return Conv.of(node).multiply_adds


def transposed_multiply_adds(node: Node) -> float:
    """One for each element of the input and each that it is added to."""
    conv = Conv.of(node)
    return float(node.operand("input").element_count * conv.group_outputs * len(conv.taps))


@kernel(convolution.conv2d, work=multiply_adds)
def conv2d(node: Node) -> Kernel:
    conv = Conv.of(node)
    if conv.is_pointwise and conv.data_type == "float32":
        convolve = pointwise(conv)
    elif conv.layout == "nhwc" and conv.groups == 1:
        convolve = unrolled_pixels(conv)
    elif conv.layout == "nhwc" and conv.is_depthwise:
        convolve = shifted_pixels(conv)
    else:
        convolve = unrolled_planes(conv)
    return conv.upright(convolve)


def pointwise(conv: Conv) -> Kernel:
    """A convolution of single elements: a matrix product of the filter and the images as they are."""
    nchw = conv.layout == "nchw"
    steps = tuple(slice(None, None, slide.stride) for slide in conv.slides)
    where = (slice(None), slice(None), *steps) if nchw else (slice(None), *steps)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        output = rest[-1]
        matrices = filter_matrices(conv, filter_)
        if nchw:
            columns = images[where].reshape(conv.batch, conv.groups, conv.group_inputs, -1)
            result = output.reshape(conv.batch, conv.groups, conv.group_outputs, -1)
            np.matmul(for_blas(matrices), for_blas(columns), out=result)
        else:
            rows = images[where].reshape(-1, conv.groups, conv.group_inputs).swapaxes(0, 1)
            pixels = output.reshape(-1, conv.groups, conv.group_outputs).swapaxes(0, 1)
            np.matmul(for_blas(rows), for_blas(matrices.swapaxes(1, 2)), out=pixels)
        if conv.has_bias:
            np.add(output, rest[0][:, None, None] if nchw else rest[0], out=output)

    return run


@kernel(convolution.conv_transpose2d, work=transposed_multiply_adds)
def conv_transpose2d(node: Node) -> Kernel:
    """Multiply all elements by the filter, then add what falls on the same place: tile by tile of input rows."""
    conv = Conv.of(node)
    if conv.input_channels % conv.groups:
        raise ValueError(f"{node}: {conv.groups} groups do not divide {conv.input_channels} input channels")
    rows = tile_size(conv.slides[0].size, PRODUCT_TILE / (conv.slides[1].size * conv.output_channels * len(conv.taps)))
    spread = np.empty(rows * conv.slides[1].size * conv.output_channels * len(conv.taps), np.float32)
    steps = [
        (slice(start, start + rows), spread_views(conv, spread, start, rows))
        for start in range(0, conv.slides[0].size, rows)
    ]
    channels, sizes = conv.output_channels, conv.output_sizes
    shape = (channels, *sizes) if conv.layout == "nchw" else (*sizes, channels)
    sums = np.empty((0 if conv.data_type == "float32" else 1, *shape), np.float32)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        matrices = for_blas(spreading_matrices(conv, float32(filter_)))
        bias = np.zeros(1, np.float32)
        if conv.has_bias:
            bias = rest[0][:, None, None] if conv.layout == "nchw" else rest[0]
        for image, output in zip(images, rest[-1], strict=True):
            total = sums[0] if len(sums) else output
            np.copyto(total, bias)
            for where, (products, moves) in steps:
                multiply_rows(conv, image, where, matrices, products)
                for target, source in moves:
                    place = by_group(conv, total)[target]
                    np.add(place, source, out=place)
            if total is not output:
                np.copyto(output, total, casting="same_kind")

    return conv.upright(run)


def spreading_matrices(conv: Conv, filter_: Array) -> Array:
    """The filter as [groups, elements that one input element spreads to, input channels of a group].

    What it spreads to is in the filter's own order for nchw; for nhwc in the order height, width, channel.
    """
    if conv.layout == "nhwc" and conv.filter_layout != "hwoi":
        filter_ = filter_.transpose([conv.filter_layout.index(axis) for axis in "hwoi"])
    elif conv.filter_layout == "iohw":
        return filter_.reshape(conv.groups, conv.group_inputs, -1).swapaxes(1, 2)
    return filter_.reshape(-1, conv.groups, conv.group_inputs).swapaxes(0, 1)


def multiply_rows(conv: Conv, image: Array, where: slice, matrices: Array, products: Array) -> None:
    """Multiply rows of an image by the filter."""
    if conv.layout == "nchw":
        columns = float32(image[:, where]).reshape(conv.groups, conv.group_inputs, -1)
        np.matmul(matrices, for_blas(columns), out=products)
    else:
        pixels = float32(image[where]).reshape(-1, conv.groups, conv.group_inputs).swapaxes(0, 1)
        np.matmul(for_blas(pixels), matrices.swapaxes(1, 2), out=products)


def by_group(conv: Conv, image: Array) -> Array:
    """An image as (groups, channels of a group, height, width), or with the channels of a group last."""
    if conv.layout == "nchw":
        return image.reshape(conv.groups, conv.group_outputs, *conv.output_sizes)
    return image.reshape(*conv.output_sizes, conv.groups, conv.group_outputs).transpose(2, 0, 1, 3)


def spread_views(conv: Conv, spread: Array, start: int, rows: int) -> tuple[Array, list[tuple[Any, Array]]]:
    """Where the products of ``rows`` rows of the input from ``start`` go.

    Returns:
        The products as matrices of each group; and for each element of a window, where in the output by group to
        add which of them.
    """
    vertical, horizontal = conv.slides
    rows = min(rows, vertical.size - start)
    window = (vertical.window, horizontal.window)
    pixels = (rows, horizontal.size)
    spread = spread[: prod(pixels) * prod(window) * conv.output_channels]
    if conv.layout == "nhwc":
        views = spread.reshape(conv.groups, *pixels, *window, conv.group_outputs).transpose(3, 4, 0, 1, 2, 5)
        matrices = spread.reshape(conv.groups, prod(pixels), -1)
        lead: tuple[slice, ...] = (slice(None),)
    else:
        matrices = spread.reshape(conv.groups, -1, prod(pixels))
        if conv.filter_layout == "hwoi":
            views = spread.reshape(conv.groups, *window, conv.group_outputs, *pixels).transpose(1, 2, 0, 3, 4, 5)
        else:
            views = spread.reshape(conv.groups, conv.group_outputs, *window, *pixels).transpose(2, 3, 0, 1, 4, 5)
        lead = (slice(None), slice(None))
    moves = []
    for i, j in conv.taps:
        to_rows, from_rows = landing(vertical, i, start, rows, conv.output_sizes[0])
        to_columns, from_columns = landing(horizontal, j, 0, horizontal.size, conv.output_sizes[1])
        source = views[i, j][(*lead, from_rows, from_columns)]
        if source.size:
            moves.append(((*lead, to_rows, to_columns), source))
    return matrices, moves


def landing(slide: Slide, element: int, start: int, count: int, size: int) -> tuple[slice, slice]:
    """Where ``count`` input positions from ``start`` fall in the output by one element of the window; and which do."""
    first = start * slide.stride + element * slide.dilation - slide.begin
    begin, end = inside(first, slide.stride, count, size)
    return steps_of(first, slide.stride, begin, end), slice(begin, end)
