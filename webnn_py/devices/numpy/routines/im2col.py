"""Convolutions as matrix products of the filter and im2col matrices."""

from collections.abc import Callable
from functools import partial
from itertools import product
from math import prod
from typing import Final, Self

import attrs
import numpy as np

from webnn_py.devices.numpy.routines.blas import matrix_product
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.float16 import float32, narrow
from webnn_py.devices.numpy.routines.im2col_columns import columns_of
from webnn_py.devices.numpy.routines.packed_filter import FilterBlocks, PackedFilter
from webnn_py.devices.numpy.routines.tiling import tile_size, tile_starts
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array, Kernel

PRODUCT_TILE: Final = 2**19
"""The most elements of the im2col matrix of a tile for matrix products: BLAS is faster with fewer tiles."""

VECTOR_TILE: Final = 3 * 2**16
"""The most elements where a group has few outputs: BLAS is bound by memory, so a tile must fit in cache."""

COPY: Final = 3
"""The time to copy an element of the filter, relative to that of an element of the images."""

LONG_ROW: Final = 160
"""The columns of a row of results from which on it is moved to the output and has the bias added in one pass."""

CHANNELS_IN_LINE: Final = 16
"""The float32 channels of one pixel in a cache line."""


def emit(result: Array, bias: Array | None, output: Array) -> None:
    """Move results plus bias to the output, rounding once to its data type; results for float16 may be overwritten."""
    if output.dtype != np.float32:
        if bias is not None:
            np.add(result, bias, out=result)
        narrow(result, output)
        return
    if result is not output and (bias is None or output.shape[-1] < LONG_ROW):
        # Separate from the sum: the output's rows are contiguous in memory, the result's may not be.
        np.copyto(output, result)
        result = output
    if bias is not None:
        np.add(result, bias, out=output)


@attrs.frozen
class Tiles:
    """The tiles of one size into which a convolution is cut.

    Attributes:
        images: the images of a tile.
        groups: the groups of a tile.
        rows: the rows of windows of a tile.
        row_starts: the first rows of the tiles.
        starts: each tile's first image, group and row.
    """

    images: int
    groups: int
    rows: int
    row_starts: list[int]
    starts: list[tuple[int, int, int]]

    @classmethod
    def of(cls, conv: Convolution, most: int, least_groups: int = 1) -> Self:
        """Return tiles of about ``most`` elements and at least ``least_groups`` groups, of whole images if possible."""
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
"""Computes some output channels of the groups of a tile, given their matrices."""


def go_through(
    conv: Convolution, tiles: Tiles, blocks: FilterBlocks, count: int, fill_columns: FillColumns, multiply: Multiply
) -> None:
    """Fill the im2col matrices of tiles, and multiply them by the filter, which comes in blocks.

    Where neither all windows nor the whole filter fits into the scratch, one of the two is copied repeatedly: the one
    that takes less time.
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
    """Make the kernel channel by channel: the filter times a matrix with a column per window, tile by tile.

    nhwc images are viewed as nchw images with another memory layout.
    """
    nchw = conv.layout == "nchw"
    packed = PackedFilter(conv, window_first=conv.is_window_first)
    most = min(VECTOR_TILE if conv.has_few_outputs else PRODUCT_TILE, conv.most_elements - packed.elements)
    tiles = Tiles.of(conv, most, 1 if nchw else -(-CHANNELS_IN_LINE // conv.group_inputs))
    clear, fill_columns, multiply = planes_tile(conv, tiles)
    by_group = (conv.batch, conv.groups, conv.group_outputs, *conv.output_sizes)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        bias = float32(rest[0]).reshape(conv.groups, -1, 1, 1, 1) if conv.has_bias else None
        output = rest[-1]
        if not nchw:
            images, output = images.transpose(0, 3, 1, 2), output.transpose(0, 3, 1, 2)
        output = output.reshape(by_group, copy=False)
        blocks = packed.of(filter_)
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
    """Return the function that prepares the scratch; FillColumns, given images; and Multiply, given bias and output."""
    inputs = tiles.groups * conv.group_inputs
    columns = columns_of(conv, (tiles.images, tiles.groups, tiles.rows), tiles.row_starts)
    patches = columns.matrices
    direct = tiles.images == 1 and conv.data_type == "float32" and conv.layout == "nchw"
    outputs = 0 if direct else conv.group_outputs
    products = scratch((tiles.groups, outputs, tiles.images, tiles.rows, conv.output_sizes[1]))

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
        emit(result, None if bias is None else bias[groups, part], region)

    return columns.clear, fill_columns, multiply
