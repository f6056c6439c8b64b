"""The im2col matrices of tiles of images channel by channel, and three ways to fill them."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Final

import attrs
import numpy as np

from webnn_py.device.on_numpy.routines.conv_sizes import Convolution
from webnn_py.device.on_numpy.routines.im2col_tiles import Im2colTile
from webnn_py.device.on_numpy.routines.spread_windows import SpreadWindows
from webnn_py.device.on_numpy.scratch import scratch
from webnn_py.device.on_numpy.table import Array

MOST_EXCESS: Final = 1.3
"""How much wider than the output an im2col matrix may be, so that its rows are copied as one run."""

RUN: Final = 56
EXCESS: Final = 1 / 10
"""What it takes to begin a run of memory, and to multiply and add once, in elements of a result that are copied."""

MOST_PLANES: Final = 8
"""The planes that a tile's elements may be dealt out to: each is filled and copied by itself."""

Sizes = tuple[int, int, int]
"""The images of a tile, its groups, and its rows of windows."""


@attrs.frozen
class Columns:
    """The im2col matrices of a tile.

    Attributes:
        matrices: [groups, elements of a window, windows].
        width: the windows of a row, of which some may be in excess.
        clear: prepares them for a call.
        fill: fills them, given images (channels, images, height, width) and the row start.
    """

    matrices: Array
    width: int
    clear: Callable[[], None]
    fill: Callable[[Array, int], None]


def columns_of(conv: Convolution, sizes: Sizes, row_starts: Sequence[int]) -> Columns:
    """The matrices of tiles that begin at some rows."""
    if conv.is_spread:
        return spread_columns(conv, sizes)
    if is_far_apart(conv):
        return strided_columns(conv, sizes, row_starts)
    return padded_columns(conv, sizes, row_starts)


def padded_columns(conv: Convolution, sizes: Sizes, row_starts: Sequence[int]) -> Columns:
    """Columns by way of padded images, dealt out to planes."""
    images, groups, rows = sizes
    width = conv.output_sizes[1]
    channels = (groups, conv.group_inputs)
    tile = Im2colTile((prod(channels), images), (), conv.slides, (rows, width), row_starts)
    columns = tile.pitch if tile.pitch <= MOST_EXCESS * width and not is_exact_better(conv) else width
    plane = tile.plane((0, 0))
    if conv.tap_count == 1 and plane.shape[2:] == (rows, columns) and not conv.multiplies_bias:
        return Columns(plane.reshape(*channels, -1), columns, tile.clear, tile.fill)
    patches, ones, windows = columns_memory(conv, sizes, columns)
    moves = [
        (windows[:, :, :, down, right], taps.reshape(*channels, *taps.shape[1:]))
        for down, right, taps in tile.taps(columns)
    ]

    def clear() -> None:
        tile.clear()
        ones.fill(1)

    def fill(images: Array, row: int) -> None:
        tile.fill(images, row)
        for target, source in moves:
            np.copyto(target, source)

    return Columns(patches, columns, clear, fill)


def is_exact_better(conv: Convolution) -> bool:
    """Whether copying row by row takes less time than windows in excess: these are multiplied, and results copied."""
    width, elements = conv.output_sizes[1], conv.group_inputs * conv.tap_count
    is_direct = conv.data_type == "float32" and conv.layout == "nchw"
    excess = (conv.pitch - width) * elements * EXCESS
    return is_direct and elements * RUN < conv.group_outputs * (width + excess)


def is_far_apart(conv: Convolution) -> bool:
    """Whether windows overlap, but so far apart that their elements would be dealt out to many planes."""
    if any(slide.stride > slide.window for slide in conv.slides):
        return False
    return prod(slide.stride for slide in conv.slides) > MOST_PLANES


def strided_columns(conv: Convolution, sizes: Sizes, row_starts: Sequence[int]) -> Columns:
    """Columns by way of padded images as they lie."""
    images, groups, rows = sizes
    (vertical, horizontal), width = conv.slides, conv.output_sizes[1]
    dense = tuple(attrs.evolve(slide, window=slide.reach, stride=1, dilation=1) for slide in conv.slides)
    dense_sizes = ((rows - 1) * vertical.stride + 1, (width - 1) * horizontal.stride + 1)
    starts = {row: row * vertical.stride for row in row_starts}
    lead = (groups, conv.group_inputs, images)
    tile = Im2colTile(lead, (), (dense[0], dense[1]), dense_sizes, list(starts.values()))
    plane = tile.plane((0, 0))
    *to_lead, to_row, to_column = plane.strides
    source = np.ndarray(
        (*lead, vertical.window, horizontal.window, rows, width),
        plane.dtype,
        plane,
        0,
        (
            *to_lead,
            *(to_row * vertical.dilation, to_column * horizontal.dilation),
            *(to_row * vertical.stride, to_column * horizontal.stride),
        ),
    )
    patches, ones, windows = columns_memory(conv, sizes, width)

    def clear() -> None:
        tile.clear()
        ones.fill(1)

    def fill(images: Array, row: int) -> None:
        tile.fill(images.reshape(groups, conv.group_inputs, *images.shape[1:], copy=False), starts[row])
        np.copyto(windows, source)

    return Columns(patches, width, clear, fill)


def spread_columns(conv: Convolution, sizes: Sizes) -> Columns:
    """Columns straight from the images."""
    width = conv.output_sizes[1]
    patches, ones, windows = columns_memory(conv, sizes, width)
    spread = SpreadWindows(conv.slides, windows, 3)

    def fill(images: Array, row: int) -> None:
        spread.fill(images.reshape(-1, conv.group_inputs, *images.shape[1:], copy=False), row)

    return Columns(patches, width, partial(ones.fill, 1), fill)


def columns_memory(conv: Convolution, sizes: Sizes, columns: int) -> tuple[Array, Array, Array]:
    """Scratch for the matrices of a tile, its row of ones, and a view of the rest.

    The view is (groups, channels of a group, images, height and width of a window, rows, columns).
    """
    height, width = (slide.window for slide in conv.slides)
    images, groups, rows = sizes
    windows = (images, rows, columns)
    elements = conv.group_inputs * height * width
    patches = scratch((groups, elements + conv.multiplies_bias, *windows))
    view = patches[:, :elements]
    if conv.is_window_first:
        view = view.reshape(groups, height, width, -1, *windows).transpose(0, 3, 4, 1, 2, 5, 6)
    else:
        view = view.reshape(groups, -1, height, width, *windows).transpose(0, 1, 4, 2, 3, 5, 6)
    return patches.reshape(*patches.shape[:2], -1), patches[:, elements:], view
