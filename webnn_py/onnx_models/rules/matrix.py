"""Matrix products, determinants, and the unit matrix."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final

import attrs
import numpy as np
from onnx import helper

from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import broadcast, refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue
from webnn_py.onnx_models.reading.element_types import webnn_data_type
from webnn_py.onnx_models.rule_helpers.axes import check_rank
from webnn_py.onnx_models.rule_table.declaration import rule

LARGEST_DETERMINANT: Final = 8
"""The most rows; n rows have 2**n minors."""
MOST_PRODUCTS: Final = 2**24
"""Of integers, which are all there at once."""


@rule("MatMul", 1, 9, 13)
def matmul(context: ConversionContext, a: MLOperand, b: MLOperand) -> MLOperand:
    """Multiply matrices, as numpy does: a vector is a row on the left, a column on the right."""
    left = context.reshape(a, [1, *a.shape]) if a.rank == 1 else a
    right = context.reshape(b, [*b.shape, 1]) if b.rank == 1 else b
    product = _of_integers(context, left, right) if a.data_type in INTEGER_RANGES else context.matmul(left, right)
    return of_vectors(context, product, a.shape, b.shape)


def of_vectors(context: ConversionContext, product: MLOperand, a: Sequence[int], b: Sequence[int]) -> MLOperand:
    """Return a product without the row that a vector on the left was, and the column that one on the right was."""
    *batch, rows, columns = product.shape
    shape = [*batch, *([rows] if len(a) > 1 else []), *([columns] if len(b) > 1 else [])]
    return product if len(shape) == product.rank else context.reshape(product, shape)


def _of_integers(context: ConversionContext, a: MLOperand, b: MLOperand) -> MLOperand:
    """Return a product of matrices of integers, which WebNN's own does not take: all products of elements, added up."""
    rows = context.reshape(a, [*a.shape, 1])
    columns = context.reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    shape = broadcast(rows.shape, columns.shape, ("the first factor", "the second"))
    if math.prod(shape) > MOST_PRODUCTS:
        refuse("the number of products of integers", math.prod(shape), f"at most {MOST_PRODUCTS}")
    return context.reduce_sum(context.mul(rows, columns), axes=[len(shape) - 2])


@attrs.frozen(kw_only=True)
class TransposeAttributes:
    """Attributes of products of matrices: a factor, and whether A and B are transposed first."""

    alpha: float = 1.0
    transA: bool = False  # noqa: N815 - ONNX's name
    transB: bool = False  # noqa: N815 - ONNX's name


@attrs.frozen(kw_only=True)
class GemmAttributes(TransposeAttributes):
    """Attributes of Gemm, and a factor of C."""

    beta: float = 1.0


@rule("Gemm", 7, 9, 11, 13)
def gemm(
    context: ConversionContext, a: MLOperand, b: MLOperand, c: MLOperand | None = None, *, attributes: GemmAttributes
) -> MLOperand:
    """Return alpha · A · B + beta · C."""
    alpha, beta, a_transpose, b_transpose = attributes.alpha, attributes.beta, attributes.transA, attributes.transB
    return context.gemm(a, b, c=c, alpha=alpha, beta=beta, a_transpose=a_transpose, b_transpose=b_transpose)


@rule("EyeLike", 9, 22)
def eye_like(context: ConversionContext, input: MLOperand, *, dtype: int | None = None, k: int) -> StaticValue:
    """Ones on the k-th diagonal of a matrix of the input's shape; it is known."""
    check_rank("the input", input, 2)
    if dtype is not None:
        webnn_data_type("attribute dtype", dtype)
    context.reserve(8 * input.shape[0] * input.shape[1])
    k = max(-input.shape[0], min(k, input.shape[1]))
    element_type = np.dtype(input.data_type) if dtype is None else np.dtype(helper.tensor_dtype_to_np_dtype(dtype))
    rows, columns = input.shape
    return np.eye(rows, columns, k, dtype=element_type)


@rule("Det", 11, 22)
def determinant(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Compute the determinants of matrices from the lowest row up: each row times the minors below it."""
    size = x.shape[-1] if x.rank >= 2 else 0
    if not 1 <= size <= LARGEST_DETERMINANT or x.shape[-2] != size:
        refuse("the shape of the input", x.shape, f"[..., n, n], n from 1 to {LARGEST_DETERMINANT}")
    matrices = context.reshape(x, [math.prod(x.shape[:-2]), size, size])
    rows = [
        context.reshape(row, [matrices.shape[0], size])
        for row in (context.split(matrices, size, axis=1) if size > 1 else [matrices])
    ]
    minors = rows[-1]
    for taken in range(2, size + 1):
        place = {columns: index for index, columns in enumerate(combinations(range(size), taken - 1))}
        chosen = list(combinations(range(size), taken))
        below = [[place[columns[:index] + columns[index + 1 :]] for index in range(taken)] for columns in chosen]
        signs = (1 - 2 * (np.arange(taken) % 2)).astype(x.data_type)
        factors = context.gather(rows[size - taken], context.constant(np.array(chosen, np.int32)), axis=1)
        parts = context.mul(
            context.mul(factors, context.constant(signs)),
            context.gather(minors, context.constant(np.array(below, np.int32)), axis=1),
        )
        minors = context.reduce_sum(parts, axes=[2])
    return context.reshape(minors, x.shape[:-2])
