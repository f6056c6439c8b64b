"""Matrix products on arrays, computed by BLAS; float16 in float32, large products block by block, rounded once."""

import math
from functools import partial
from typing import Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import matrix
from webnn_py.core.operators.casting import cast_number
from webnn_py.devices.numpy.routines.blas import for_blas, is_for_blas, matrix_product, prepared_product
from webnn_py.devices.numpy.routines.blocks import part_of, tiles
from webnn_py.devices.numpy.routines.float16 import float32, narrow
from webnn_py.devices.numpy.routines.tiling import tile_size
from webnn_py.devices.numpy.routines.widened import Sizes, Widened, elements
from webnn_py.devices.numpy.scratch import allowance
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run, in_order, kernel

WHOLE: Final = 2**21
"""The scratch elements, 8 MiB in float32, up to which float16 products are not cut: BLAS is slower on blocks."""

SMALL: Final = 2**15
"""The scratch elements up to which numpy's own float16 conversion is faster than several passes."""

FEW: Final = 8
"""The rows or columns of a product up to which BLAS reads a factor about as fast as it can be widened."""

CACHED: Final = 2**18
"""The scratch elements for products of few rows or columns: a widened block is still in the cache when it is used."""

MANY: Final = 2**19
"""The scratch elements for many small products at a time: fewer take more calls, more do not stay in the cache."""

LONG: Final = 2**13
"""The elements of a row from which on it is widened as fast in parts."""


def multiply_adds(node: Node) -> float:
    """Return the multiply-adds: one for each element of the output and each element that it sums over."""
    a = node.operand("a").shape
    inner = a[-2] if node.options.get("a_transpose") else a[-1]
    return float(node.outputs[0].element_count * inner)


@kernel(matrix.matmul, work=multiply_adds)
def matmul(node: Node) -> Kernel:
    b_shape = node.operand("b").shape
    one_matrix = all(size == 1 for size in b_shape[:-2])
    tall = one_matrix and any(size != 1 for size in node.outputs[0].shape[:-2])
    multiply = PreparedKernel(prepare_stacked_product if tall else prepare_product)
    if node.outputs[0].data_type == "float32":
        return multiply
    sizes = (node.outputs[0].shape[-2], b_shape[-2], b_shape[-1])
    if math.prod(node.outputs[0].shape[:-2]) * elements(sizes) <= SMALL:
        return rounded(multiply)
    return widened_product(node, tall=tall)


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


def rounded(multiply: Kernel) -> Kernel:
    """Return a kernel that applies the float32 kernel ``multiply`` to small float16 arrays."""

    def run(*arrays: Array) -> None:
        wide = np.empty(arrays[-1].shape, np.float32)
        multiply(*(float32(array) for array in arrays[:-1]), wide)
        np.copyto(arrays[-1], wide, casting="same_kind")

    return run


def widened_product(node: Node, *, tall: bool) -> Kernel:
    """Return the product of float16 matrices, with as many at a time as fit into the scratch."""
    shape = node.outputs[0].shape
    a_shape, b_shape = ((1,) * (len(shape) - value.descriptor.rank) + value.descriptor.shape for value in node.inputs)
    if tall:
        count = node.outputs[0].element_count // shape[-1]
        a_shape, b_shape, shape = (1, count, a_shape[-1]), (1, *b_shape[-2:]), (1, count, shape[-1])
    batch = shape[:-2] or (1,)
    a_shape, b_shape = (sizes if len(sizes) > 2 else (1, *sizes) for sizes in (a_shape, b_shape))
    sizes = (a_shape[-2], a_shape[-1], shape[-1])
    most = most_elements(node, sizes, math.prod(batch))
    multiply = Widened(sizes, most, long_rows(sizes, most, b_transposed=False))

    def run(a: Array, b: Array, output: Array) -> None:
        a, b, output = a.reshape(a_shape), b.reshape(b_shape), output.reshape(*batch, *shape[-2:])
        for tile in tiles(batch, multiply.matrices):
            target = output[tile]

            def finish(block: Array, rows: slice, columns: slice, target: Array = target) -> None:
                narrow(block, target[..., rows, columns])

            multiply(a[part_of(a_shape[:-2], tile)], b[part_of(b_shape[:-2], tile)], finish)

    return run


