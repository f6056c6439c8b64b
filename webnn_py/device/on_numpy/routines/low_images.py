"""Depthwise convolutions of nchw images so low that every window spans their height.

Most of what such windows have lies over the edges. What is left of all windows of a column is the same column of the
images, so that the columns of a channel are one matrix, and the filter's rows that meet them another.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from webnn_py.device.on_numpy.routines.blas import matrix_product
from webnn_py.device.on_numpy.routines.conv_sizes import Convolution
from webnn_py.device.on_numpy.routines.depthwise import ColumnCopies
from webnn_py.device.on_numpy.routines.im2col import emit
from webnn_py.device.on_numpy.routines.packed_filter import filter_matrices
from webnn_py.device.on_numpy.routines.tiling import tile_size, tile_starts
from webnn_py.device.on_numpy.scratch import in_turn, scratch
from webnn_py.device.on_numpy.table import Array, Kernel

TILE: Final = 2**16
"""The most elements of scratch of a tile, which fits in cache."""


def has_low_images(conv: Convolution) -> bool:
    """Whether every window spans the height of the images, and reaches over their edges."""
    if conv.layout != "nchw" or conv.data_type != "float32" or not conv.is_depthwise or conv.is_spread:
        return False
    vertical, (height, width) = conv.slides[0], conv.output_sizes
    tops = (-vertical.begin, (height - 1) * vertical.stride - vertical.begin)
    spanned = all(top <= 0 and top + vertical.window >= vertical.size for top in tops)
    return spanned and vertical.dilation == 1 and vertical.window > vertical.size and width > 1


def low_images(conv: Convolution, make_general: Callable[[], Kernel]) -> Kernel:
    """The kernel; another one is made for filters with infinities and NaN, which also count beyond the edges."""
    (vertical, horizontal), (height, width) = conv.slides, conv.output_sizes
    elements = vertical.size * horizontal.window
    lines = conv.group_outputs * height
    channels = tile_size(conv.groups, min(TILE, conv.most_elements) / (elements * (width + lines)))
    firsts = [vertical.begin - row * vertical.stride for row in range(height)]
    with in_turn():
        general = make_general()
    with in_turn():
        copies = ColumnCopies.of(conv, channels, vertical.size, [0])
        columns = copies.memory.reshape(channels, elements, width)
        met = scratch((channels, conv.group_outputs, height, vertical.size, horizontal.window))
        matrices = met.reshape(channels, lines, elements)

    def run(images: Array, filter_: Array, *rest: Array) -> None:
        if not np.isfinite(filter_).all():
            general(images, filter_, *rest)
            return
        biases = rest[0].reshape(conv.groups, conv.group_outputs, 1, 1) if conv.has_bias else None
        output = rest[-1].reshape(conv.batch, conv.groups, conv.group_outputs, height, width, copy=False)
        filters = filter_matrices(conv, filter_).reshape(*output.shape[1:3], vertical.window, horizontal.window)
        copies.clear()
        for channel in tile_starts(conv.groups, channels):
            here = slice(channel, channel + channels)
            for row, first in enumerate(firsts):
                np.copyto(met[:, :, row], filters[here, :, first : first + vertical.size])
            for image in range(conv.batch):
                copies.fill(images[image, here], 0)
                region = output[image, here]
                matrix_product(matrices, columns, region.reshape(channels, lines, width, copy=False))
                emit(region, None if biases is None else biases[here], region)

    return run
