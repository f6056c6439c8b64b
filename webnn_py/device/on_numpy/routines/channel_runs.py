"""Depthwise convolutions of small nchw images: sums of products along the channels, which lie side by side in a tile.

A row of windows of a small image is too short for a product by BLAS, whose call takes longer than it computes. The
same element of many channels' windows is a run of memory once the channels come last, and the filter's one beside it.
"""

from itertools import product
from typing import Final

import attrs
import numpy as np

from webnn_py.device.on_numpy.routines.conv_sizes import Convolution
from webnn_py.device.on_numpy.routines.im2col_tiles import Im2colTile
from webnn_py.device.on_numpy.routines.packed_filter import filter_matrices
from webnn_py.device.on_numpy.routines.tiling import tile_size, tile_starts
from webnn_py.device.on_numpy.scratch import scratch
from webnn_py.device.on_numpy.table import Array, Kernel

TILE: Final = 2**16
"""The most elements of scratch of a tile, which fits in cache."""

RUN: Final = 512
"""The elements for which the filter is repeated for several columns."""

LEAST_CHANNELS: Final = 32
"""With fewer channels, runs of memory are too short."""

MOST_COLUMNS: Final = 28
MOST_IN_ROW: Final = 600
"""Of images of more columns, or of more elements in the windows of a row, a product of the row takes less time."""


def has_channel_runs(conv: Convolution) -> bool:
    """Whether rows of windows are short, and channels many."""
    if conv.layout != "nchw" or conv.data_type != "float32" or not conv.is_depthwise or conv.is_spread:
        return False
    width = conv.output_sizes[1]
    is_short = width * conv.slides[1].stride <= MOST_COLUMNS and width * conv.tap_count <= MOST_IN_ROW
    return is_short and conv.groups >= LEAST_CHANNELS


def tile_of(conv: Convolution) -> tuple[int, int, int]:
    """The channels of a tile, the columns for which the filter is repeated, and the rows of windows."""
    (vertical, horizontal), (height, width) = conv.slides, conv.output_sizes
    most = min(TILE, conv.most_elements)
    pitch = (width - 1) * horizontal.stride + horizontal.reach

    def elements(rows: int, columns: int) -> int:
        padded = ((rows - 1) * vertical.stride + vertical.reach) * pitch + horizontal.reach - 1
        return padded + rows * width + columns * conv.tap_count

    channels = tile_size(conv.groups, max(LEAST_CHANNELS, most / elements(height, 1)))
    is_cut = channels * elements(height, 1) > most
    columns = 1
    for size in range(2, width + 1) if horizontal.stride == 1 else ():
        fits = is_cut or channels * elements(height, size) <= most
        if fits and width % size == 0 and columns * channels < RUN:
            columns = size
    rows = height
    while rows > 1 and channels * elements(rows, columns) > most:
        rows = tile_size(height, rows - 1)
    return channels, columns, rows


def channel_runs(conv: Convolution) -> Kernel:
    """The kernel: some channels of an image at a time."""
    (vertical, horizontal), (height, width) = conv.slides, conv.output_sizes
    dense = tuple(attrs.evolve(slide, window=slide.reach, stride=1, dilation=1) for slide in conv.slides)
    channels, columns, rows = tile_of(conv)
    runs = width // columns
    sizes = ((rows - 1) * vertical.stride + 1, (width - 1) * horizontal.stride + 1)
    starts = {row: row * vertical.stride for row in tile_starts(height, rows)}
    tile = Im2colTile((), (channels,), (dense[0], dense[1]), sizes, list(starts.values()))
    plane = tile.plane((0, 0))
    to_row, to_column, to_channel = plane.strides
    windows = np.ndarray(
        (rows, runs, vertical.window, horizontal.window, columns * channels),
        plane.dtype,
        plane,
        0,
        (
            *(to_row * vertical.stride, to_column * horizontal.stride * columns),
            *(to_row * vertical.dilation, to_column * horizontal.dilation, to_channel),
        ),
    )
    weights = scratch((vertical.window, horizontal.window, columns, channels))
    sums = scratch((rows, runs, columns * channels))
    matrix = weights.reshape(*weights.shape[:2], -1)
    results = sums.reshape(rows, width, channels).transpose(2, 0, 1)
    blocks = list(product(tile_starts(conv.groups, channels), range(conv.group_outputs)))

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        output = rest[-1].reshape(conv.batch, conv.groups, conv.group_outputs, height, width, copy=False)
        biases = rest[0].reshape(conv.groups, conv.group_outputs, 1, 1) if conv.has_bias else None
        filters = filter_matrices(conv, filter_).reshape(conv.groups, conv.group_outputs, *weights.shape[:2])
        tile.clear()
        for channel, multiple in blocks:
            here = slice(channel, channel + channels)
            np.copyto(weights, filters[here, multiple].transpose(1, 2, 0)[:, :, None])
            for image, (row, top) in product(range(conv.batch), starts.items()):
                tile.fill(images[image, here].transpose(1, 2, 0), top)
                # In the order of memory: in Fortran's, numpy copies runs of up to 2,700 elements to buffers first.
                np.einsum("ijn,hrijn->hrn", matrix, windows, out=sums, order="K")
                target = output[image, here, multiple, row : row + rows]
                if biases is None:
                    np.copyto(target, results)
                else:
                    np.add(results, biases[here, multiple], out=target)

    return run
