"""Softmax in WGSL: one kernel for lanes that fit into a workgroup's registers, otherwise a reduction and a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webnn_py.device.on_wgpu.kernels._combining import log_sum_exp, nan_unless_finite
from webnn_py.device.on_wgpu.kernels._lanes import Lanes
from webnn_py.device.on_wgpu.kernels._operands import Operand, Target, label_of, read_or_compute
from webnn_py.device.on_wgpu.kernels._pointwise import emit_pointwise
from webnn_py.device.on_wgpu.kernels._reducing import emit_reduction
from webnn_py.device.on_wgpu.kernels._rows import Plan, Rows
from webnn_py.device.on_wgpu.layout import Layout
from webnn_py.device.on_wgpu.lowering import Lowering
from webnn_py.device.on_wgpu.table import kernels
from webnn_py.graph import Node, Value
from webnn_py.operators import activation

OWN_BUFFERS: Final = 4
"""What the last kernel binds at most: the operand, the output, and two statistics between kernels."""


@kernels(activation.softmax, computes="input")
def softmax(node: Node, lowering: Lowering) -> None:
    """Exponentials less the highest element, divided by their sum."""
    value = node.operands["input"]
    assert isinstance(value, Value)  # noqa: S101 - for type checkers
    target = Target.behind_of(lowering, node.results[0], OWN_BUFFERS)
    lanes = Lanes(value.descriptor.shape, (node.options["axis"],))
    plan = Plan.of(lanes, lowering.features, packed=target.element.per_one > 1)
    if plan is None:
        _softmax_in_two(node, lowering, value, lanes, target)
        return
    spare = lowering.features.max_storage_buffers - 1 - target.bound_behind
    source = read_or_compute(lowering, value, spare)
    rows = Rows(lowering, label_of(node, source, target), lanes, plan)
    elements = rows.read(source)
    highest = rows.combine("max", elements)
    powers = rows.map(lambda output, x: f"exp_f32({x} - {highest[output]})", elements, zero_beyond=True)
    totals = rows.combine("+", powers)
    inverses = rows.let([nan_unless_finite(f"1.0 / {total}", top) for total, top in zip(totals, highest, strict=True)])
    rows.write(rows.map(lambda output, power: f"{power} * {inverses[output]}", powers), target)


def _softmax_in_two(node: Node, lowering: Lowering, value: Value, lanes: Lanes, target: Target) -> None:
    """First the highest elements and the sums, then the results."""
    operand = Operand.of(lowering, value)
    label = label_of(node, operand, target)

    def finish(variables: Sequence[str]) -> list[str]:
        top, total = variables
        return [top, nan_unless_finite(f"1.0 / {total}", total)]  # one infinite element makes all of the lane NaN

    statistics = [Target.between(lowering, "f32", lanes.outputs) for _ in range(2)]
    emit_reduction(lowering, f"{label} (sums)", [operand], lanes, log_sum_exp(finish), statistics)
    beside = lanes.beside(Layout.dense([lanes.shape[axis] for axis in lanes.kept]))
    emit_pointwise(
        lowering,
        label,
        [operand, *(Operand(item.buffer, item.element, beside) for item in statistics)],
        lanes.shape,
        lambda x, top, inverse: f"exp_f32({x} - {top}) * {inverse}",
        target,
    )
