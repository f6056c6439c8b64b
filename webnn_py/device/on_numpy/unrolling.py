"""Convolutions as matrix products of the filter and unrolled windows, or as sums of shifted images."""

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, Final, Self

import attrs
import numpy as np

from webnn_py.device.on_numpy.bands import Band, tile_size, tile_starts
from webnn_py.device.on_numpy.blas import float32, for_blas
from webnn_py.device.on_numpy.table import Array, Kernel
from webnn_py.graph import Node
from webnn_py.operators.convolution import filter_shape
from webnn_py.operators.windows import Slide, image_shape, slides

PRODUCT_TILE: Final = 2**20
"""The elements of an unrolled tile for matrix products: the fewer tiles, the better BLAS works."""

VECTOR_TILE: Final = 2**17
"""The elements of an unrolled tile where a group has few outputs: BLAS waits for memory, so a tile fits in cache."""

SHIFTED_TILE: Final = 2**16
"""The elements of a tile of shifted images: three tiles fit in cache."""

FEW_OUTPUTS: Final = 4
"""The output channels of a group up to which BLAS waits for memory."""

MOST_SHIFTS: Final = 64
"""The elements of a window up to which the filter is repeated for every column."""

MOST_EXCESS: Final = 1.3
"""How much wider than the output an unrolled tile may be, so that its rows are copied as one run."""

CHANNELS_IN_LINE: Final = 16
"""The float32 channels of one pixel that a line of the cache has."""


@attrs.frozen
class Conv:
    """What a node convolves: sizes and layouts.

    Attributes:
        slides: along the height and the width of the images.
        output_sizes: the height and the width of the output.
        has_bias: whether there is a bias.
        is_turned: whether height and width are exchanged: a single row of windows becomes a column of them, which
            can be cut into tiles of rows.
    """

    batch: int
    groups: int
    input_channels: int
    output_channels: int
    slides: tuple[Slide, Slide]
    output_sizes: tuple[int, int]
    layout: str
    filter_layout: str
    data_type: str
    has_bias: bool
    is_turned: bool

    @classmethod
    def of(cls, node: Node) -> Self:
        """Read a node."""
        options: Any = node.options
        layout = options["input_layout"]
        batch, input_channels, *sizes = image_shape(node.operand("input").shape, layout)
        _, output_channels, *output_sizes = image_shape(node.outputs[0].shape, layout)
        window = filter_shape(node.operand("filter").shape, options["filter_layout"])[2:]
        vertical, horizontal = slides(sizes, window, options["padding"], options["strides"], options["dilations"])
        is_turned = vertical.size == vertical.window == output_sizes[0] == 1 and not vertical.begin
        return cls(
            batch,
            options["groups"],
            input_channels,
            output_channels,
            (horizontal, vertical) if is_turned else (vertical, horizontal),
            (output_sizes[1], output_sizes[0]) if is_turned else (output_sizes[0], output_sizes[1]),
            layout,
            options["filter_layout"],
            node.outputs[0].data_type,
            "bias" in node.operands,
            is_turned,
        )

    @property
    def group_inputs(self) -> int:
        """The input channels of a group."""
        return self.input_channels // self.groups

    @property
    def group_outputs(self) -> int:
        """The output channels of a group."""
        return self.output_channels // self.groups

    @property
    def taps(self) -> list[tuple[int, int]]:
        """The elements of a window."""
        return [(i, j) for i in range(self.slides[0].window) for j in range(self.slides[1].window)]

    @property
    def multiply_adds(self) -> float:
        """One for each element of the output and each that it sums over."""
        windows = float(self.batch * prod(self.output_sizes))
        return windows * self.output_channels * self.group_inputs * len(self.taps)

    @property
    def has_few_outputs(self) -> bool:
        """Whether BLAS waits for memory."""
        return self.group_outputs <= FEW_OUTPUTS

    @property
    def multiplies_bias(self) -> bool:
        """Whether the bias is one more column of the filter's matrix, times one: a pass over the output less."""
        return self.has_bias and self.has_few_outputs

    @property
    def is_depthwise(self) -> bool:
        """Whether every channel has a filter, or a few, of its own, and a small one."""
        return self.group_inputs == 1 and self.has_few_outputs and len(self.taps) <= MOST_SHIFTS

    @property
    def is_window_first(self) -> bool:
        """Whether the filter has height and width before the input channels."""
        return self.filter_layout in ("hwio", "ohwi")

    @property
    def is_pointwise(self) -> bool:
        """Whether every window is one element of the images themselves."""
        return all(slide.window == 1 and not slide.begin and not slide.end for slide in self.slides)

    def upright(self, convolve: Kernel) -> Kernel:
        """The kernel for the node's images, given one for images turned as this says."""
        if not self.is_turned:
            return convolve
        axes = (2, 3) if self.layout == "nchw" else (1, 2)

        def run(images: Array, filter_: Array, *rest: Array) -> None:
            convolve(images.swapaxes(*axes), filter_, *rest[:-1], rest[-1].swapaxes(*axes))

        return run


