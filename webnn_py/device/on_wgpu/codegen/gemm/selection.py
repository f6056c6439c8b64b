"""Which kernels compute a product."""

from __future__ import annotations

from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue
from webnn_py.device.on_wgpu.codegen.gemm.gemv import MOST_VECTORS, emit_skinny
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import Matrix
from webnn_py.device.on_wgpu.codegen.gemm.tiled import Product, emit_product
from webnn_py.device.on_wgpu.records.lowering import Lowering


def is_skinny(product: Product) -> bool:
    """Whether one side has few vectors only."""
    matrices = isinstance(product.left, Matrix) and isinstance(product.right, Matrix)
    few = min(product.left.outer, product.right.outer) <= MOST_VECTORS
    return matrices and few and product.left.inner > 0


def emit_best(lowering: Lowering, product: Product, epilogue: Epilogue) -> None:
    """The kernels of any product."""
    product = product.upright()
    (emit_skinny if is_skinny(product) else emit_product)(lowering, product, epilogue)
