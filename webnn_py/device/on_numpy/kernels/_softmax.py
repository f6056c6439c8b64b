"""Softmax over blocks of whole rows that stay in cache."""

from collections.abc import Iterator

import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy.kernels._blocks import BLOCK_BYTES, Index
from webnn_py.device.on_numpy.kernels._float16 import in_float32, narrow
from webnn_py.device.on_numpy.table import Array, Kernel, product

LOWEST_MAXIMUM = -7
HIGHEST_MAXIMUM = 64
"""exp of this is 2⁹²: sums of exponentials up to here do not overflow float32, however long the row."""

LOWEST_SUM = 2.0**-10
"""About exp(-7): a row with at least this sum has lost nothing to underflow that its results would show."""

SHORT_ROW = 128
"""Rows shorter than this are reduced faster when transposed, many rows at a time."""

SHORTEST_RUN = 512
"""Contiguous runs of elements are not cut shorter than this: overheads would outweigh the cache's speed."""


def softmax_along(axis: int, descriptor: MLOperandDescriptor) -> Kernel:
    """Make a kernel for an input of this descriptor, which it sees as [outer, axis, inner]."""
    shape = descriptor.shape
    form = product(shape[:axis]), shape[axis], product(shape[axis + 1 :])
    blocks = list(_blocks(form, BLOCK_BYTES // 8))
    ones = np.ones(shape[axis], np.float32)

    def float32(input: Array, output: Array) -> None:
        x, y = input.reshape(form), output.reshape(form)
        for block in blocks:
            softmax(x[block], y[block], ones)

    def float16(input: Array, output: Array) -> None:
        x, y = input.reshape(form), output.reshape(form)
        for block in blocks:
            wide = in_float32(x[block])
            result = np.empty_like(wide)
            softmax(wide, result, ones)
            narrow(result, y[block])

    return float32 if descriptor.data_type == "float32" else float16


def _blocks(form: tuple[int, int, int], limit: int) -> Iterator[Index]:
    """Cut [outer, axis, inner] into blocks of about ``limit`` elements that hold the axis whole."""
    outer, length, inner = form
    width = min(max(SHORTEST_RUN, limit // length), inner)
    rows = max(1, limit // (length * width))
    for start in range(0, outer, rows):
        for left in range(0, inner, width):
            yield slice(start, start + rows), slice(None), slice(left, left + width)


def softmax(x: Array, y: Array, ones: Array) -> None:
    """Fill ``y`` with the softmax of ``x`` along the middle axis.

    Softmax is the same for x less any number. One would subtract each row's maximum, lest exponentials overflow or
    all of them vanish; most often neither can happen as x stands, and then subtracting only costs time and precision.
    """
    if LOWEST_MAXIMUM <= x.max() <= HIGHEST_MAXIMUM:
        np.exp(x, out=y)
        sums = row_sums(y, ones)
        if sums.min() >= LOWEST_SUM:
            np.divide(y, sums, out=y)
            return
    np.subtract(x, row_maxima(x), out=y)
    np.exp(y, out=y)
    np.divide(y, row_sums(y, ones), out=y)


def row_sums(y: Array, ones: Array) -> Array:
    """The sums along the middle axis, which stays as 1; where it is the last, BLAS is fastest."""
    if y.shape[2] > 1:
        return np.add.reduce(y, axis=1, keepdims=True)
    sums: Array = np.matmul(y[:, :, 0], ones)
    return sums[:, np.newaxis, np.newaxis]


def row_maxima(x: Array) -> Array:
    """The maxima along the middle axis, which stays as 1."""
    if x.shape[2] > 1 or x.shape[1] >= SHORT_ROW:
        return np.maximum.reduce(x, axis=1, keepdims=True)
    maxima: Array = np.maximum.reduce(x[:, :, 0].T.copy(), axis=0)
    return maxima[:, np.newaxis, np.newaxis]
