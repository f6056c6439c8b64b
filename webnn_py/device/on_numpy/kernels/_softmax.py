"""Softmax over blocks of whole rows that stay in cache."""

import itertools
from collections.abc import Iterator

import numpy as np

from webnn_py.device.on_numpy.kernels._blocks import BLOCK_BYTES, Index
from webnn_py.device.on_numpy.kernels._float16 import NARROWING, narrow, widen
from webnn_py.device.on_numpy.scratch import allowance, scratch
from webnn_py.device.on_numpy.table import Array, Kernel, product
from webnn_py.graph import Node

Form = tuple[int, int, int]
"""The elements before an axis, along it, and after it."""

LOWEST_MAXIMUM = -7
HIGHEST_MAXIMUM = 64
"""exp of this is 2⁹²: sums of exponentials up to here do not overflow float32, however long the row."""

LOWEST_SUM = 2.0**-10
"""About exp(-7): a row with at least this sum has lost nothing to underflow that its results would show."""

SHORT_ROW = 128
"""Rows shorter than this are reduced faster when transposed, many rows at a time."""

SHORTEST_RUN = 512
"""Contiguous runs of elements are not cut shorter than this: overheads would outweigh the cache's speed."""


LONGEST_PRODUCT = 2**15
"""Longer rows are added up by a reduction: a product would need as many ones."""


def softmax_along(node: Node) -> Kernel:
    """Make the kernel, which sees its input as [outer, axis, inner]."""
    shape, axis = node.outputs[0].shape, node.options["axis"]
    form = product(shape[:axis]), shape[axis], product(shape[axis + 1 :])
    ones = np.ones(shape[axis] if shape[axis] <= LONGEST_PRODUCT and form[2] == 1 else 0, np.float32)
    if node.outputs[0].data_type == "float16":
        return in_float16(form, ones, min(BLOCK_BYTES // 8, allowance(node) // (4 + NARROWING)))
    blocks = list(_blocks(form, BLOCK_BYTES // 8))

    def run(input: Array, output: Array) -> None:
        x, y = input.reshape(form), output.reshape(form)
        for block in blocks:
            if not plain(x[block], y[block], ones):
                stable(x[block], y[block], ones)

    return run


def in_float16(form: Form, ones: Array, limit: int) -> Kernel:
    """Make the kernel for float16, which computes on blocks of at most ``limit`` elements of float32."""
    if form[1] * min(SHORTEST_RUN, form[2]) > limit:
        return in_pieces(form, limit)
    blocks = list(_blocks(form, limit))
    room = scratch(limit)

    def run(input: Array, output: Array) -> None:
        x, y = input.reshape(form), output.reshape(form)
        for block in blocks:
            wide = widened(x[block], room)
            if not plain(wide, wide, ones):
                stable(widened(x[block], room), wide, ones)
            narrow(wide, y[block])

    return run


def in_pieces(form: Form, limit: int) -> Kernel:
    """Make the kernel for float16 and rows so long that they are widened for each pass anew, piece by piece."""
    outer, length, inner = form
    width = min(SHORTEST_RUN, inner)
    step = max(1, limit // width)
    pieces = [slice(start, start + step) for start in range(0, length, step)]
    room = scratch(step * width)

    def powers(x: Array, maxima: Array) -> Array:
        wide = widened(x, room)
        np.subtract(wide, maxima, out=wide)
        return np.exp(wide, out=wide)

    def run(input: Array, output: Array) -> None:
        x, y = input.reshape(form), output.reshape(form)
        for row, column in itertools.product(range(outer), range(0, inner, width)):
            lanes = slice(row, row + 1), slice(None), slice(column, column + width)
            source, target = x[lanes], y[lanes]
            maxima = np.maximum.reduce([row_maxima(widened(source[:, piece], room)) for piece in pieces])
            sums = np.add.reduce([powers(source[:, piece], maxima).sum(axis=1, keepdims=True) for piece in pieces])
            for piece in pieces:
                wide = powers(source[:, piece], maxima)
                narrow(np.divide(wide, sums, out=wide), target[:, piece])

    return run


def widened(x: Array, room: Array) -> Array:
    """A float16 array in float32, in the beginning of a piece of scratch."""
    wide = room[: x.size].reshape(x.shape)
    widen(x, wide)
    return wide


def _blocks(form: Form, limit: int) -> Iterator[Index]:
    """Cut [outer, axis, inner] into blocks of about ``limit`` elements that hold the axis whole."""
    outer, length, inner = form
    width = min(max(SHORTEST_RUN, limit // length), inner)
    rows = max(1, limit // (length * width))
    for start in range(0, outer, rows):
        for left in range(0, inner, width):
            yield slice(start, start + rows), slice(None), slice(left, left + width)


def plain(x: Array, y: Array, ones: Array) -> bool:
    """Fill ``y`` with the softmax of ``x`` along the middle axis, as it stands; tell whether that went well.

    Softmax is the same for x less any number. One would subtract each row's maximum, lest exponentials overflow or
    all of them vanish; most often neither can happen as x stands, and then subtracting only costs time and precision.
    """
    if not LOWEST_MAXIMUM <= x.max() <= HIGHEST_MAXIMUM:
        return False
    np.exp(x, out=y)
    sums = row_sums(y, ones)
    if not sums.min() >= LOWEST_SUM:
        return False
    np.divide(y, sums, out=y)
    return True


def stable(x: Array, y: Array, ones: Array) -> None:
    """Do the same, subtracting maxima."""
    np.subtract(x, row_maxima(x), out=y)
    np.exp(y, out=y)
    np.divide(y, row_sums(y, ones), out=y)


def row_sums(y: Array, ones: Array) -> Array:
    """The sums along the middle axis, which stays as 1; where it is the last, BLAS is fastest."""
    if y.shape[2] > 1 or not len(ones):
        return np.add.reduce(y, axis=1, keepdims=True)
    sums: Array = np.matmul(y[:, :, 0], ones)
    return sums[:, np.newaxis, np.newaxis]


def row_maxima(x: Array) -> Array:
    """The maxima along the middle axis, which stays as 1."""
    if x.shape[2] > 1 or x.shape[1] >= SHORT_ROW:
        return np.maximum.reduce(x, axis=1, keepdims=True)
    maxima: Array = np.maximum.reduce(x[:, :, 0].T.copy(), axis=0)
    return maxima[:, np.newaxis, np.newaxis]
