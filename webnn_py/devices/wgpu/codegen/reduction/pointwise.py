"""Kernels that compute each element from the same element of operands of any layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from webnn_py.devices.wgpu.codegen.entry_point import WORKGROUP
from webnn_py.devices.wgpu.codegen.reduction.operands import KernelOperand, StoreTarget
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows, VectorAxis
from webnn_py.devices.wgpu.codegen.reduction.writer import KernelWriter
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering


def emit_pointwise(
    lowering: Lowering,
    label: str,
    operands: Sequence[KernelOperand],
    shape: tuple[int, ...],
    compute: Callable[..., str],
    target: StoreTarget,
) -> None:
    """Emit one kernel.

    Args:
        lowering: the lowering.
        label: the operator and its data types.
        operands: tensors whose layouts have ``shape``.
        shape: the shape of the output.
        compute: (a variable of each operand) → an expression for the output element.
        target: the output.
    """
    writer = KernelWriter(lowering, label)
    count = math.prod(shape)
    vec4s = -(-count // WIDTH)
    writer.add(f"let four = group * {WORKGROUP}u + t;", f"if (four >= {vec4s}u) {{ return; }}")
    vector: VectorAxis = "none" if count % WIDTH else "across"
    places = ["four"]
    if vector == "none":  # indices beyond the end are clamped
        places = [writer.let(f"min(four * {WIDTH}u + {component}u, {count - 1}u)", "at") for component in range(WIDTH)]
    loaded = [writer.read_flat(operand, shape, vector, places) for operand in operands]
    terms = [writer.read_flat(term, shape, vector, places) for term in target.terms]
    results = [writer.let(compute(*items)) for items in zip(*loaded, strict=True)]
    values = writer.stored(target, results, terms)
    flat = ReductionRows((vec4s * WIDTH,), ()).view(Layout.dense((vec4s * WIDTH,)))
    writer.store(target, flat, "across", "four", "0u", values)
    writer.emit(WORKGROUP, -(-vec4s // WORKGROUP))
