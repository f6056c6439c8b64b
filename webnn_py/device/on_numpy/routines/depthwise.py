"""Depthwise convolutions of nchw images: elements are copied for the columns of a window, not for all of its elements.

For each row of the image the copies for a window's columns follow each other, row after row. So the rows that a row of
windows spans are one matrix, whatever row it is, and those of the next row of windows are the same matrix further on.
"""

from itertools import product
from typing import Final

import attrs
import numpy as np

from webnn_py.device.on_numpy.routines.blas import float32, matrix_product
from webnn_py.device.on_numpy.routines.conv_sizes import Convolution
from webnn_py.device.on_numpy.routines.float16 import NARROWING
from webnn_py.device.on_numpy.routines.im2col import emit
from webnn_py.device.on_numpy.routines.im2col_tiles import Im2colTile
from webnn_py.device.on_numpy.routines.packed_filter import PackedFilter
from webnn_py.device.on_numpy.routines.tiling import tile_size, tile_starts
from webnn_py.device.on_numpy.scratch import scratch
from webnn_py.device.on_numpy.table import Array, Kernel

TILE: Final = 2**17
"""The most elements of scratch of a tile, which fits in cache."""

SHORT: Final = 20
LOW: Final = 3
"""Products of windows of at most so many rows are too small where they have fewer columns than that."""


def has_overlapping_rows(conv: Convolution) -> bool:
    """Whether the rows of windows lie one below the other, and products of single rows of them are large enough."""
    vertical, (_, width) = conv.slides[0], conv.output_sizes
    if conv.layout != "nchw" or not conv.is_depthwise or conv.is_spread or vertical.dilation > 1:
        return False
    return vertical.window > LOW or (vertical.window > 1 and width >= SHORT)


def overlapping_rows(conv: Convolution) -> Kernel:
    """A depthwise convolution of nchw images."""
    (vertical, horizontal), (height, width) = conv.slides, conv.output_sizes
    packed = PackedFilter(conv, window_first=False)
    most = min(TILE, conv.most_elements - packed.elements)
    # For each row of the image its copies and itself with padding; the products, which only float16 does not store.
    row = (horizontal.window + horizontal.stride) * width + horizontal.reach
    sums = 0 if conv.data_type == "float32" else conv.group_outputs * width * (1 + NARROWING // 4)
    rows = tile_size(height, (most - row * vertical.window) / (vertical.stride * row + sums))
    spanned = (rows - 1) * vertical.stride + vertical.window
    channels = tile_size(conv.groups, most / (spanned * row + rows * sums))
    starts = tile_starts(height, rows)
    tile, windows = tile_of(conv, channels, rows, starts)
    copies = scratch(windows.shape)
    matrices = np.ndarray(
        (channels, rows, len(conv.taps), width),
        copies.dtype,
        copies,
        0,
        (copies.strides[0], vertical.stride * copies.strides[1], *copies.strides[2:]),
    )
    results = scratch((channels if sums else 0, conv.group_outputs, rows, width))
    by_group = (conv.batch, conv.groups, conv.group_outputs, height, width)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        bias = float32(rest[0]).reshape(conv.groups, -1, 1, 1) if conv.has_bias else None
        output = rest[-1].reshape(by_group, copy=False)
        tile.clear()
        for part, filters in packed.of(filter_)():
            for channel, image, first in product(tile_starts(conv.groups, channels), range(conv.batch), starts):
                here = slice(channel, channel + channels)
                tile.fill(images[image, here], first * vertical.stride)
                np.copyto(copies, windows)
                region = output[image, here, part, first : first + rows]
                result = results[:, part] if sums else region
                matrix_product(filters[here, None], matrices, result.transpose(0, 2, 1, 3))
                emit(result, None if bias is None else bias[here, part], region)

    return run


def tile_of(conv: Convolution, channels: int, rows: int, starts: list[int]) -> tuple[Im2colTile, Array]:
    """The padded rows of some channels that some rows of windows span, and a view of them.

    The view is (channels, rows of the image, columns of a window, columns).
    """
    vertical, horizontal = conv.slides
    dense = tuple(attrs.evolve(slide, window=slide.reach, stride=1, dilation=1) for slide in conv.slides)
    width = conv.output_sizes[1]
    sizes = ((rows - 1) * vertical.stride + 1, (width - 1) * horizontal.stride + 1)
    tile = Im2colTile((channels,), (), (dense[0], dense[1]), sizes, [start * vertical.stride for start in starts])
    plane = tile.plane((0, 0))
    to_channel, to_row, item = plane.strides
    view = np.ndarray(
        (channels, plane.shape[1], horizontal.window, width),
        plane.dtype,
        plane,
        0,
        (to_channel, to_row, horizontal.dilation * item, horizontal.stride * item),
    )
    return tile, view
