"""Matrix products, and the unit matrix."""

import numpy as np
from onnx import helper

from webnn_py.onnx_models.conversion_context import ConversionContext, StaticValue
from webnn_py.onnx_models.element_types import webnn_data_type
from webnn_py.onnx_models.table import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


@rule("MatMul", 1, 9, 13)
def matmul(context: ConversionContext, a: MLOperand, b: MLOperand) -> MLOperand:
    """A product of matrices, as numpy has it: a vector is a row on the left, a column on the right."""
    left = context.reshape(a, [1, *a.shape]) if a.rank == 1 else a
    right = context.reshape(b, [*b.shape, 1]) if b.rank == 1 else b
    product = context.matmul(left, right)
    shape = list(product.shape)
    if b.rank == 1:
        del shape[-1]
    if a.rank == 1:
        del shape[len(product.shape) - 2]
    return product if len(shape) == product.rank else context.reshape(product, shape)


@rule("Gemm", 7, 9, 11, 13)
def gemm(
    context: ConversionContext,
    a: MLOperand,
    b: MLOperand,
    c: MLOperand | None = None,
    *,
    alpha: float,
    beta: float,
    transA: int,  # noqa: N803 - ONNX's name
    transB: int,  # noqa: N803 - ONNX's name
) -> MLOperand:
    """Alpha · A · B + beta · C."""
    return context.gemm(a, b, c=c, alpha=alpha, beta=beta, a_transpose=bool(transA), b_transpose=bool(transB))


@rule("EyeLike", 9, 22)
def eye_like(context: ConversionContext, input: MLOperand, *, dtype: int | None = None, k: int) -> StaticValue:
    """Ones on the k-th diagonal of a matrix of the input's shape; it is known."""
    if input.rank != 2:
        refuse("the rank of the input", input.rank, "2")
    if dtype is not None:
        webnn_data_type("attribute dtype", dtype)
    context.reserve(8 * input.shape[0] * input.shape[1])
    k = max(-input.shape[0], min(k, input.shape[1]))
    element_type = np.dtype(input.data_type) if dtype is None else np.dtype(helper.tensor_dtype_to_np_dtype(dtype))
    rows, columns = input.shape
    return np.eye(rows, columns, k, dtype=element_type)
