"""Matrix products in WGSL."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from webnn_py.core.descriptors import UINT4, MLOperandDescriptor
from webnn_py.core.graph import Constant, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators import matrix
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.block_quantized import (
    MATMUL_NBITS,
    by_dequantizing,
    packed_in_bytes,
    times_columns,
    unpacked,
)
from webnn_py.devices.composites.cached_attention import GROUP_QUERY_ATTENTION, by_positions
from webnn_py.devices.wgpu.codegen.attention.cached import emit_cached_attention, has_kernels
from webnn_py.devices.wgpu.codegen.epilogue import OWN_BUFFERS, Epilogue
from webnn_py.devices.wgpu.codegen.gemm.computed_loader import ComputedLoader
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.selection import emit_gemm
from webnn_py.devices.wgpu.records.element import WIDTH, literal
from webnn_py.devices.wgpu.records.layout import Layout, is_gemm_readable
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import composite, kernels
from webnn_py.devices.wgpu.records.variants import KernelVariant


@kernels(matrix.matmul)
def matmul(node: Node, lowering: Lowering) -> None:
    a, b = node.inputs
    *batch, rows, columns = node.outputs[0].shape
    left, right = matrix_layout(lowering, a), matrix_layout(lowering, b)
    if math.prod(right.shape[:-2]) == 1:
        tall = left.reshape((math.prod(left.shape[:-1]), left.shape[-1]))
        if tall is not None:  # many matrices times a single one are one tall matrix
            batch, rows, left, right = (
                [],
                tall.shape[0],
                tall,
                Layout(right.shape[-2:], right.strides[-2:], right.offset),
            )
    epilogue = Epilogue(lowering, node, own_buffers=own_buffers(lowering, a, b))
    emit_matrices(lowering, epilogue, (a, left), (b, right), (tuple(batch), rows, columns))


HALF_BYTE: Final = 4
"""The bits of elements of which two share a byte."""


@composite(MATMUL_NBITS)
def matmul_nbits(node: Node, builder: RewriteBuilder) -> list[Value]:
    """Keep weights of four bits packed: a product of float32 reads them so; others are unpacked once."""
    options, (columns, blocks) = node.options, node.operand("scales").shape
    constants = {
        name: item for name, item in node.operands.items() if name in MATMUL_NBITS.tables and isinstance(item, Constant)
    }
    arrays: dict[str, Any] = {name: item.data for name, item in constants.items()}
    operands: dict[str, Any] = {
        name: builder.operand(node.value(name)) for name in ("a", "scales", "bias") if name in node.operands
    }
    if options["bits"] != HALF_BYTE:
        (y,) = by_dequantizing(builder, **options, **operands, **arrays)
        return [builder.value(y)]
    is_wide = node.outputs[0].data_type == "float32"
    wide = operands if is_wide else {name: builder.cast(item, "float32") for name, item in operands.items()}
    points = np.full([columns, blocks], 8, np.uint8)
    if "zero_points" in arrays:
        points = unpacked(arrays["zero_points"], HALF_BYTE, columns, blocks)

    def of_four_bits(packed: Any, length: int, key: Hashable | None) -> MLOperand:
        return builder.operand(Constant(MLOperandDescriptor(UINT4, (columns, length)), packed, key))

    weights = of_four_bits(arrays["b"].reshape(-1), blocks * options["block_size"], constants["b"].key)
    zeros = of_four_bits(packed_in_bytes(points), blocks, None)
    rows = builder.dequantize_linear(weights, wide["scales"], zeros)
    y = times_columns(builder, wide["a"], rows, wide.get("bias"), options["inner"])
    return [builder.value(y if is_wide else builder.cast(y, "float16"))]


@composite(GROUP_QUERY_ATTENTION)
def group_query_attention(node: Node, builder: RewriteBuilder) -> list[Value] | None:
    """Draw attention with masks over positions where its kernels are not for it."""
    if has_kernels(node) and KernelVariant.CACHED_ATTENTION.is_on:
        return None
    operands: dict[str, Any] = {name: builder.operand(node.value(name)) for name in node.operands}
    return [*map(builder.value, by_positions(builder, **operands, **node.options))]


@kernels(GROUP_QUERY_ATTENTION)
def group_query_attention_kernels(node: Node, lowering: Lowering) -> None:
    emit_cached_attention(lowering, node)


@kernels(matrix.gemm)
def gemm(node: Node, lowering: Lowering) -> None:
    options = node.options
    a, b = node.value("a"), node.value("b")
    left, right = matrix_layout(lowering, a), matrix_layout(lowering, b)
    left = left.permute((1, 0)) if options["a_transpose"] else left
    right = right.permute((1, 0)) if options["b_transpose"] else right
    alpha, beta = (cast_number(options[name], node.outputs[0].data_type) for name in ("alpha", "beta"))
    c = node.operands.get("c")
    terms = [(c, lowering.place(c).layout)] if isinstance(c, Value) else []

    def combine(total: str, *addends: str) -> str:
        return " + ".join([scaled(total, alpha), *(scaled(addend, beta) for addend in addends)])

    rows, columns = node.outputs[0].shape
    epilogue = Epilogue(lowering, node, terms, combine, own_buffers(lowering, a, b))
    emit_matrices(lowering, epilogue, (a, left), (b, right), ((), rows, columns))


def scaled(value: str, factor: float) -> str:
    """Return a value times a number; compilers would take 0 · Infinity for 0."""
    if factor == 0:
        return f"zero_times({'-' if math.copysign(1, factor) < 0 else ''}({value}))"
    return value if factor == 1 else f"{value} * {literal(factor, 'f32')}"


def matrix_layout(lowering: Lowering, value: Value) -> Layout:
    """Return the place of an operand, copied first if the kernels cannot read its layout."""
    side = lowering.computed_side(value)
    if side is not None:
        return side.layout
    if not is_gemm_readable(lowering.place(value).layout):
        lowering.dense(value)
    return lowering.place(value).layout


def own_buffers(lowering: Lowering, *sides: Value) -> int:
    """Return the number of buffers that a product binds; a computed side also reads a scale and a zero point."""
    return OWN_BUFFERS + 2 * sum(lowering.computed_side(side) is not None for side in sides)


def emit_matrices(
    lowering: Lowering,
    epilogue: Epilogue,
    left: tuple[Value, Layout],
    right: tuple[Value, Layout],
    shape: tuple[tuple[int, ...], int, int],
) -> None:
    """Emit the kernels of a product of matrices in these layouts; the shape is (batch, rows, columns)."""
    batch, rows, columns = shape
    sides = []
    for (value, layout), outer, inner in ((left, -2, -1), (right, -1, -2)):
        batches = Layout(layout.shape[:-2], layout.strides[:-2], layout.offset).broadcast(batch)
        along = Layout((layout.shape[inner],), (layout.strides[inner],))
        side = lowering.computed_side(value)
        lies = (batches, along, layout.shape[outer], layout.strides[outer])
        element = lowering.element(value)
        if side is None:
            sides.append(MatrixLoader(lowering.place(value).buffer, element, *lies))
        else:
            buffer = lowering.place(next(iter(side.node.inputs))).buffer
            sides.append(ComputedLoader(buffer, element, *lies, lowering=lowering, node=side.node))

    def address(batch: str, row: str, column: str) -> str:
        return f"({batch} * {rows}u + {row}) * {columns}u + {column}"

    vec4s = columns % WIDTH == 0
    product = GemmProblem(math.prod(batch), sides[0], sides[1], address, vec4s, row_vec4s=rows % WIDTH == 0)
    emit_gemm(lowering, product, epilogue)