def most_elements(node: Node, sizes: Sizes, count: int = 1) -> int:
    """Return the scratch elements for ``count`` float16 products of these sizes."""
    if elements(sizes) <= SMALL:
        return min(count * elements(sizes), MANY)
    least = WHOLE if min(sizes[0], sizes[2]) > FEW else CACHED
    return min(count * elements(sizes), max(least, 0 if least < WHOLE else allowance(node) // 4))


def long_rows(sizes: Sizes, most: int, *, b_transposed: bool) -> Sizes | None:
    """Return the block sizes of a product of few rows; None where it is not cut, or cut like other products.

    A matrix widened in whole rows, in memory order, takes three quarters of the time of one widened in square blocks.
    """
    rows, inner, columns = sizes
    if rows > FEW or elements(sizes) <= most:
        return None
    if b_transposed:
        inner = tile_size(inner, most / 2 / (rows + 1))
        return rows, inner, tile_size(columns, (most - rows * inner) / (inner + elements((rows, 0, 1))))
    columns = tile_size(columns, min(LONG, most / 2 / elements((rows, 0, 1))))
    return rows, tile_size(inner, (most - elements((rows, 0, columns))) / (rows + columns)), columns


@kernel(matrix.gemm, work=multiply_adds)
def gemm(node: Node) -> Kernel:
    transpose_a, transpose_b = node.options["a_transpose"], node.options["b_transpose"]
    shape = node.outputs[0].shape
    combine = Combination(node)

    def prepare(a: Array, b: Array, *rest: Array) -> Run:
        multiply = prepare_product(a.T if transpose_a else a, b.T if transpose_b else b, rest[-1])
        return in_order([multiply, combine.prepare(rest[:-1], rest[-1])])

    in_float32 = PreparedKernel(prepare)
    if node.outputs[0].data_type == "float32":
        return in_float32
    sizes = (shape[0], node.operand("a").shape[0 if transpose_a else 1], shape[1])
    if elements(sizes) <= SMALL:
        return rounded(in_float32)
    most = most_elements(node, sizes)
    multiply = Widened(sizes, most, long_rows(sizes, most, b_transposed=transpose_b))

    def run_in_float16(a: Array, b: Array, *rest: Array) -> None:
        c, output = combine.addend(rest[:-1]), rest[-1]
        c = None if c is None else np.broadcast_to(c, shape)

        def finish(block: Array, rows: slice, columns: slice) -> None:
            combine(block, None if c is None else c[rows, columns])
            narrow(block, output[rows, columns])

        multiply(a.T if transpose_a else a, b.T if transpose_b else b, finish)

    return run_in_float16


class Combination:
    """The part of a gemm after the product: the product times alpha, plus beta times c, in float32."""

    def __init__(self, node: Node) -> None:
        data_type = node.outputs[0].data_type
        self._alpha, self._beta = (np.float32(cast_number(node.options[name], data_type)) for name in ("alpha", "beta"))
        self._shape = node.outputs[0].shape
        self._rows = max(1, allowance(node) // (4 * self._shape[1]))
        self._is_small = "c" in node.operands and node.operand("c").element_count < node.outputs[0].element_count

    def prepare(self, given: tuple[Array, ...], product: Array) -> Run:
        """Return the combination for the whole product, given ``c`` or nothing, with its arrays bound."""
        if given and self._alpha == self._beta == 1:
            return partial(np.add, product, given[0], product)
        return lambda: self(product, self.addend(given))

    def addend(self, given: tuple[Array, ...]) -> Array | None:
        """Return ``c``, if given, in a shape that broadcasts, and already times beta if it has few elements."""
        if not given:
            return None
        if not self._is_small:
            return given[0].reshape(self._shape)
        return given[0] if self._beta == 1 else np.multiply(given[0], self._beta, dtype=np.float32)

    def __call__(self, block: Array, c: Array | None) -> None:
        """Combine a block of the product with the part of the addend that belongs to it."""
        if self._alpha != 1:
            np.multiply(block, self._alpha, out=block)
        if c is None:
            return
        is_scaled = self._is_small or self._beta == 1
        if is_scaled:
            np.add(block, c, out=block)
            return
        for start in range(0, len(block), self._rows):
            rows = slice(start, start + self._rows)
            np.add(block[rows], np.multiply(c[rows], self._beta, dtype=np.float32), out=block[rows])
