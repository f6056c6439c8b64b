"""Convolutions as matrix products of the filter and im2col matrices, or as sums of shifted images."""

from collections.abc import Callable
from functools import partial
from itertools import product
from math import prod
from typing import Final, Self

import attrs
import numpy as np

from webnn_py.device.on_numpy.routines.blas import float32, matrix_product
from webnn_py.device.on_numpy.routines.conv_sizes import Convolution
from webnn_py.device.on_numpy.routines.float16 import narrow
from webnn_py.device.on_numpy.routines.im2col_columns import columns_of
from webnn_py.device.on_numpy.routines.im2col_tiles import Im2colTile
from webnn_py.device.on_numpy.routines.packed_filter import FilterBlocks, PackedFilter, filter_matrices
from webnn_py.device.on_numpy.routines.spread_windows import SpreadWindows
from webnn_py.device.on_numpy.routines.tiling import tile_size, tile_starts
from webnn_py.device.on_numpy.scratch import scratch
from webnn_py.device.on_numpy.table import Array, Kernel

PRODUCT_TILE: Final = 2**19
"""The most elements of the im2col matrix of a tile for matrix products: the fewer tiles, the better BLAS works."""

VECTOR_TILE: Final = 3 * 2**16
"""The most where a group has few outputs: BLAS waits for memory, so a tile fits in cache."""

SHIFTED_TILE: Final = 2**16
"""The most elements of a tile of shifted images: three tiles fit in cache."""

SHIFTED_RUN: Final = 2**11
"""The elements for which the filter is repeated beside shifted images: numpy is slow where it has to repeat less."""

COPY: Final = 3
"""How much longer an element of the filter takes to be copied than one of the images to the im2col matrix."""

LONG_ROW: Final = 160
"""The columns of a row of results from which on it is moved to where it belongs and has the bias added in one pass."""

CHANNELS_IN_LINE: Final = 16
"""The float32 channels of one pixel that a line of the cache has."""


def emit(result: Array, bias: Array | None, output: Array) -> None:
    """Move results to the output, plus the bias, rounding them once to its data type; float16's may be overwritten."""
    if output.dtype != np.float32:
        if bias is not None:
            np.add(result, bias, out=result)
        narrow(result, output)
        return
    if result is not output and (bias is None or output.shape[-1] < LONG_ROW):
        # Apart from the sum: the output's rows follow each other in memory, those of the result need not.
        np.copyto(output, result)
        result = output
    if bias is not None:
        np.add(result, bias, out=output)


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
    def of(cls, conv: Convolution, most: int, least_groups: int = 1) -> Self:
        """Tiles of about ``most`` elements, and of ``least_groups``; of whole planes and images as far as may be."""
        height = conv.output_sizes[0]
        row = conv.tile_elements(2) - conv.tile_elements(1)
        rows = tile_size(height, (most / least_groups - conv.tile_elements(0)) / row)
        fitting = most / conv.tile_elements(rows)
        groups = tile_size(conv.groups, max(fitting, least_groups))
        images = tile_size(conv.batch, fitting / groups) if rows == height and groups == conv.groups else 1
        row_starts = tile_starts(height, rows)
        starts = product(tile_starts(conv.batch, images), tile_starts(conv.groups, groups), row_starts)
        return cls(images, groups, rows, row_starts, list(starts))


FillColumns = Callable[[int, int, int], None]
"""Fills the im2col matrix with the windows of the tile with a first image, group and row."""

Multiply = Callable[[slice, Array, int, int, int], None]
"""Computes some output channels of the groups of such a tile, given their matrices."""


def go_through(
    conv: Convolution, tiles: Tiles, blocks: FilterBlocks, count: int, fill_columns: FillColumns, multiply: Multiply
) -> None:
    """Fill the im2col matrices of tiles, and multiply them by the filter, which comes in so many blocks.

    Where neither all windows nor the whole filter fits into the scratch, one of the two is copied again and again: the
    one that takes less time.
    """
    windows = conv.batch * prod(conv.output_sizes)
    if (count - 1) * windows < (len(tiles.starts) - 1) * conv.group_outputs * COPY:
        for part, matrices in blocks():
            for start in tiles.starts:
                fill_columns(*start)
                multiply(part, matrices, *start)
        return
    for start in tiles.starts:
        fill_columns(*start)
        for part, matrices in blocks():
            multiply(part, matrices, *start)


