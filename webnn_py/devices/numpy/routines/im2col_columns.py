"""The im2col matrices of tiles of images, channel by channel, and two ways to fill them."""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import attrs
import numpy as np

from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.im2col_tiles import Im2colTile
from webnn_py.devices.numpy.routines.tiling import inside
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array

Sizes = tuple[int, int, int]
"""The images of a tile, its groups, and its rows of windows."""


@attrs.frozen
class Columns:
    """The im2col matrices of a tile.

    Attributes:
        matrices: [groups, elements of a window, windows].
        clear: prepares them for a call.
        fill: fills them, given images (channels, images, height, width) and the row start.
    """

    matrices: Array
    clear: Callable[[], None]
    fill: Callable[[Array, int], None]


def columns_of(conv: Convolution, sizes: Sizes, row_starts: Sequence[int]) -> Columns:
    """Return the matrices of tiles that start at the given rows."""
    return spread_columns(conv, sizes) if conv.is_spread else padded_columns(conv, sizes, row_starts)


def padded_columns(conv: Convolution, sizes: Sizes, row_starts: Sequence[int]) -> Columns:
    """Return columns that are copied from padded images, which are split into phase planes."""
    images, groups, rows = sizes
    width = conv.output_sizes[1]
    channels = (groups, conv.group_inputs)
    tile = Im2colTile((prod(channels), images), (), conv.slides, (rows, width), row_starts)
    plane = tile.plane((0, 0))
    if conv.tap_count == 1 and plane.shape[2:] == (rows, width):
        return Columns(plane.reshape(*channels, -1), tile.clear, tile.fill)
    patches, windows = columns_memory(conv, sizes)
    moves = [
        (windows[:, :, :, down, right], taps.reshape(*channels, *taps.shape[1:]))
        for down, right, taps in tile.taps(width)
    ]

    def fill(images: Array, row: int) -> None:
        tile.fill(images, row)
        for target, source in moves:
            np.copyto(target, source)

    return Columns(patches, tile.clear, fill)


def spread_columns(conv: Convolution, sizes: Sizes) -> Columns:
    """Return columns that are copied directly from the images, element by element of the windows.

    A tile of padded images has all rows that its windows span, which dilated windows do not all read: at a dilation of
    thousands a tile of one row of windows would not fit into the scratch.
    """
    patches, windows = columns_memory(conv, sizes)
    vertical, horizontal = conv.slides
    rows, columns = windows.shape[5:]

    def fill(images: Array, row: int) -> None:
        by_group = images.reshape(-1, conv.group_inputs, *images.shape[1:], copy=False)
        for i, j in product(range(vertical.window), range(horizontal.window)):
            top = row + i * vertical.dilation - vertical.begin
            left = j * horizontal.dilation - horizontal.begin
            (first, last), (begin, end) = inside(top, 1, rows, vertical.size), inside(left, 1, columns, horizontal.size)
            target = windows[:, :, :, i, j]
            if (last - first) * (end - begin) < rows * columns:
                target.fill(0)
            if first < last and begin < end:
                source = by_group[:, :, :, top + first : top + last, left + begin : left + end]
                np.copyto(target[:, :, :, first:last, begin:end], source)

    return Columns(patches, lambda: None, fill)


def columns_memory(conv: Convolution, sizes: Sizes) -> tuple[Array, Array]:
    """Return scratch for the matrices of a tile, and a view of it.

    The view is (groups, channels of a group, images, height and width of a window, rows, columns).
    """
    height, width = (slide.window for slide in conv.slides)
    images, groups, rows = sizes
    windows = (images, rows, conv.output_sizes[1])
    patches = scratch((groups, conv.group_inputs * height * width, *windows))
    if conv.is_window_first:
        view = patches.reshape(groups, height, width, -1, *windows).transpose(0, 3, 4, 1, 2, 5, 6)
    else:
        view = patches.reshape(groups, -1, height, width, *windows).transpose(0, 1, 4, 2, 3, 5, 6)
    return patches.reshape(*patches.shape[:2], -1), view