def filter_matrices(conv: Conv, filter_: Array) -> Array:
    """The filter as [groups, output channels of a group, elements of a window]; a view where the filter is dense.

    The elements of a window are in the filter's own order.
    """
    if conv.filter_layout in ("oihw", "ohwi"):
        return filter_.reshape(conv.groups, conv.group_outputs, -1)
    return filter_.reshape(-1, conv.groups, conv.group_outputs).transpose(1, 2, 0)


def window_first(conv: Conv, filter_: Array) -> Array:
    """Like filter_matrices, but the elements of a window in the order height, width, input channel."""
    order = [conv.filter_layout.index(axis) for axis in "ohwi"]
    return filter_.transpose(order).reshape(conv.groups, conv.group_outputs, -1)


def emit(result: Array, bias: Array | None, output: Array) -> None:
    """Move results to the output, plus the bias, rounding them once to its data type."""
    if bias is not None and output.dtype != np.float32:
        np.add(result, bias, out=output)
        return
    if result is not output:
        np.copyto(output, result, casting="same_kind")
    if bias is not None:
        # Apart from the copy: the output's rows follow each other in memory, those of the result need not.
        np.add(output, bias, out=output)


@attrs.frozen
class Tiles:
    """How a convolution is cut into tiles of one size.

    Attributes:
        images: the images of a tile.
        groups: its groups.
        rows: its rows of windows.
        row_starts: where rows start.
        starts: each tile's first image, group and row.
    """

    images: int
    groups: int
    rows: int
    row_starts: list[int]
    starts: list[tuple[int, int, int]]

    @classmethod
    def of(cls, conv: Conv, most: int, least_groups: int = 1) -> Self:
        """Tiles of about ``most`` elements, and of ``least_groups``; of whole planes and images as far as may be."""
        height, width = conv.output_sizes
        fitting = most / ((conv.group_inputs * len(conv.taps) + conv.group_outputs) * width)
        rows = tile_size(height, fitting / least_groups)
        groups = tile_size(conv.groups, max(fitting / rows, least_groups))
        whole = rows == height and groups == conv.groups
        images = tile_size(conv.batch, fitting / rows / groups) if whole else 1
        row_starts = tile_starts(height, rows)
        starts = product(tile_starts(conv.batch, images), tile_starts(conv.groups, groups), row_starts)
        return cls(images, groups, rows, row_starts, list(starts))


@attrs.frozen
class Planes:
    """The arrays of one call: nchw images, the filter as matrices, the bias, and the output."""

    images: Array
    matrices: Array
    bias: Array | None
    output: Array


