"""What BLAS takes: float32 matrices whose rows, or columns, have their elements side by side."""

import numpy as np

from webnn_py.device.on_numpy.table import Array


def for_blas(matrices: Array) -> Array:
    """The matrices as BLAS takes them: the elements of each row, or of each column, side by side.

    Others numpy multiplies by itself, a hundred times slower (or copies, since version 2.3).
    """
    rows, columns = matrices.shape[-2:]
    to_row, to_column = matrices.strides[-2:]
    step = matrices.itemsize
    if (to_column == step and to_row >= columns * step) or (to_row == step and to_column >= rows * step):
        return matrices
    return np.ascontiguousarray(matrices)


def float32(array: Array) -> Array:
    """The array itself, or a float32 copy of a float16 one."""
    return array.astype(np.float32, copy=False)
