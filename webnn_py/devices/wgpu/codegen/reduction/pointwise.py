"""Kernels that compute each element from the same element of operands of any layout, such as statistics of its row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from webnn_py.core.graph import Node
from webnn_py.devices.wgpu.codegen.entry_point import WORKGROUP
from webnn_py.devices.wgpu.codegen.reduction.combiners import Combiner
from webnn_py.devices.wgpu.codegen.reduction.operands import KernelOperand, StoreTarget, TensorOperand, label_of
from webnn_py.devices.wgpu.codegen.reduction.reduce import emit_reduction
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows, RowsTiling, VectorAxis
from webnn_py.devices.wgpu.codegen.reduction.writer import RowsWriter
from webnn_py.devices.wgpu.records.element import WIDTH
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
    count = math.prod(shape)
    vec4s = -(-count // WIDTH)
    flat = ReductionRows((vec4s * WIDTH,), ())
    writer = RowsWriter(lowering, label, flat, RowsTiling("across", WORKGROUP, 1, along_first=False, length=1))
    writer.add(f"let four = group * {WORKGROUP}u + t;", f"if (four >= {vec4s}u) {{ return; }}")
    vector: VectorAxis = "none" if count % WIDTH else "across"
    places = ["four"]
    if vector == "none":  # indices beyond the end are clamped
        places = [writer.let(f"min(four * {WIDTH}u + {component}u, {count - 1}u)", "at") for component in range(WIDTH)]
    loaded = [writer.read_flat(operand, shape, vector, places) for operand in operands]
    read = () if target.epilogue is None else target.epilogue.terms
    terms = [writer.read_flat(term, shape, vector, places) for term in read]
    results = [writer.let(compute(*items)) for items in zip(*loaded, strict=True)]
    writer.store_at(target, "four", writer.stored(target, results, terms))
    writer.emit()


def emit_by_statistics(
    node: Node,
    lowering: Lowering,
    rows: ReductionRows,
    reduction: Combiner,
    compute: Callable[..., str],
    target: StoreTarget,
    *,
    count: int,
    label: str,
    parameters: Sequence[TensorOperand] = (),
) -> None:
    """Emit a kernel that reduces rows of a node's input, and one that computes each element from the results.

    Args:
        node: the node.
        lowering: the lowering.
        rows: the rows.
        reduction: the reduction of the first kernel.
        compute: (a variable of the input, of each result of the reduction and of each parameter) → an expression for
            the output element.
        target: the output.
        count: the number of results of the reduction.
        label: what they are, for the label of the first kernel.
        parameters: the other operands of the second kernel.
    """
    operand = TensorOperand.from_value(lowering, node.value("input"))
    whole = label_of(node, operand, target)
    found = [StoreTarget.between(lowering, "f32", rows.outputs) for _ in range(count)]
    emit_reduction(lowering, f"{whole} ({label})", [operand], rows, reduction, found)
    beside = [item.operand(rows.of_outputs()) for item in found]
    emit_pointwise(lowering, whole, [operand, *beside, *parameters], rows.shape, compute, target)
