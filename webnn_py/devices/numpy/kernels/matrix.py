"""Matrix products on arrays, computed by BLAS; float16 in float32, rounded once."""

from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import matrix
from webnn_py.devices.numpy.routines.blas import for_blas, is_for_blas, matrix_product, prepared_product
from webnn_py.devices.numpy.routines.blocks import part_of, tiles
from webnn_py.devices.numpy.routines.float16 import float32, narrow
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run, kernel

WIDENED: Final = 2**19
"""The elements of float16 matrices that are in float32 at a time, unless one matrix has more: 2 MiB."""


def multiply_adds(node: Node) -> float:
    """Return the multiply-adds: one for each element of the output and each element that it sums over."""
    return float(node.outputs[0].element_count * node.operand("a").shape[-1])


@kernel(matrix.matmul, work=multiply_adds)
def matmul(node: Node) -> Kernel:
    if node.outputs[0].data_type == "float16":
        return widened_product(node)
    one_matrix = all(size == 1 for size in node.operand("b").shape[:-2])
    tall = one_matrix and any(size != 1 for size in node.outputs[0].shape[:-2])
    return PreparedKernel(prepare_stacked_product if tall else prepare_product)


def prepare_product(a: Array, b: Array, output: Array) -> Run:
    """Return the product of float32 matrices, with its arrays bound."""
    if is_for_blas(a) and is_for_blas(b):
        return prepared_product(a, b, output)
    return lambda: matrix_product(for_blas(a), for_blas(b), output)


def prepare_stacked_product(a: Array, b: Array, output: Array) -> Run:
    """Return the product of many matrices by a single one: as one tall matrix, in one call of BLAS."""
    inner, columns = b.shape[-2:]
    if not a.flags.c_contiguous:
        return prepare_product(a, b, output)
    one = b[(0,) * (b.ndim - 2)]
    return prepare_product(a.reshape(-1, inner), one, output.reshape(-1, columns))


def widened_product(node: Node) -> Kernel:
    """Return the product of float16 matrices, some matrices of a stack at a time, or some rows of a matrix."""
    *batch, rows, columns = node.outputs[0].shape
    inner = node.operand("a").shape[-1]
    stacks = [(1,) * (len(batch) + 2 - value.descriptor.rank) + value.descriptor.shape[:-2] for value in node.inputs]
    count = max(1, WIDENED // (rows * inner + inner * columns + rows * columns))
    places = list(tiles(tuple(batch), count)) if batch else [()]
    step = max(1, min(rows, WIDENED // (inner + columns)))
    some_rows = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]

    def run(a: Array, b: Array, output: Array) -> None:
        a, b = (array.reshape(*stack, *array.shape[-2:]) for array, stack in zip((a, b), stacks, strict=True))
        for place in places:
            one, other = (array[part_of(stack, place)] for array, stack in zip((a, b), stacks, strict=True))
            wide, target = for_blas(float32(other)), output[place]
            for part in some_rows:
                result = target[..., part, :]
                block = np.empty(result.shape, np.float32)
                matrix_product(for_blas(float32(one[..., part, :])), wide, block)
                narrow(block, result)

    return run
