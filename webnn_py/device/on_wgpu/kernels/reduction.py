"""Reductions, arg-reductions and the cumulative sum in WGSL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from webnn_py.device.on_wgpu.codegen.reduction.combiners import (
    SUM_SCALE,
    Combiner,
    extreme,
    fold,
    index_of_extreme,
    log_sum_exp,
    root_of_squares,
    scaled_sum,
)
from webnn_py.device.on_wgpu.codegen.reduction.operands import StoreTarget, TensorOperand, label_of, read_or_fuse
from webnn_py.device.on_wgpu.codegen.reduction.reduce import emit_reduction
from webnn_py.device.on_wgpu.codegen.reduction.rows import ReductionRows
from webnn_py.device.on_wgpu.codegen.reduction.scan import emit_scan
from webnn_py.device.on_wgpu.records.element import literal
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.table import kernels
from webnn_py.graph import Node
from webnn_py.operators import reduction
from webnn_py.operators.declaration import Operator


def _reduce(node: Node, lowering: Lowering, how: Combiner, axes: Sequence[int] | None) -> None:
    shape = node.operand("input").shape
    reduced = tuple(range(len(shape))) if axes is None else tuple(sorted(axes))
    # A kernel binds the variables of partial results, to write or to read them, and the output.
    own_buffers = len(how.kinds) + 1
    target = StoreTarget.with_epilogue(lowering, node.results[0], own_buffers)
    spare = lowering.features.max_storage_buffers - own_buffers - target.epilogue_buffers
    source = read_or_fuse(lowering, node.value("input"), spare)
    emit_reduction(lowering, label_of(node, source, target), [source], ReductionRows(shape, reduced), how, [target])


def _kind(node: Node, lowering: Lowering) -> str:
    return lowering.element(node.value("input")).compute


COMBINERS: Mapping[Operator[..., Any], Callable[[str], Combiner]] = {
    reduction.reduce_sum: lambda kind: fold(kind, "+", 0),
    reduction.reduce_product: lambda kind: fold(kind, "*", 1),
    reduction.reduce_sum_square: lambda kind: fold(kind, "+", 0, ("({0} * {0})",)),
    reduction.reduce_max: lambda kind: extreme(kind, "max"),
    reduction.reduce_min: lambda kind: extreme(kind, "min"),
}
"""The combiners that depend on the computing type alone."""


def _combine(node: Node, lowering: Lowering) -> None:
    _reduce(node, lowering, COMBINERS[node.operator](_kind(node, lowering)), node.options["axes"])


for _operator in COMBINERS:
    kernels(_operator, fuses="input")(_combine)


@kernels(reduction.reduce_l1, fuses="input")
def reduce_l1(node: Node, lowering: Lowering) -> None:
    kind = _kind(node, lowering)
    absolute = "{}" if kind in ("u32", "u64") else "abs({})"
    _reduce(node, lowering, fold(kind, "+", 0, (absolute,)), node.options["axes"])


@kernels(reduction.reduce_mean, fuses="input")
def reduce_mean(node: Node, lowering: Lowering) -> None:
    operand, result = node.operand("input"), node.outputs[0]
    count = literal(operand.element_count / result.element_count, "f32")
    if operand.data_type == "float16":
        how = fold("f32", "+", 0, finish=lambda variables: f"{variables[0]} / {count}")
    else:
        how = scaled_sum(f"{{}} / {count}", f"{{}} / {count} * {literal(2.0**SUM_SCALE, 'f32')}")
    _reduce(node, lowering, how, node.options["axes"])


@kernels(reduction.reduce_log_sum, fuses="input")
def reduce_log_sum(node: Node, lowering: Lowering) -> None:
    if node.operand("input").data_type == "float16":
        how = fold("f32", "+", 0, finish=lambda variables: f"log_f32({variables[0]})")
    else:
        how = scaled_sum("log_f32({})", f"(log_f32({{}}) - log_f32({literal(2.0**-SUM_SCALE, 'f32')}))")
    _reduce(node, lowering, how, node.options["axes"])


@kernels(reduction.reduce_l2, fuses="input")
def reduce_l2(node: Node, lowering: Lowering) -> None:
    if node.operand("input").data_type == "float16":
        how = fold("f32", "+", 0, ("({0} * {0})",), lambda variables: f"sqrt({variables[0]})")
    else:
        how = root_of_squares()
    _reduce(node, lowering, how, node.options["axes"])


@kernels(reduction.reduce_log_sum_exp, fuses="input")
def reduce_log_sum_exp(node: Node, lowering: Lowering) -> None:
    how = log_sum_exp(lambda variables: [f"log_f32({variables[1]}) + {variables[0]}"])
    _reduce(node, lowering, how, node.options["axes"])


def _arg(node: Node, lowering: Lowering, *, highest: bool) -> None:
    index_kind = lowering.element(node.results[0]).compute
    how = index_of_extreme(_kind(node, lowering), index_kind, highest=highest)
    _reduce(node, lowering, how, [node.options["axis"]])


kernels(reduction.arg_max, fuses="input")(partial(_arg, highest=True))
kernels(reduction.arg_min, fuses="input")(partial(_arg, highest=False))


@kernels(reduction.cumulative_sum)
def cumulative_sum(node: Node, lowering: Lowering) -> None:
    operand = TensorOperand.of(lowering, node.value("input"))
    target = StoreTarget.of(lowering, node.results[0])
    shape = node.operand("input").shape
    emit_scan(
        lowering,
        f"{node.operator.spec_name} {operand.element.data_type}",
        operand,
        ReductionRows(shape, (node.options["axis"],)),
        fold(operand.element.compute, "+", 0),
        target,
        exclusive=node.options["exclusive"],
        reversed=node.options["reversed"],
    )
