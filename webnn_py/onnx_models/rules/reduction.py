"""Reductions, arg-reductions and the cumulative sum."""

import math
from collections.abc import Sequence
from typing import Any

from onnx import TensorProto

from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue
from webnn_py.onnx_models.rule_helpers.axes import counted, counted_all, integer, integers
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules import unary
from webnn_py.operators import reduction
from webnn_py.operators.casting import INTEGER_RANGES
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand

LEAVES_SINGLE_ELEMENTS = ("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""Reductions that leave an element as it is when they reduce nothing else with it."""
OF_FLOATS = (reduction.reduce_l2, reduction.reduce_mean)
"""Reductions that WebNN has of floats only, and that are integers of integers when they are cut off."""


def _reduction(name: str, operator: Operator[..., Any], by_attribute: Sequence[int], by_input: Sequence[int]) -> None:
    """Register a reduction: the axes came as an attribute at first, and as an input later."""

    @rule(name, *by_attribute)
    def reduce_by_attribute(
        context: ConversionContext, data: MLOperand, *, axes: Sequence[int] | None = None, keepdims: int
    ) -> MLOperand:
        return _reduced(context, operator, data, axes or (), keepdims)

    @rule(name, *by_input)
    def reduce_by_input(
        context: ConversionContext,
        data: MLOperand,
        axes: StaticValue | None = None,
        *,
        keepdims: int,
        noop_with_empty_axes: int,
    ) -> MLOperand:
        given = () if axes is None else integers("input axes", axes)
        if not given and noop_with_empty_axes:
            return _alone(context, name, data)
        return _reduced(context, operator, data, given, keepdims)


def _alone(context: ConversionContext, name: str, data: MLOperand) -> MLOperand:
    """Each element reduced by itself."""
    if name in LEAVES_SINGLE_ELEMENTS:
        return data
    if name == "ReduceSumSquare":
        return context.mul(data, data)
    return context.log(data) if name == "ReduceLogSum" else unary.absolute(context, data)


def _reduced(
    context: ConversionContext, operator: Operator[..., Any], data: MLOperand, axes: Sequence[int], keepdims: int
) -> MLOperand:
    chosen = counted_all(axes, data.rank) if axes else tuple(range(data.rank))
    if operator in OF_FLOATS and data.data_type in INTEGER_RANGES:
        return _integers_reduced(context, operator, data, chosen, keepdims)
    return context.apply(operator, data, axes=chosen, keep_dimensions=bool(keepdims))


def _integers_reduced(
    context: ConversionContext, operator: Operator[..., Any], data: MLOperand, axes: Sequence[int], keepdims: int
) -> MLOperand:
    """The mean, exactly, or the root of the sum of squares, cut off to an integer."""
    if operator is reduction.reduce_mean:
        total = context.reduce_sum(data, axes=axes, keep_dimensions=bool(keepdims))
        return context.div(total, context.number(math.prod(data.shape[axis] for axis in axes), data))
    squares = context.reduce_sum_square(data, axes=axes, keep_dimensions=bool(keepdims))
    return context.cast(context.sqrt(context.cast(squares, "float32")), data.data_type)


_reduction("ReduceL1", reduction.reduce_l1, [1, 11, 13], [18])
_reduction("ReduceL2", reduction.reduce_l2, [1, 11, 13], [18])
_reduction("ReduceLogSum", reduction.reduce_log_sum, [1, 11, 13], [18, 28])
_reduction("ReduceLogSumExp", reduction.reduce_log_sum_exp, [1, 11, 13], [18, 28])
_reduction("ReduceMax", reduction.reduce_max, [1, 11, 12, 13], [18, 20])
_reduction("ReduceMean", reduction.reduce_mean, [1, 11, 13], [18])
_reduction("ReduceMin", reduction.reduce_min, [1, 11, 12, 13], [18, 20])
_reduction("ReduceProd", reduction.reduce_product, [1, 11, 13], [18])
_reduction("ReduceSum", reduction.reduce_sum, [1, 11], [13])
_reduction("ReduceSumSquare", reduction.reduce_sum_square, [1, 11, 13], [18])


@rule("ArgMax", 1, 11, 12, 13)
def arg_max(
    context: ConversionContext, data: MLOperand, *, axis: int, keepdims: int, select_last_index: int = 0
) -> MLOperand:
    """The index of the greatest element, the first or the last of equals."""
    return _arg_reduced(context, reduction.arg_max, data, axis, keepdims, select_last_index)


@rule("ArgMin", 1, 11, 12, 13)
def arg_min(
    context: ConversionContext, data: MLOperand, *, axis: int, keepdims: int, select_last_index: int = 0
) -> MLOperand:
    """The index of the least element, the first or the last of equals."""
    return _arg_reduced(context, reduction.arg_min, data, axis, keepdims, select_last_index)


def _arg_reduced(
    context: ConversionContext, operator: Operator[..., Any], data: MLOperand, axis: int, keepdims: int, last: int
) -> MLOperand:
    axis = counted(axis, data.rank)
    if last:  # the first of the reversed elements, counted from the end
        data = context.reverse(data, axes=[axis])
    data_type = context.data_type("the data type of the output", TensorProto.INT64)
    index = context.apply(operator, data, axis, keep_dimensions=bool(keepdims), output_data_type=data_type)
    return context.sub(context.number(data.shape[axis] - 1, index), index) if last else index


@rule("CumProd", 26)
def cumulative_product(
    context: ConversionContext, x: MLOperand, axis: StaticValue, *, exclusive: int, reverse: int
) -> MLOperand:
    """Products of the elements up to each: of twice as many at each step."""
    along = counted(integer("input axis", axis), x.rank)
    size = x.shape[along]

    def shifted(value: MLOperand, by: int) -> MLOperand:
        """The elements before, or with ``reverse`` after; ones where there are none."""
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
    context: ConversionContext, x: MLOperand, axis: StaticValue, *, exclusive: int, reverse: int
) -> MLOperand:
    """Sums of the elements up to each, along an axis."""
    counted_axis = counted(integer("input axis", axis), x.rank)
    return context.cumulative_sum(x, counted_axis, exclusive=bool(exclusive), reversed=bool(reverse))
