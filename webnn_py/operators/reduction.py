"""Operators that combine the elements along axes: reductions, arg-reductions and the cumulative sum.

Integers are combined in their own data type and wrap around; float16 is combined in float32 and rounded once.
"""

import math
from collections.abc import Sequence

from webnn_py.descriptors import MLOperandDataTypeLike, MLOperandDescriptor
from webnn_py.operators.declaration import operator
from webnn_py.operators.limits import (
    ANY,
    COMMON,
    FLOATS,
    MAX_RANK,
    NUMBERS_32_UP,
    DataTypes,
    LimitsRow,
    limit,
)
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import check_axis, output, reduced_shape, refuse, same

INDEX_OUTPUTS: DataTypes = ("int32", "int64")

ARG: LimitsRow = {
    "input": limit(ANY, required=COMMON, rank=(1, MAX_RANK)),
    "output": limit(INDEX_OUTPUTS, required=("int32",)),
}
CUMULATIVE: LimitsRow = {
    "input": limit(NUMBERS_32_UP, required=COMMON, rank=(1, MAX_RANK)),
    "output": limit(NUMBERS_32_UP, required=COMMON, rank=(1, MAX_RANK), type_of="input", rank_of="input"),
}
REDUCE_ANY: LimitsRow = {
    "input": limit(ANY, required=COMMON),
    "output": limit(ANY, required=COMMON, type_of="input"),
}
REDUCE_FLOATS: LimitsRow = {
    "input": limit(FLOATS),
    "output": limit(FLOATS, type_of="input"),
}
REDUCE_NUMBERS: LimitsRow = {
    "input": limit(NUMBERS_32_UP, required=COMMON),
    "output": limit(NUMBERS_32_UP, required=COMMON, type_of="input"),
}
REDUCE_PRODUCT: LimitsRow = {
    "input": limit(NUMBERS_32_UP, required=FLOATS),
    "output": limit(NUMBERS_32_UP, required=FLOATS, type_of="input"),
}


def _arg_reduced(
    input: MLOperand, axis: int, data_type: MLOperandDataTypeLike, *, keep_dimensions: bool
) -> MLOperandDescriptor:
    assert isinstance(data_type, str)  # noqa: S101 - for type checkers: it is converted by now
    check_axis(axis, input)
    if data_type not in INDEX_OUTPUTS:
        refuse("output_data_type", data_type, " or ".join(INDEX_OUTPUTS))
    return output(data_type, reduced_shape(input, (axis,), keep_dimensions=keep_dimensions))


@operator("argMin", ARG)
def arg_min(
    input: MLOperand,
    axis: int,
    *,
    keep_dimensions: bool = False,
    output_data_type: MLOperandDataTypeLike = "int32",
    label: str = "",
) -> MLOperandDescriptor:
    """The index of the lowest element along an axis: the first one of equals, and the first NaN if there is one.

    Args:
        input: the tensor to search.
        axis: the axis along which to search.
        keep_dimensions: whether the axis stays, with size 1.
        output_data_type: "int32" or "int64", or numpy's dtype of that name.
        label: the operator's name in messages.

    Returns:
        The indices: the shape of ``input`` without ``axis``, or with size 1 there to keep dimensions.
    """
    return _arg_reduced(input, axis, output_data_type, keep_dimensions=keep_dimensions)


@operator("argMax", ARG)
def arg_max(
    input: MLOperand,
    axis: int,
    *,
    keep_dimensions: bool = False,
    output_data_type: MLOperandDataTypeLike = "int32",
    label: str = "",
) -> MLOperandDescriptor:
    """The index of the highest element along an axis: the first one of equals, and the first NaN if there is one.

    Args:
        input: the tensor to search.
        axis: the axis along which to search.
        keep_dimensions: whether the axis stays, with size 1.
        output_data_type: "int32" or "int64", or numpy's dtype of that name.
        label: the operator's name in messages.

    Returns:
        The indices: the shape of ``input`` without ``axis``, or with size 1 there to keep dimensions.
    """
    return _arg_reduced(input, axis, output_data_type, keep_dimensions=keep_dimensions)


@operator("cumulativeSum", CUMULATIVE)
def cumulative_sum(
    input: MLOperand, axis: int, *, exclusive: bool = False, reversed: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """Replace each element by the sum of the elements up to it along an axis.

    Args:
        input: the tensor to sum.
        axis: the axis along which to sum.
        exclusive: whether the element itself is left out: [1, 2, 3] gives [0, 1, 3] instead of [1, 3, 6].
        reversed: whether to sum from the last element down to it: [1, 2, 3] gives [6, 5, 3].
        label: the operator's name in messages.
    """
    check_axis(axis, input)
    return same(input)


@operator("reduceL1", REDUCE_NUMBERS, result_range=(0, math.inf), propagates_nan=True)
def reduce_l1(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """Sum the absolute values.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceL2", REDUCE_FLOATS, result_range=(0, math.inf), propagates_nan=True)
def reduce_l2(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """The square root of the sum of the squares; no square overflows on the way.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceLogSum", REDUCE_FLOATS, propagates_nan=True)
def reduce_log_sum(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """The natural logarithm of the sum.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceLogSumExp", REDUCE_FLOATS, propagates_nan=True)
def reduce_log_sum_exp(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """The natural logarithm of the sum of the exponentials; no exponential overflows on the way.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceMax", REDUCE_ANY, selects=True, propagates_nan=True)
def reduce_max(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """The highest element; NaN if one of them is NaN.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceMean", REDUCE_FLOATS, averages=True, propagates_nan=True)
def reduce_mean(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """The arithmetic mean.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceMin", REDUCE_ANY, selects=True, propagates_nan=True)
def reduce_min(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """The lowest element; NaN if one of them is NaN.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceProduct", REDUCE_PRODUCT, propagates_nan=True)
def reduce_product(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """Multiply the elements.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceSum", REDUCE_NUMBERS, propagates_nan=True)
def reduce_sum(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """Sum the elements.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


@operator("reduceSumSquare", REDUCE_NUMBERS, result_range=(0, math.inf), propagates_nan=True)
def reduce_sum_square(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """Sum the squares of the elements.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.
        label: the operator's name in messages.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))
