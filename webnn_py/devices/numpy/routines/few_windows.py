"""Convolutions of one nchw image along one axis with few windows: numpy calls, not computations, take the time."""

from functools import partial
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from webnn_py.devices.numpy.routines.blas import matrix_product, prepared_product
from webnn_py.devices.numpy.routines.conv_sizes import Convolution
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array, PreparedKernel, Run, in_order

FEW: Final = 2**15
"""The most scratch elements that windows, padded images and results would take: below it, one tile holds them all."""


def has_few_windows(conv: Convolution) -> bool:
    """Return whether one image has few windows, along its height only, and the filter is a matrix."""
    (vertical, horizontal), (windows, width) = conv.slides, conv.output_sizes
    is_matrix = conv.layout == "nchw" and conv.filter_layout == "oihw"
    if conv.batch > 1 or conv.data_type != "float32" or not is_matrix:
        return False
    is_line = width == horizontal.size == horizontal.window == 1 and not horizontal.begin  # which would be read
    return is_line and vertical.stride <= vertical.window and conv.groups * conv.tile_elements(windows) <= FEW


def few_windows(conv: Convolution) -> PreparedKernel:
    """Make the kernel: the filter times all windows, which come from a padded copy of the image."""
    vertical, windows = conv.slides[0], conv.output_sizes[0]
    begin, length = vertical.begin, (windows - 1) * vertical.stride + vertical.reach
    padded = scratch((conv.input_channels, length))
    inner = padded[:, begin : begin + vertical.size]
    moves: list[Run] = []
    columns = padded
    if windows > 1 or vertical.dilation > 1:
        columns = scratch((conv.input_channels, vertical.window, windows))
        source = sliding_window_view(padded, vertical.reach, 1)[:, :: vertical.stride, :: vertical.dilation]
        moves.append(partial(np.copyto, columns, source.swapaxes(1, 2)))
    matrices = columns.reshape(conv.groups, -1, windows)

    def prepare(images: Array, filter_: Array, *rest: Array) -> Run:
        runs: list[Run] = [partial(np.copyto, inner, images[0, :, : inner.shape[1], 0]), *moves]
        if inner.size < padded.size:
            runs.insert(0, partial(padded.fill, 0))
        output = rest[-1].reshape(conv.groups, conv.group_outputs, windows, copy=False)
        if filter_.flags.c_contiguous:
            runs.append(prepared_product(filter_.reshape(*output.shape[:2], -1), matrices, output))
        else:
            runs.append(partial(multiply_copy, filter_, matrices, output))
        if conv.has_bias:
            runs.append(partial(np.add, output, rest[0].reshape(conv.groups, -1, 1), output))
        return in_order(runs)

    return PreparedKernel(prepare)


def multiply_copy(filter_: Array, matrices: Array, output: Array) -> None:
    """Multiply by a filter whose layout BLAS does not take."""
    matrix_product(np.ascontiguousarray(filter_).reshape(*output.shape[:2], -1), matrices, output)
