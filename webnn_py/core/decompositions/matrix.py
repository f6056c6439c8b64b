"""Products of matrices."""

from webnn_py.core.decompositions.common import number, widened
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand


@widened
def gemm(
    builder: Builder,
    a: MLOperand,
    b: MLOperand,
    *,
    c: MLOperand | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    a_transpose: bool = False,
    b_transpose: bool = False,
) -> MLOperand:
    a = builder.transpose(a) if a_transpose else a
    b = builder.transpose(b) if b_transpose else b
    product = builder.matmul(a, b)
    product = product if alpha == 1 else builder.mul(number(builder, alpha, a), product)
    if c is None:
        return product
    return builder.add(product, c if beta == 1 else builder.mul(number(builder, beta, a), c))
