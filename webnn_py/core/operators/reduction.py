"""Operators that combine the elements along axes: reductions, arg-reductions and the cumulative sum.

Integers are combined in their own data type and wrap around; float16 is combined in float32 and rounded once.
"""

import math
from collections.abc import Sequence

from webnn_py.core.descriptors import MLOperandDataTypeLike, MLOperandDescriptor
from webnn_py.core.operators.declaration import family, operator
from webnn_py.core.operators.limits import (
    ANY,
    COMMON,
    FLOATS,
    MAX_RANK,
    NUMBERS_32_UP,
    DataTypes,
    LimitsRow,
    input_and_output,
    limit,
)
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_axis, output, reduced_shape, refuse, same

INDEX_OUTPUTS: DataTypes = ("int32", "int64")

ARG: LimitsRow = {
    "input": limit(ANY, required=COMMON, rank=(1, MAX_RANK)),
    "output": limit(INDEX_OUTPUTS, required=("int32",)),
}
CUMULATIVE: LimitsRow = input_and_output(NUMBERS_32_UP, required=COMMON, rank=(1, MAX_RANK), keeps_rank=True)
REDUCE_ANY: LimitsRow = input_and_output(ANY, required=COMMON)
REDUCE_FLOATS: LimitsRow = input_and_output(FLOATS)
REDUCE_NUMBERS: LimitsRow = input_and_output(NUMBERS_32_UP, required=COMMON)
REDUCE_PRODUCT: LimitsRow = input_and_output(NUMBERS_32_UP, required=FLOATS)


@family()
def _arg(
    input: MLOperand,
    axis: int,
    *,
    keep_dimensions: bool = False,
    output_data_type: MLOperandDataTypeLike = "int32",
    label: str = "",
) -> MLOperandDescriptor:
    """Search along an axis.

    Args:
        input: the tensor to search.
        axis: the axis along which to search.
        keep_dimensions: whether the axis stays, with size 1.
        output_data_type: "int32" or "int64", or numpy's dtype of that name.

    Returns:
        The indices: the shape of ``input`` without ``axis``, or with size 1 there to keep dimensions.
    """
    assert isinstance(output_data_type, str)  # noqa: S101 - for type checkers: it is converted by now
    # spec: argminmax-op 4
    check_axis(axis, input)
    # spec: argminmax-op 5
    if output_data_type not in INDEX_OUTPUTS:
        refuse("output_data_type", output_data_type, " or ".join(INDEX_OUTPUTS))
    # spec: argminmax-op 7-8
    return output(output_data_type, reduced_shape(input, (axis,), keep_dimensions=keep_dimensions))


arg_min = _arg(
    "argMin",
    ARG,
    "The index of the lowest element along an axis: the first one of equals, and the first NaN if there is one.",
)
arg_max = _arg(
    "argMax",
    ARG,
    "The index of the highest element along an axis: the first one of equals, and the first NaN if there is one.",
)


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
    """
    # spec: cumulativeSum 4
    check_axis(axis, input)
    return same(input)


@family(propagates_nan=True)
def _reduction(
    input: MLOperand, *, axes: Sequence[int] | None = None, keep_dimensions: bool = False, label: str = ""
) -> MLOperandDescriptor:
    """Reduce axes.

    Args:
        input: the tensor to reduce.
        axes: the axes to reduce, each at most once; absent: all of them, empty: each element by itself.
        keep_dimensions: whether reduced axes stay, with size 1.

    Returns:
        The results: the shape of ``input`` without ``axes``, or with size 1 there to keep dimensions.
    """
    # spec: create reduction operation 5-6
    return output(input.data_type, reduced_shape(input, axes, keep_dimensions=keep_dimensions))


reduce_l1 = _reduction("reduceL1", REDUCE_NUMBERS, "Sum the absolute values.", result_range=(0, math.inf))
reduce_l2 = _reduction(
    "reduceL2",
    REDUCE_FLOATS,
    "The square root of the sum of the squares; no square overflows on the way.",
    result_range=(0, math.inf),
)
reduce_log_sum = _reduction("reduceLogSum", REDUCE_FLOATS, "The natural logarithm of the sum.")
reduce_log_sum_exp = _reduction(
    "reduceLogSumExp",
    REDUCE_FLOATS,
    "The natural logarithm of the sum of the exponentials; no exponential overflows on the way.",
)
reduce_max = _reduction("reduceMax", REDUCE_ANY, "The highest element; NaN if one of them is NaN.", selects=True)
reduce_mean = _reduction("reduceMean", REDUCE_FLOATS, "The arithmetic mean.", averages=True)
reduce_min = _reduction("reduceMin", REDUCE_ANY, "The lowest element; NaN if one of them is NaN.", selects=True)
reduce_product = _reduction("reduceProduct", REDUCE_PRODUCT, "Multiply the elements.")
reduce_sum = _reduction("reduceSum", REDUCE_NUMBERS, "Sum the elements.")
reduce_sum_square = _reduction(
    "reduceSumSquare", REDUCE_NUMBERS, "Sum the squares of the elements.", result_range=(0, math.inf)
)
