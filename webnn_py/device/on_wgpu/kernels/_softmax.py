"""Softmax in WGSL: one kernel for lanes that fit into a workgroup's registers, otherwise a reduction and a second."""

from __future__ import annotations

from collections.abc import Sequence

from webnn_py.device.on_wgpu.kernels._combining import log_sum_exp, nan_unless_finite
from webnn_py.device.on_wgpu.kernels._lanes import Lanes
from webnn_py.device.on_wgpu.kernels._pointwise import emit_pointwise
from webnn_py.device.on_wgpu.kernels._reducing import emit_reduction
from webnn_py.device.on_wgpu.kernels._rows import Plan, Rows
from webnn_py.device.on_wgpu.kernels._writer import Operand, Target
from webnn_py.device.on_wgpu.layout import Layout
from webnn_py.device.on_wgpu.lowering import Lowering
from webnn_py.device.on_wgpu.table import kernels
from webnn_py.graph import Node, Value
from webnn_py.operators import activation


@kernels(activation.softmax)
def softmax(node: Node, lowering: Lowering) -> None:
    """Exponentials less the highest element, divided by their sum."""
    value = node.operands["input"]
    assert isinstance(value, Value)  # noqa: S101 - for type checkers
    operand = Operand.of(lowering, value)
    target = Target.of(lowering, node.results[0])
    lanes = Lanes(value.descriptor.shape, (node.options["axis"],))
    label = f"softmax {operand.data_type}"
    plan = Plan.of(lanes, lowering.features, packed=target.element.per_one > 1)
    if plan is None:
        _softmax_in_two(lowering, label, operand, lanes, target)
        return
    rows = Rows(lowering, label, lanes, plan)
    elements = rows.read(operand)
    highest = rows.combine("max", elements)
    powers = rows.map(lambda output, x: f"exp_f32({x} - {highest[output]})", elements, zero_beyond=True)
    totals = rows.combine("+", powers)
    inverses = rows.let([nan_unless_finite(f"1.0 / {total}", top) for total, top in zip(totals, highest, strict=True)])
    rows.write(rows.map(lambda output, power: f"{power} * {inverses[output]}", powers), target)


def _softmax_in_two(lowering: Lowering, label: str, operand: Operand, lanes: Lanes, target: Target) -> None:
    """First the highest elements and the sums, then the results."""

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
