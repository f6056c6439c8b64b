"""Matrix products (sections "gemm" and "matmul")."""

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.limits import FLOATS, MAX_RANK, of_ranks
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import broadcast, check_broadcast_to, output, refuse

GEMM = of_ranks(FLOATS, a=2, b=2, c=(0, 2), output=2)
MATMUL = of_ranks(FLOATS, a=(2, MAX_RANK), b=(2, MAX_RANK), output=(2, MAX_RANK))


@operator("gemm", GEMM, propagates_nan=True)
def gemm(
    a: MLOperand,
    b: MLOperand,
    *,
    c: MLOperand | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    a_transpose: bool = False,
    b_transpose: bool = False,
    label: str = "",
) -> MLOperandDescriptor:
    """Multiply two matrices and add a third: alpha · A · B + beta · C.

    float16 is computed in float32 and rounded once.

    Args:
        a: the first matrix, [M, K], or [K, M] with ``a_transpose``.
        b: the second matrix, [K, N], or [N, K] with ``b_transpose``.
        c: broadcastable to [M, N]; nothing is added when it is absent.
        alpha: factor of the product.
        beta: factor of ``c``.
        a_transpose: whether to transpose ``a`` first.
        b_transpose: whether to transpose ``b`` first.

    Returns:
        The matrix, [M, N].
    """
    # spec: gemm 7-10
    rows, inner = reversed(a.shape) if a_transpose else a.shape
    inner_b, columns = reversed(b.shape) if b_transpose else b.shape
    check_inner(inner, inner_b)
    if c is not None:
        # spec: gemm 12.1
        check_broadcast_to("c", c.shape, (rows, columns))
    return output(a.data_type, (rows, columns))


@operator("matmul", MATMUL, propagates_nan=True)
def matmul(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Multiply matrices: the last two dimensions of a and b; the dimensions before them broadcast.

    float16 is computed in float32 and rounded once.

    Args:
        a: the first matrices, [..., M, K].
        b: the second matrices, [..., K, N].

    Returns:
        The matrices, [..., M, N].
    """
    check_inner(a.shape[-1], b.shape[-2])
    # spec: matmul 4.11-4.13
    batch = broadcast(a.shape[:-2], b.shape[:-2], ("the batch of a", "the batch of b"))
    return output(a.data_type, (*batch, a.shape[-2], b.shape[-1]))


def check_inner(columns: int, rows: int) -> None:
    """Refuse two matrices that cannot be multiplied."""
    # spec: gemm 11; matmul 4.10
    if columns != rows:
        refuse("the number of rows of b", rows, f"that of columns of a, {columns}")
