"""Depthwise convolutions of nchw images: elements are copied for the columns of a window only, not for its rows.

For each row of the image the copies for a window's columns are adjacent, row after row. So the rows that a row of
windows spans are one matrix, and the next row of windows has the same matrix at another offset.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Final, Self

import attrs
import numpy as np

from webnn_py.devices.numpy.routines.blas import matrix_product
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.routines.float16 import NARROWING, narrow
from webnn_py.devices.numpy.routines.tiling import inside, steps_of, tile_size, tile_starts
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array, PreparedKernel

TILE: Final = 2**17
"""The most elements of scratch of a tile, which fits in cache."""

SHORT: Final = 20
LOW: Final = 3
"""Products of windows of at most this many rows are too small where they have fewer columns than that."""


def has_overlapping_rows(conv: Convolution) -> bool:
    """Return whether windows have adjacent rows, and products of single rows of windows are large enough."""
    vertical, (_, width) = conv.slides[0], conv.output_sizes
    if conv.layout != "nchw" or not conv.is_depthwise or vertical.dilation > 1:
        return False
    return vertical.window > LOW or (vertical.window > 1 and width >= SHORT)


def overlapping_rows(conv: Convolution) -> PreparedKernel:
    """Make the kernel of a depthwise convolution of nchw images."""
    vertical, (height, width) = conv.slides[0], conv.output_sizes
    most = min(TILE, conv.most_elements)
    # The copies of each row of the image, the row itself in float32 if it is float16, and the products.
    in_float16 = conv.data_type == "float16"
    row = conv.slides[1].window * width + (conv.slides[1].size if in_float16 else 0)
    sums = conv.group_outputs * width * (1 + NARROWING // 4) if in_float16 else 0
    rows = tile_size(height, (most - row * vertical.window) / (vertical.stride * row + sums))
    spanned = (rows - 1) * vertical.stride + vertical.window
    channels = tile_size(conv.groups, most / (spanned * row + rows * sums))
    starts = tile_starts(height, rows)
    tops = [first * vertical.stride - vertical.begin for first in starts]
    copies = ColumnCopies.from_convolution(conv, channels, spanned, tops)
    matrices = matrices_of(conv, copies.memory, rows)
    results = scratch((channels if sums else 0, conv.group_outputs, rows, width))

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        filters, bias, output = conv.filter_matrices(filter_), conv.bias(rest), conv.by_group(rest[-1])
        copies.clear()
        tiles = product(tile_starts(conv.groups, channels), range(conv.batch), zip(starts, tops, strict=True))
        for channel, image, (first, top) in tiles:
            here = slice(channel, channel + channels)
            copies.fill(images[image, here], top)
            region = output[image, here, :, first : first + rows]
            result = results if sums else region
            matrix_product(filters[here, None], matrices, result.transpose(0, 2, 1, 3))
            if bias is not None:
                np.add(result, bias[here], out=result)
            if sums:
                narrow(result, region)

    return PreparedKernel(lambda *arrays: partial(run, *arrays))


def not_empty(*arrays: Array) -> list[Array]:
    """Return the arrays that have elements."""
    return [array for array in arrays if array.size]


def matrices_of(conv: Convolution, memory: Array, rows: int) -> Array:
    """Return the windows of rows of windows within their copies: (channels, rows, elements of a window, columns)."""
    to_channel, to_row, to_element, to_column = memory.strides
    shape = (len(memory), rows, conv.tap_count, memory.shape[-1])
    strides = (to_channel, conv.slides[0].stride * to_row, to_element, to_column)
    return np.ndarray(shape, memory.dtype, memory, 0, strides)


@attrs.frozen
class ColumnCopies:
    """Copies of some rows of images for the columns of a window.

    Attributes:
        memory: (channels, rows of the images, columns of a window, columns); zeros where windows reach over the edges.
        moves: for each column of a window, the place of its copy, and the columns of the images to copy.
        margins: the parts of the memory beyond the left and the right edge.
        blanks: for each first row, the rows beyond the edges, except those that always are, which are margins.
        widened: float16 images in float32: (channels, rows, columns); without elements for other types.
        height: the rows of the images.
    """

    memory: Array
    moves: list[tuple[Array, slice]]
    margins: list[Array]
    blanks: dict[int, list[Array]]
    widened: Array
    height: int

    @classmethod
    def from_convolution(cls, conv: Convolution, channels: int, rows: int, tops: Sequence[int]) -> Self:
        """Return the copies of ``rows`` rows of ``channels`` channels; ``tops`` are all first rows."""
        (vertical, horizontal), width = conv.slides, conv.output_sizes[1]
        memory = scratch((channels, rows, horizontal.window, width))
        moves, margins = [], []
        for j in range(horizontal.window):
            left = j * horizontal.dilation - horizontal.begin
            begin, end = inside(left, horizontal.stride, width, horizontal.size)
            margins += [memory[:, :, j, :begin], memory[:, :, j, end:]]
            if begin < end:
                moves.append((memory[:, :, j, begin:end], steps_of(left, horizontal.stride, begin, end)))
        widened = scratch((channels if conv.data_type == "float16" else 0, rows, horizontal.size))
        blanks = {}
        for top in tops:
            first, last = inside(top, 1, rows, vertical.size)
            blanks[top] = not_empty(memory[:, :first], memory[:, last:])
        if len(tops) == 1:
            margins += blanks.pop(tops[0])
        return cls(memory, moves, not_empty(*margins), blanks, widened, vertical.size)

    def clear(self) -> None:
        """Zero the elements that ``fill`` does not write: once for each dispatch."""
        for margin in self.margins:
            margin.fill(0)

    def fill(self, images: Array, top: int) -> None:
        """Copy the rows from ``top`` on, some of them possibly beyond the edges, of (channels, height, width)."""
        first, last = inside(top, 1, self.memory.shape[1], self.height)
        for blank in self.blanks.get(top, ()):
            blank.fill(0)
        source = images[:, top + first : top + last]
        if len(self.widened):
            wide = self.widened[:, first:last]
            np.copyto(wide, source)
            source = wide
        for target, columns in self.moves:
            np.copyto(target[:, first:last], source[:, :, columns])
