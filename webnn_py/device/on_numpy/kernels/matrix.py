"""Matrix products on arrays: they go to BLAS; float16 by way of float32, rounded once."""

import numpy as np

from webnn_py.device.on_numpy.blas import float32, for_blas
from webnn_py.device.on_numpy.table import Array, Kernel, kernel
from webnn_py.graph import Node
from webnn_py.operators import matrix
from webnn_py.operators.casting import cast_number


def multiply_adds(node: Node) -> float:
    """One for each element of the output and each that it sums over."""
    a = node.operand("a").shape
    inner = a[-2] if node.options.get("a_transpose") else a[-1]
    return float(node.outputs[0].element_count * inner)


@kernel(matrix.matmul, work=multiply_adds)
def matmul(node: Node) -> Kernel:
    b_shape = node.operand("b").shape
    one_matrix = all(size == 1 for size in b_shape[:-2])
    tall = one_matrix and any(size != 1 for size in node.outputs[0].shape[:-2])
    multiply = stacked_product if tall else product
    return multiply if node.outputs[0].data_type == "float32" else rounded(multiply)


def product(a: Array, b: Array, output: Array) -> None:
    """Multiply float32 matrices."""
    np.matmul(for_blas(a), for_blas(b), out=output)


def stacked_product(a: Array, b: Array, output: Array) -> None:
    """Multiply many matrices by a single one: as one tall matrix, which is one call of BLAS."""
    inner, columns = b.shape[-2:]
    if a.flags.c_contiguous:
        np.matmul(a.reshape(-1, inner), for_blas(b.reshape(inner, columns)), out=output.reshape(-1, columns))
    else:
        product(a, b, output)


def rounded(multiply: Kernel) -> Kernel:
    """Do for float16 what ``multiply`` does for float32."""

    def run(a: Array, b: Array, output: Array) -> None:
        wide = np.empty(output.shape, np.float32)
        multiply(float32(a), float32(b), wide)
        np.copyto(output, wide, casting="same_kind")

    return run


@kernel(matrix.gemm, work=multiply_adds)
def gemm(node: Node) -> Kernel:
    options = node.options
    data_type = node.outputs[0].data_type
    alpha = np.float32(cast_number(options["alpha"], data_type))
    beta = np.float32(cast_number(options["beta"], data_type))
    transpose_a, transpose_b = options["a_transpose"], options["b_transpose"]
    has_c = "c" in node.operands

    def run(a: Array, b: Array, *rest: Array) -> None:
        output = rest[-1]
        result = output if data_type == "float32" else np.empty(output.shape, np.float32)
        a, b = float32(a), float32(b)
        np.matmul(for_blas(a.T if transpose_a else a), for_blas(b.T if transpose_b else b), out=result)
        if alpha != 1:
            np.multiply(result, alpha, out=result)
        if has_c:
            c = float32(rest[0])
            np.add(result, c if beta == 1 else c * beta, out=output)
        elif result is not output:
            np.copyto(output, result, casting="same_kind")

    return run
