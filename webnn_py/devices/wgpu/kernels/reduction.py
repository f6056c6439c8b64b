"""Reductions, arg-reductions and the cumulative sum in WGSL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from webnn_py.core.graph import Node
from webnn_py.core.operators import reduction
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.wgpu.codegen.reduction.combiners import (
    SUM_SCALE,
    Combiner,
    extreme,
    fold,
    index_of_extreme,
    log_sum_exp,
    root_of_squares,
    scaled_sum,
)
from webnn_py.devices.wgpu.codegen.reduction.operands import StoreTarget, TensorOperand, label_of, read_or_fuse
from webnn_py.devices.wgpu.codegen.reduction.reduce import emit_reduction
from webnn_py.devices.wgpu.codegen.reduction.rows import ReductionRows
from webnn_py.devices.wgpu.codegen.reduction.scan import emit_scan
from webnn_py.devices.wgpu.records.element import compute_type, literal
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import kernels


def reduce(node: Node, lowering: Lowering) -> None:
    """Emit the kernels of an operator of :data:`COMBINERS`."""
    how, shape = COMBINERS[node.operator](node), node.operand("input").shape
    axes = [node.options["axis"]] if "axis" in node.options else node.options["axes"]
    reduced = tuple(range(len(shape))) if axes is None else tuple(sorted(axes))
    # A kernel binds the variables of partial results, to write or to read them, and the output.
    own_buffers = len(how.kinds) + 1
    target = StoreTarget.with_epilogue(lowering, node.results[0], own_buffers)
    spare = lowering.features.max_storage_buffers - own_buffers - target.epilogue_buffers
    source = read_or_fuse(lowering, node.value("input"), spare)
    emit_reduction(lowering, label_of(node, source, target), [source], ReductionRows(shape, reduced), how, [target])


def kind_of(node: Node) -> str:
    """Return the WGSL type in which an operand is computed."""
    return compute_type(node.operand("input").data_type)


def sum_of_magnitudes(node: Node) -> Combiner:
    kind = kind_of(node)
    return fold(kind, "+", 0, ("{}" if kind in ("u32", "u64") else "abs({})",))


def mean(node: Node) -> Combiner:
    operand, result = node.operand("input"), node.outputs[0]
    count = literal(operand.element_count / result.element_count, "f32")
    if operand.data_type == "float16":
        return fold("f32", "+", 0, finish=lambda variables: f"{variables[0]} / {count}")
    return scaled_sum(f"{{}} / {count}", f"{{}} / {count} * {literal(2.0**SUM_SCALE, 'f32')}")


def log_of_sum(node: Node) -> Combiner:
    if node.operand("input").data_type == "float16":
        return fold("f32", "+", 0, finish=lambda variables: f"log_f32({variables[0]})")
    return scaled_sum("log_f32({})", f"(log_f32({{}}) - log_f32({literal(2.0**-SUM_SCALE, 'f32')}))")


def root_of_sum(node: Node) -> Combiner:
    if node.operand("input").data_type == "float16":
        return fold("f32", "+", 0, ("({0} * {0})",), lambda variables: f"sqrt({variables[0]})")
    return root_of_squares()


def index_of(node: Node, *, highest: bool) -> Combiner:
    return index_of_extreme(kind_of(node), compute_type(node.outputs[0].data_type), highest=highest)


COMBINERS: Mapping[Operator[..., Any], Callable[[Node], Combiner]] = {
    reduction.reduce_sum: lambda node: fold(kind_of(node), "+", 0),
    reduction.reduce_product: lambda node: fold(kind_of(node), "*", 1),
    reduction.reduce_sum_square: lambda node: fold(kind_of(node), "+", 0, ("({0} * {0})",)),
    reduction.reduce_max: lambda node: extreme(kind_of(node), "max"),
    reduction.reduce_min: lambda node: extreme(kind_of(node), "min"),
    reduction.reduce_l1: sum_of_magnitudes,
    reduction.reduce_mean: mean,
    reduction.reduce_log_sum: log_of_sum,
    reduction.reduce_l2: root_of_sum,
    reduction.reduce_log_sum_exp: lambda _node: log_sum_exp(lambda items: [f"log_f32({items[1]}) + {items[0]}"]),
    reduction.arg_max: partial(index_of, highest=True),
    reduction.arg_min: partial(index_of, highest=False),
}
"""The combiners of operators that reduce rows."""

for operator in COMBINERS:
    kernels(operator, fuses="input")(reduce)


@kernels(reduction.cumulative_sum)
def cumulative_sum(node: Node, lowering: Lowering) -> None:
    operand = TensorOperand.from_value(lowering, node.value("input"))
    target = StoreTarget.from_value(lowering, node.results[0])
    shape = node.operand("input").shape
    emit_scan(
        lowering,
        f"{node.operator.spec_name} {operand.element.data_type}",
        operand,
        ReductionRows(shape, (node.options["axis"],)),
        target,
        exclusive=node.options["exclusive"],
        reversed=node.options["reversed"],
    )