def im2col_planes(conv: Convolution) -> Kernel:
    """A convolution channel by channel: the filter times a matrix that has a column per window, tile by tile.

    nhwc images are taken for nchw images of another memory layout.
    """
    nchw = conv.layout == "nchw"
    packed = PackedFilter(conv, window_first=conv.is_window_first, bias=conv.multiplies_bias)
    most = min(VECTOR_TILE if conv.has_few_outputs else PRODUCT_TILE, conv.most_elements - packed.elements)
    tiles = Tiles.of(conv, most, 1 if nchw else -(-CHANNELS_IN_LINE // conv.group_inputs))
    clear, fill_columns, multiply = planes_tile(conv, tiles)
    by_group = (conv.batch, conv.groups, conv.group_outputs, *conv.output_sizes)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        bias = float32(rest[0]) if conv.has_bias else None
        output = rest[-1]
        if not nchw:
            images, output = images.transpose(0, 3, 1, 2), output.transpose(0, 3, 1, 2)
        output = output.reshape(by_group, copy=False)
        blocks = packed.of(filter_, bias if conv.multiplies_bias else None)
        if bias is not None:
            bias = None if conv.multiplies_bias else bias.reshape(conv.groups, -1, 1, 1, 1)
        clear()
        go_through(conv, tiles, blocks, packed.count, partial(fill_columns, images), partial(multiply, bias, output))

    return run


def planes_tile(
    conv: Convolution, tiles: Tiles
) -> tuple[
    Callable[[], None],
    Callable[[Array, int, int, int], None],
    Callable[[Array | None, Array, slice, Array, int, int, int], None],
]:
    """What prepares the scratch for a call; FillColumns, given images; and Multiply, given the bias and the output."""
    width = conv.output_sizes[1]
    inputs = tiles.groups * conv.group_inputs
    columns = columns_of(conv, (tiles.images, tiles.groups, tiles.rows), tiles.row_starts)
    patches = columns.matrices
    direct = tiles.images == 1 and columns.width == width and conv.data_type == "float32" and conv.layout == "nchw"
    outputs = 0 if direct else conv.group_outputs
    products = scratch((tiles.groups, outputs, tiles.images, tiles.rows, columns.width))

    def fill_columns(images: Array, image: int, group: int, row: int) -> None:
        channels = slice(group * conv.group_inputs, group * conv.group_inputs + inputs)
        columns.fill(images[image : image + tiles.images, channels].swapaxes(0, 1), row)

    def multiply(
        bias: Array | None, output: Array, part: slice, matrices: Array, image: int, group: int, row: int
    ) -> None:
        images, groups = slice(image, image + tiles.images), slice(group, group + tiles.groups)
        region = output[images, groups, part, row : row + tiles.rows].transpose(1, 2, 0, 3, 4)
        result = region if direct else products[:, part]
        matrix_product(matrices[groups], patches, result.reshape(tiles.groups, -1, patches.shape[2], copy=False))
        emit(region if direct else result[..., :width], None if bias is None else bias[groups, part], region)

    return columns.clear, fill_columns, multiply


def im2col_pixels(conv: Convolution) -> Kernel:
    """A convolution of nhwc images in one group: a matrix that has a row per window times the filter, by tiles."""
    height, width = conv.output_sizes
    # Where the windows outnumber the output channels, the filter is what is cheaper to copy in another order.
    windows_outnumber = conv.output_channels < conv.batch * height * width
    fits = conv.output_channels * conv.input_channels * conv.tap_count <= conv.copied_elements
    is_copied = conv.data_type != "float32" or (windows_outnumber and fits)
    packed = PackedFilter(conv, window_first=conv.is_window_first or is_copied)
    tiles = Tiles.of(conv, min(PRODUCT_TILE, conv.most_elements - packed.elements))
    clear, fill, matrix = rows_of_pixels(conv, tiles, window_first=conv.is_window_first or is_copied)
    direct = conv.data_type == "float32"
    products = scratch((0 if direct else tiles.images, tiles.rows, width, conv.output_channels))

    def fill_columns(images: Array, image: int, _group: int, row: int) -> None:
        fill(images[image : image + tiles.images], row)

    def multiply(
        bias: Array | None, output: Array, part: slice, matrices: Array, image: int, _group: int, row: int
    ) -> None:
        region = output[image : image + tiles.images, row : row + tiles.rows, :, part]
        result = region if direct else products[..., part]
        matrix_product(matrix, matrices[0].T, result.reshape(len(matrix), -1, copy=False))
        emit(result, None if bias is None else bias[part], region)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        bias = float32(rest[0]) if conv.has_bias else None
        clear()
        blocks = packed.of(filter_)
        go_through(conv, tiles, blocks, packed.count, partial(fill_columns, images), partial(multiply, bias, rest[-1]))

    return run


def rows_of_pixels(
    conv: Convolution, tiles: Tiles, *, window_first: bool
) -> tuple[Callable[[], None], Callable[[Array, int], None], Array]:
    """What prepares the scratch for a call; what fills a tile, given images and the row start; and the tile's matrix.

    The matrix has a row for each window.
    """
    height, width = (slide.window for slide in conv.slides)
    windows = (tiles.images, tiles.rows, conv.output_sizes[1])
    order = (0, 1, 2, 3, 4, 5) if window_first else (0, 1, 2, 4, 5, 3)
    shape = (height, width, conv.input_channels) if window_first else (conv.input_channels, height, width)
    patches = scratch((*windows, *shape))
    matrix, view = patches.reshape(prod(windows), -1), patches.transpose(order)
    if conv.is_spread:
        return lambda: None, SpreadWindows(conv.slides, view.transpose(0, 3, 4, 1, 2, 5), 1).fill, matrix
    source, tile, starts = window_views(conv, tiles)

    def fill(images: Array, row: int) -> None:
        tile.fill(images, starts[row])
        np.copyto(view, source)

    return tile.clear, fill, matrix


def window_views(conv: Convolution, tiles: Tiles) -> tuple[Array, Im2colTile, dict[int, int]]:
    """The windows of a tile of nhwc images: (images, rows, columns, height and width of a window, channels).

    Returns:
        The view; the tile that it looks at; and the tile's row start for each row start of windows.
    """
    vertical, horizontal = conv.slides
    dense = tuple(attrs.evolve(slide, window=slide.reach, stride=1, dilation=1) for slide in conv.slides)
    sizes = ((tiles.rows - 1) * vertical.stride + 1, (conv.output_sizes[1] - 1) * horizontal.stride + 1)
    starts = {row: row * vertical.stride for row in tiles.row_starts}
    tile = Im2colTile((tiles.images,), (conv.input_channels,), (dense[0], dense[1]), sizes, list(starts.values()))
    plane = tile.plane((0, 0))
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
    return view, tile, starts


def shifted_pixels(conv: Convolution) -> Kernel:
    """A depthwise convolution of nhwc images: the sum of shifted images, times a row of the filter's elements each."""
    height, width = conv.output_sizes
    runs, columns = runs_of(width, conv.pitch, SHIFTED_RUN / conv.groups)
    weights = scratch((conv.group_outputs, conv.tap_count, columns * conv.groups))
    # A tile has its padded images, a sum, and a term of it.
    row = conv.padded_elements(1) - conv.padded_elements(0) + 2 * conv.pitch
    most = (conv.most_elements - weights.size) / conv.groups - conv.padded_elements(0)
    rows = tile_size(height, min(SHIFTED_TILE / (conv.pitch * conv.groups), most / row))
    row_starts = tile_starts(height, rows)
    tile = Im2colTile((), (conv.groups,), conv.slides, (rows, width), row_starts)
    first, *others = (
        tile.tap(i, j)[:, : runs * columns].reshape(rows, runs, columns * conv.groups, copy=False) for i, j in conv.taps
    )
    total, term = scratch((2, *first.shape))
    result = total.reshape(rows, -1, conv.groups)[:, :width]

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        repeated = weights.reshape(conv.group_outputs, conv.tap_count, columns, conv.groups)
        np.copyto(repeated, filter_matrices(conv, float32(filter_)).transpose(1, 2, 0)[:, :, None])
        bias = float32(rest[0]).reshape(conv.groups, -1).T if conv.has_bias else None
        outputs = rest[-1].reshape(conv.batch, height, width, conv.groups, conv.group_outputs)
        tile.clear()
        for image, row in product(range(conv.batch), row_starts):
            tile.fill(images[image], row)
            for multiple in range(conv.group_outputs):
                np.multiply(first, weights[multiple, 0], out=total)
                for tap, weight in zip(others, weights[multiple, 1:], strict=True):
                    np.multiply(tap, weight, out=term)
                    np.add(total, term, out=total)
                there = None if bias is None else bias[multiple]
                emit(result, there, outputs[image, row : row + rows, ..., multiple])

    return run


def runs_of(width: int, most: int, length: float) -> tuple[int, int]:
    """The number of runs that a row is cut into, and their equal length: about ``length``, ``most`` together."""
    for runs in range(max(1, int(width / length)), 1, -1):
        columns = -(-width // runs)
        if runs * columns <= most:
            return runs, columns
    return 1, width
