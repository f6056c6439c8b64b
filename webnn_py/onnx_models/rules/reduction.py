"""Reductions, arg-reductions and the cumulative sum."""

import math
from typing import Any

from onnx import TensorProto

from webnn_py.core.operators import reduction
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.axes import counted, counted_all
from webnn_py.onnx_models.rule_table.declaration import Integer, Integers, rule
from webnn_py.onnx_models.rules import unary

LEAVES_SINGLE_ELEMENTS = ("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""Reductions that leave an element as it is when they reduce nothing else with it."""
OF_FLOATS = (reduction.reduce_l2, reduction.reduce_mean)
"""Reductions that WebNN has for floats only; those of integers are truncated to integers."""


def _reduction(name: str, operator: Operator[..., Any], *versions: int) -> None:
    """Register a reduction. ONNX's bodies, which some have, would be two or three nodes where WebNN has an operator."""

    @rule(name, *versions)
    def convert(
        context: ConversionContext,
        data: MLOperand,
        axes: Integers | None = None,
        *,
        keepdims: bool,
        noop_with_empty_axes: bool = False,
    ) -> MLOperand:
        if not axes and noop_with_empty_axes:
            return _alone(context, name, data)
        chosen = counted_all(axes, data.rank) if axes else tuple(range(data.rank))
        if operator in OF_FLOATS and data.data_type in INTEGER_RANGES:
            return _integers_reduced(context, operator, data, axes=chosen, keep_dimensions=keepdims)
        return context.apply(operator, data, axes=chosen, keep_dimensions=keepdims)


def _alone(context: ConversionContext, name: str, data: MLOperand) -> MLOperand:
    """Reduce each element by itself."""
    if name in LEAVES_SINGLE_ELEMENTS:
        return data
    if name == "ReduceSumSquare":
        return context.mul(data, data)
    return context.log(data) if name == "ReduceLogSum" else unary.absolute(context, data)


def _integers_reduced(
    context: ConversionContext, operator: Operator[..., Any], data: MLOperand, **options: Any
) -> MLOperand:
    """Return the mean, exactly, or the root of the sum of squares, cut off to an integer."""
    if operator is reduction.reduce_mean:
        total = context.reduce_sum(data, **options)
        return context.div(total, context.number(math.prod(data.shape[axis] for axis in options["axes"]), data))
    squares = context.reduce_sum_square(data, **options)
    return context.cast(context.sqrt(context.cast(squares, "float32")), data.data_type)


_reduction("ReduceL1", reduction.reduce_l1, 1, 11, 13, 18)
_reduction("ReduceL2", reduction.reduce_l2, 1, 11, 13, 18)
_reduction("ReduceLogSum", reduction.reduce_log_sum, 1, 11, 13, 18, 28)
_reduction("ReduceLogSumExp", reduction.reduce_log_sum_exp, 1, 11, 13, 18, 28)
_reduction("ReduceMax", reduction.reduce_max, 1, 11, 12, 13, 18, 20)
_reduction("ReduceMean", reduction.reduce_mean, 1, 11, 13, 18)
_reduction("ReduceMin", reduction.reduce_min, 1, 11, 12, 13, 18, 20)
_reduction("ReduceProd", reduction.reduce_product, 1, 11, 13, 18)
_reduction("ReduceSum", reduction.reduce_sum, 1, 11, 13)
_reduction("ReduceSumSquare", reduction.reduce_sum_square, 1, 11, 13, 18)


def _arg_reduction(onnx_operator: str, operator: Operator[..., Any]) -> None:
    """Register a rule for the index of an extreme, the first or the last of equals."""

    @rule(onnx_operator, 1, 11, 12, 13)
    def convert(
        context: ConversionContext, data: MLOperand, *, axis: int, keepdims: bool, select_last_index: bool = False
    ) -> MLOperand:
        axis = counted(axis, data.rank)
        if select_last_index:  # the first of the reversed elements, counted from the end
            data = context.reverse(data, axes=[axis])
        data_type = context.data_type("the data type of the output", TensorProto.INT64)
        index = context.apply(operator, data, axis, keep_dimensions=keepdims, output_data_type=data_type)
        return context.sub(context.number(data.shape[axis] - 1, index), index) if select_last_index else index


_arg_reduction("ArgMax", reduction.arg_max)
_arg_reduction("ArgMin", reduction.arg_min)


@rule("CumProd", 26)
def cumulative_product(
    context: ConversionContext, x: MLOperand, axis: Integer, *, exclusive: bool, reverse: bool
) -> MLOperand:
    """Compute cumulative products, over twice as many elements at each step."""
    along = counted(axis, x.rank)
    size = x.shape[along]

    def shifted(value: MLOperand, by: int) -> MLOperand:
        """Shift elements forward, or with ``reverse`` backward, and fill with ones."""
        ones, none = [by if other == along else 0 for other in range(x.rank)], [0] * x.rank
        padded = context.pad(value, none if reverse else ones, ones if reverse else none, value=1)
        return context.slice(padded, ones if reverse else none, x.shape)

    product = shifted(x, 1) if exclusive else x
    reached = 1
    while reached < size:
        product = context.mul(product, shifted(product, reached))
        reached *= 2
    return product


@rule("CumSum", 11, 14)
def cumulative_sum(
    context: ConversionContext, x: MLOperand, axis: Integer, *, exclusive: bool, reverse: bool
) -> MLOperand:
    """Compute cumulative sums along an axis."""
    return context.cumulative_sum(x, counted(axis, x.rank), exclusive=exclusive, reversed=reverse)
