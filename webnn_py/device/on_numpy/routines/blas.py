"""Products by BLAS, of float32 matrices whose rows, or columns, have their elements side by side."""

from functools import partial
from typing import Final

import numpy as np

from webnn_py.device.on_numpy.routines.blas_threads import UNSPREAD, ProductThreads, loaded_openblas
from webnn_py.device.on_numpy.table import Array, Run

_OPENBLAS: Final = loaded_openblas()
_THREADS: Final = None if _OPENBLAS is None else ProductThreads(_OPENBLAS)


def matrix_product(a: Array, b: Array, output: Array) -> None:
    """Multiply matrices, or stacks of them, on as many threads as suits; BLAS decides that where it is no OpenBLAS.

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
    """The same, to be done as often as wanted: what is so little that it is never spread asks for no threads."""
    rows, columns = output.shape[-2:]
    if rows * columns * a.shape[-1] <= UNSPREAD:
        return partial(np.matmul, a, b, output)
    return partial(matrix_product, a, b, output)


def for_blas(matrices: Array) -> Array:
    """The matrices as BLAS takes them: the elements of each row, or of each column, side by side.

    Others numpy multiplies by itself, a hundred times slower (or copies, since version 2.3).
    """
    return matrices if is_for_blas(matrices) else np.ascontiguousarray(matrices)


def is_for_blas(matrices: Array) -> bool:
    """Whether BLAS takes the matrices as they lie."""
    rows, columns = matrices.shape[-2:]
    to_row, to_column = matrices.strides[-2:]
    step = matrices.itemsize
    return (to_column == step and to_row >= columns * step) or (to_row == step and to_column >= rows * step)