def unrolled_planes(conv: Conv) -> Kernel:
    """A convolution channel by channel: the filter times a matrix that has a column per window, tile by tile.

    nhwc images are taken for nchw images of another memory layout.
    """
    nchw = conv.layout == "nchw"
    few = conv.has_few_outputs
    least_groups = 1 if nchw else -(-CHANNELS_IN_LINE // conv.group_inputs)
    tiles = Tiles.of(conv, VECTOR_TILE if few else PRODUCT_TILE, least_groups)
    convolve_tile = planes_tile(conv, tiles)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        bias = float32(rest[0]) if conv.has_bias else None
        output = rest[-1]
        if not nchw:
            images, output = images.transpose(0, 3, 1, 2), output.transpose(0, 3, 1, 2)
        matrices = filter_matrices(conv, float32(filter_))
        if bias is not None and conv.multiplies_bias:
            matrices = np.concatenate((matrices, bias.reshape(conv.groups, -1, 1)), axis=2)
            bias = None
        elif bias is not None:
            bias = bias[:, None, None, None]
        planes = Planes(images, for_blas(matrices), bias, output)
        for start in tiles.starts:
            convolve_tile(planes, *start)

    return run


def planes_tile(conv: Conv, tiles: Tiles) -> Callable[[Planes, int, int, int], None]:
    """The function that computes the tile with a first image, group and row."""
    width = conv.output_sizes[1]
    inputs, outputs = tiles.groups * conv.group_inputs, tiles.groups * conv.group_outputs
    band = Band((inputs, tiles.images), (), conv.slides, (tiles.rows, width), tiles.row_starts)
    columns = band.pitch if band.pitch <= MOST_EXCESS * width else width
    patches, moves = columns_of(conv, band, tiles, columns)
    direct = tiles.images == 1 and columns == width and conv.data_type == "float32" and conv.layout == "nchw"
    staged = np.empty((0 if direct else outputs, tiles.images, tiles.rows, columns), np.float32)
    staged_matrices = staged.reshape(tiles.groups, -1, patches.shape[2])

    def run(planes: Planes, image: int, group: int, row: int) -> None:
        images, groups, rows = (
            slice(image, image + tiles.images),
            slice(group, group + tiles.groups),
            slice(row, row + tiles.rows),
        )
        channels = slice(group * conv.group_inputs, group * conv.group_inputs + inputs)
        band.fill(planes.images[images, channels].swapaxes(0, 1), row)
        for target, source in moves:
            np.copyto(target, source)
        result = staged_matrices
        if direct:
            output = planes.output.reshape(conv.batch, conv.groups, conv.group_outputs, -1)
            result = output[image, groups, :, row * width : (row + tiles.rows) * width]
        np.matmul(planes.matrices[groups], patches, out=result)
        channels = slice(group * conv.group_outputs, group * conv.group_outputs + outputs)
        region = planes.output[images, channels, rows].swapaxes(0, 1)
        bias = None if planes.bias is None else planes.bias[channels]
        emit(region if direct else staged[..., :width], bias, region)

    return run


def columns_of(conv: Conv, band: Band, tiles: Tiles, columns: int) -> tuple[Array, list[tuple[Array, Array]]]:
    """The matrices (groups, elements of a window, windows) of a tile, and what to copy where to fill them."""
    height, width = (slide.window for slide in conv.slides)
    windows = (tiles.images, tiles.rows, columns)
    channels = (tiles.groups, conv.group_inputs)
    plane = band.plane((0, 0))
    if height * width == 1 and plane.shape[2:] == windows[1:] and not conv.multiplies_bias:
        return plane.reshape(*channels, -1), []
    elements = conv.group_inputs * height * width
    patches = np.ones((tiles.groups, elements + conv.multiplies_bias, *windows), np.float32)
    target = patches[:, :elements]
    if conv.is_window_first:
        target = target.reshape(tiles.groups, height, width, -1, *windows).transpose(0, 3, 4, 1, 2, 5, 6)
    else:
        target = target.reshape(tiles.groups, -1, height, width, *windows).transpose(0, 1, 4, 2, 3, 5, 6)
    moves = [
        (target[:, :, :, rows, rest], taps.reshape(*channels, *taps.shape[1:]))
        for rows, rest, taps in band.taps(columns)
    ]
    return patches.reshape(*patches.shape[:2], -1), moves


def unrolled_pixels(conv: Conv) -> Kernel:
    """A convolution of nhwc images in one group: a matrix that has a row per window times the filter, by tiles."""
    height, width = conv.output_sizes
    tiles = Tiles.of(conv, PRODUCT_TILE)
    windows, fill = window_views(conv, tiles)
    # Where the windows outnumber the output channels, the filter is what is cheaper to copy in another order.
    repack = not conv.is_window_first and conv.output_channels < conv.batch * height * width
    if not conv.is_window_first and not repack:
        windows = windows.transpose(0, 1, 2, 5, 3, 4)
    patches = np.empty(windows.shape, np.float32)
    matrix = patches.reshape(tiles.images * tiles.rows * width, -1)
    direct = conv.data_type == "float32"
    staged = np.empty((0 if direct else tiles.images, tiles.rows, width, conv.output_channels), np.float32)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        output = rest[-1]
        bias = float32(rest[0]) if conv.has_bias else None
        matrices = (window_first if repack else filter_matrices)(conv, float32(filter_))
        factors = for_blas(matrices[0].T)
        for image, _, row in tiles.starts:
            fill(images[image : image + tiles.images], row)
            np.copyto(patches, windows)
            region = output[image : image + tiles.images, row : row + tiles.rows]
            result = region if direct else staged
            np.matmul(matrix, factors, out=result.reshape(-1, conv.output_channels))
            emit(result, bias, region)

    return run


def window_views(conv: Conv, tiles: Tiles) -> tuple[Array, Callable[[Array, int], None]]:
    """The windows of a tile of nhwc images: (images, rows, columns, height and width of a window, channels).

    Returns:
        The view, and the function of images and a row start that fills it.
    """
    vertical, horizontal = conv.slides
    dense = tuple(attrs.evolve(slide, window=slide.reach, stride=1, dilation=1) for slide in conv.slides)
    sizes = ((tiles.rows - 1) * vertical.stride + 1, (conv.output_sizes[1] - 1) * horizontal.stride + 1)
    starts = {row: row * vertical.stride for row in tiles.row_starts}
    band = Band((tiles.images,), (conv.input_channels,), (dense[0], dense[1]), sizes, list(starts.values()))
    plane = band.plane((0, 0))
    image, row, column, channel = plane.strides
    view = np.ndarray(
        (
            *(tiles.images, tiles.rows, conv.output_sizes[1]),
            *(vertical.window, horizontal.window, conv.input_channels),
        ),
        plane.dtype,
        plane,
        0,
        (
            *(image, row * vertical.stride, column * horizontal.stride),
            *(row * vertical.dilation, column * horizontal.dilation, channel),
        ),
    )
    return view, lambda images, start: band.fill(images, starts[start])


def shifted_pixels(conv: Conv) -> Kernel:
    """A depthwise convolution of nhwc images: the sum of shifted images, times a row of the filter's elements each."""
    height, width = conv.output_sizes
    pitch = width + (conv.slides[1].reach - 1) // conv.slides[1].stride
    rows = tile_size(height, SHIFTED_TILE / (pitch * conv.groups))
    row_starts = tile_starts(height, rows)
    band = Band((), (conv.groups,), conv.slides, (rows, width), row_starts)
    first, *others = (band.tap(i, j) for i, j in conv.taps)
    total, term = np.empty((2, *first.shape), np.float32)
    # An element for each channel, again for each column: numpy is slow where it must repeat a short row.
    weights = np.empty((conv.group_outputs, len(conv.taps), pitch, conv.groups), np.float32)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        np.copyto(weights, filter_matrices(conv, float32(filter_)).transpose(1, 2, 0)[:, :, None])
        bias = float32(rest[0]).reshape(conv.groups, -1).T if conv.has_bias else None
        outputs = rest[-1].reshape(conv.batch, height, width, conv.groups, conv.group_outputs)
        for image, row, multiple in product(range(conv.batch), row_starts, range(conv.group_outputs)):
            band.fill(images[image], row)
            np.multiply(first, weights[multiple, 0], out=total)
            for tap, weight in zip(others, weights[multiple, 1:], strict=True):
                np.multiply(tap, weight, out=term)
                np.add(total, term, out=total)
            there = None if bias is None else bias[multiple]
            emit(total[:, :width], there, outputs[image, row : row + rows, ..., multiple])

    return run
