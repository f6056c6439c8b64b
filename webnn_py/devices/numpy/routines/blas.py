"""Products by BLAS, of float32 matrices with contiguous rows or columns."""

from functools import partial
from typing import Final

import numpy as np

from webnn_py.devices.numpy.routines.blas_threads import UNSPREAD, ProductThreads, loaded_openblas
from webnn_py.devices.numpy.table import Array, Run

_OPENBLAS: Final = loaded_openblas()
_THREADS: Final = None if _OPENBLAS is None else ProductThreads(_OPENBLAS)


def matrix_product(a: Array, b: Array, output: Array) -> None:
    """Multiply matrices, or stacks of them, on a suitable number of threads; other libraries than OpenBLAS choose it.

    Args:
        a: float32 [..., rows, inner].
        b: float32 [..., inner, columns].
        output: float32 [..., rows, columns].
    """
    if _THREADS is None:
        np.matmul(a, b, out=output)
    else:
        _THREADS.multiply(a, b, output)


def prepared_product(a: Array, b: Array, output: Array) -> Run:
    """Return the product with its arrays bound; products too small to be spread skip the choice of threads."""
    rows, columns = output.shape[-2:]
    if rows * columns * a.shape[-1] <= UNSPREAD:
        return partial(np.matmul, a, b, output)
    return partial(matrix_product, a, b, output)


def for_blas(matrices: Array) -> Array:
    """Return the matrices in a layout that BLAS takes: with the elements of each row, or of each column, contiguous.

    numpy multiplies others itself, a hundred times slower (or copies them, since version 2.3).
    """
    return matrices if is_for_blas(matrices) else np.ascontiguousarray(matrices)


def is_for_blas(matrices: Array) -> bool:
    """Return whether BLAS takes the layout of the matrices."""
    rows, columns = matrices.shape[-2:]
    to_row, to_column = matrices.strides[-2:]
    step = matrices.itemsize
    return (to_column == step and to_row >= columns * step) or (to_row == step and to_column >= rows * step)
