"""Emission of attention: one kernel, or one for each part of the keys and one that merges the parts."""

from __future__ import annotations

from collections.abc import Callable

from webnn_py.devices.wgpu.codegen.attention import tile as tiling
from webnn_py.devices.wgpu.codegen.attention.kernel import POWER, AttentionWriter, merged
from webnn_py.devices.wgpu.codegen.attention.operands import AttentionOperands, FusedOperands, shape_of
from webnn_py.devices.wgpu.codegen.attention.tile import AttentionShape, AttentionTile, choose_tile
from webnn_py.devices.wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue, EpilogueCode
from webnn_py.devices.wgpu.codegen.module import Binding, Bindings
from webnn_py.devices.wgpu.records.attention import Attention
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.lowering import Lowering

OWN_BUFFERS = 5
"""The most buffers that the kernel binds without score terms: queries, keys, values, sums and their totals."""


def can_emit(attention: Attention, features: Features) -> bool:
    """Return whether there are kernels for an attention on an adapter."""
    is_bound = OWN_BUFFERS + attention.terms + (attention.dead is not None) <= features.max_storage_buffers
    return is_bound and find_tile(shape_of(attention), features) is not None


def emit_attention(lowering: Lowering, attention: Attention) -> None:
    """Emit the kernels of an attention for which :func:`can_emit` holds."""
    tile = find_tile(shape_of(attention), lowering.features)
    assert tile is not None  # noqa: S101 - can_emit says so
    operands = FusedOperands.from_attention(lowering, attention, tile)
    epilogue = Epilogue(lowering, attention.product, own_buffers=OWN_BUFFERS + operands.bound_terms)
    front = "" if operands.fused is None else f"{operands.fused.label} "
    label = f"matmul {front}softmax {epilogue.label}"
    emit_kernels(lowering, operands, lambda: epilogue.write(vec4s=True), label)


def find_tile(shape: AttentionShape, features: Features) -> AttentionTile | None:
    """Return the tile of the kernel; None if attention stays several kernels."""
    if shape.size % WIDTH or shape.columns % WIDTH or shape.products < tiling.LEAST_PRODUCTS:
        return None
    return choose_tile(shape, features)


def emit_kernels(lowering: Lowering, operands: AttentionOperands, end: Callable[[], EpilogueCode], label: str) -> None:
    """Emit the kernel, and one that merges the parts of the keys if there are several.

    Args:
        lowering: the lowering.
        operands: the operands, and the tile.
        end: writes the function that stores results.
        label: the label of the kernels.
    """
    tile = operands.tile
    if tile.splits == 1:
        lowering.emit(AttentionWriter(operands, end()).kernel(label))
        return
    rows = tile.splits * tile.shape.batch * tile.shape.rows
    sums, totals = Buffer("block", rows * tile.shape.columns * 4), Buffer("block", rows * 8)
    parts = [(sums, "sums", "vec4<f32>"), (totals, "totals_of", "vec2<f32>")]
    lowering.emit(AttentionWriter(operands, EpilogueCode(parts)).kernel(f"{label} (parts)"))
    lowering.emit(_sum(operands, end(), parts, label))


def _sum(operands: AttentionOperands, end: EpilogueCode, parts: list[Binding], label: str) -> Kernel:
    """Return the kernel that merges the sums of the parts."""
    tile = operands.tile
    rows = tile.shape.batch * tile.shape.rows
    bindings = Bindings("r")
    functions = [*operands.range_functions(), *operands.end_functions(bindings), POWER]
    before, count = operands.count()
    lines = [
        f"let place = four / {tile.columns}u;",
        f"let batch = place / {tile.shape.rows}u;",
        f"let row = place % {tile.shape.rows}u;",
        *before,
        *merged(
            f"totals_of[place + {{}} * {rows}u]", f"sums[four + {{}} * {rows * tile.columns}u]", count, tile.splits
        ),
        *operands.factor(bindings, "row", "highest", "total"),
        "finish(four, sum * factor);",
    ]
    main, workgroups = vec4_entry_point(rows * tile.shape.columns, lines)
    return end.kernel(f"{label} (sum)", [*parts, *operands.reads, *bindings], functions, main, workgroups)
