"""The selection of kernels for a product."""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.epilogue import Epilogue
from webnn_py.devices.wgpu.codegen.gemm.four_bit_tiling import FourBitTiling
from webnn_py.devices.wgpu.codegen.gemm.gemv import emit_gemv
from webnn_py.devices.wgpu.codegen.gemm.gemv_four_bits import emit_four_bit_gemv
from webnn_py.devices.wgpu.codegen.gemm.gemv_tiling import MOST_VECTORS
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.tiled import emit_tiled_gemm
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.variants import KernelVariant


def is_gemv(product: GemmProblem) -> bool:
    """Return whether one operand has only a few vectors."""
    matrices = isinstance(product.left, MatrixLoader) and isinstance(product.right, MatrixLoader)
    few = min(product.left.outer, product.right.outer) <= MOST_VECTORS
    return matrices and few and product.left.inner > 0 and KernelVariant.GEMV.is_on


def emit_gemm(lowering: Lowering, product: GemmProblem, epilogue: Epilogue) -> None:
    """Emit the kernels of a product."""
    product = product.upright()
    tiling = FourBitTiling.for_product(lowering, product, epilogue)
    if tiling is not None:
        emit_four_bit_gemv(lowering, tiling, epilogue)
        return
    (emit_gemv if is_gemv(product) else emit_tiled_gemm)(lowering, product, epilogue)
