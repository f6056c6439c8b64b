"""Products of float16 matrices in float32, block by block, as large as fits into the scratch."""

import itertools
import math
from collections.abc import Callable

import numpy as np

from webnn_py.devices.numpy.routines.blas import matrix_product
from webnn_py.devices.numpy.routines.float16 import NARROWING
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array

Sizes = tuple[int, int, int]
"""The rows of a product, the length of the sums of its elements, and its columns."""

Finish = Callable[[Array, slice, slice], object]
"""Takes a block of a product, in float32 and free to overwrite, and its rows and columns."""


class Widened:
    """Multiplies float16 matrices, one block of the product after the other.

    Attributes:
        matrices: the number of matrices that it can multiply at a time.
    """

    def __init__(self, sizes: Sizes, most: int, step: Sizes | None = None) -> None:
        """Allocate scratch of at most ``most`` float32 elements, for blocks of the size ``step`` if given."""
        self._step = step = fitted(sizes, most) if step is None else step
        self.matrices = max(1, most // elements(step)) if step == sizes else 1
        rows, inner, columns = (self.matrices * step[0], step[1], step[2])
        self._a, self._b = scratch(rows * inner), scratch(self.matrices * inner * columns)
        self._product = scratch(rows * columns)
        self._term = scratch(rows * columns if inner < sizes[1] else 0)

    def __call__(self, a: Array, b: Array, finish: Finish) -> None:
        """Multiply, and call ``finish`` with each block of the product."""
        rows, depths, columns = (
            [slice(start, min(start + step, size)) for start in range(0, size, step)]
            for size, step in zip((*a.shape[-2:], b.shape[-1]), self._step, strict=True)
        )
        for column, row in itertools.product(columns, rows):
            if column.start == 0 or len(rows) > 1 or len(depths) > 1:
                rows_of_a = widened(a[..., row, depths[0]], self._a)
            if row.start == 0 or len(depths) > 1:
                columns_of_b = widened(b[..., depths[0], column], self._b)
            block = _product(rows_of_a, columns_of_b, self._product)
            for depth in depths[1:]:
                rows_of_a, columns_of_b = (
                    widened(a[..., row, depth], self._a),
                    widened(b[..., depth, column], self._b),
                )
                np.add(block, _product(rows_of_a, columns_of_b, self._term), out=block)
            finish(block, row, column)


def _product(a: Array, b: Array, memory: Array) -> Array:
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    block = memory[: math.prod(shape)].reshape(shape)
    matrix_product(a, b, block)
    return block


def fitted(sizes: Sizes, most: int) -> Sizes:
    """Return the sizes of blocks that fit into the scratch: the largest size is halved until they do."""
    step = list(sizes)
    while elements((step[0], step[1], step[2])) > most and max(step) > 1:
        largest = step.index(max(step))
        step[largest] = -(-step[largest] // 2)
    return step[0], step[1], step[2]


def elements(sizes: Sizes) -> int:
    """Return the scratch elements of a block: its factors, itself and another one, and the scratch for rounding."""
    rows, inner, columns = sizes
    return rows * inner + inner * columns + (2 + NARROWING // 4) * rows * columns


def widened(matrices: Array, memory: Array) -> Array:
    """Widen float16 matrices into the beginning of a piece of scratch, in memory order; return them in float32."""
    if matrices.strides[-1] > matrices.strides[-2]:
        return widened(matrices.swapaxes(-1, -2), memory).swapaxes(-1, -2)
    wide = memory[: matrices.size].reshape(matrices.shape)
    np.copyto(wide, matrices)
    return wide
