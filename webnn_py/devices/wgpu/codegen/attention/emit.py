"""Emission of attention: one kernel, or one for each part of the keys and one that merges the parts."""

from __future__ import annotations

from webnn_py.devices.wgpu.codegen.attention import tile
from webnn_py.devices.wgpu.codegen.attention.kernel import POWER, TileWriter, inverse, normalization_factor
from webnn_py.devices.wgpu.codegen.attention.lane_kernel import LaneWriter
from webnn_py.devices.wgpu.codegen.attention.lanes import LaneAttention, choose_lanes
from webnn_py.devices.wgpu.codegen.attention.operands import AttentionOperands, shape_of
from webnn_py.devices.wgpu.codegen.attention.tile import AttentionShape, TiledAttention, choose_plan
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
    return is_bound and find_plan(shape_of(attention), features) is not None


def emit_attention(lowering: Lowering, attention: Attention) -> None:
    """Emit the kernels of an attention for which :func:`can_emit` holds."""
    operands = AttentionOperands.from_attention(lowering, attention)
    plan = find_plan(operands.shape, lowering.features)
    assert plan is not None  # noqa: S101 - can_emit says so
    bound = sum(not isinstance(term, str) for term in operands.terms) + (operands.dead is not None)
    epilogue = Epilogue(lowering, attention.product, own_buffers=OWN_BUFFERS + bound)
    front = "" if operands.fused is None else f"{operands.fused.label} "
    label = f"matmul {front}softmax {epilogue.label}"

    def kernel(end: EpilogueCode, label: str) -> Kernel:
        if isinstance(plan, LaneAttention):
            return LaneWriter(plan, operands, end).kernel(label)
        return TileWriter(plan, operands, end).kernel(label)

    if plan.splits == 1:
        lowering.emit(kernel(epilogue.write(vec4s=True), label))
        return
    shape = plan.shape
    rows = plan.splits * shape.batch * shape.rows
    sums, totals = Buffer("block", rows * shape.columns * 4), Buffer("block", rows * 8)
    parts = [(sums, "sums", "vec4<f32>"), (totals, "totals_of", "vec2<f32>")]
    lowering.emit(kernel(EpilogueCode(parts), f"{label} (parts)"))
    _emit_sum(lowering, epilogue, plan, operands, parts, label)


def find_plan(shape: AttentionShape, features: Features) -> TiledAttention | LaneAttention | None:
    """Return the plan of the kernel, by subgroups if available; None if attention stays several kernels."""
    if shape.size % WIDTH or shape.columns % WIDTH or shape.products < tile.LEAST_PRODUCTS:
        return None
    return choose_lanes(shape, features) or choose_plan(shape, features)


def _emit_sum(
    lowering: Lowering,
    epilogue: Epilogue,
    plan: TiledAttention | LaneAttention,
    operands: AttentionOperands,
    parts: list[Binding],
    label: str,
) -> None:
    """Emit the kernel that merges the sums of the parts, each relative to its own maximum score."""
    shape = plan.shape
    rows = shape.batch * shape.rows
    finish = epilogue.write(vec4s=True)
    bindings = Bindings("r")
    factor = normalization_factor(operands, bindings, f"place % {shape.rows}u")
    lines = [
        f"let place = four / {plan.columns}u;",
        f"let batch = place / {shape.rows}u;",
        *(f"let of{part} = totals_of[place + {part * rows}u];" for part in range(plan.splits)),
        "var highest = of0.x;",
        *(f"highest = max(highest, of{part}.x);" for part in range(1, plan.splits)),
        "let top = finite_or_zero(highest);",
        "var total = 0.0;",
        "var sum = vec4<f32>();",
    ]
    for part in range(plan.splits):
        lines += [
            "{",
            f"  let scale = power(of{part}.x - top);",
            f"  total += select(of{part}.y * scale, of{part}.y, of{part}.y < 0.0);",
            f"  sum += sums[four + {part * rows * plan.columns}u] * scale;",
            "}",
        ]
    lines += [f"let inverse = {inverse('highest', 'total')};", *factor, "finish(four, sum * factor);"]
    main, workgroups = vec4_entry_point(rows * shape.columns, lines)
    lowering.emit(finish.kernel(f"{label} (sum)", [*parts, *bindings], [POWER], main, workgroups))
