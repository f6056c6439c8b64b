"""Quantization, and the blocks of its scales."""

import math
from collections.abc import Sequence

from webnn_py.core.decompositions.common import number, widened
from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand


@widened
def dequantize_linear(builder: Builder, input: MLOperand, scale: MLOperand, zero_point: MLOperand) -> MLOperand:
    """Differences of 32-bit integers are exact in int64, others in float32."""
    exact: MLOperandDataType = "int64" if input.data_type.endswith("32") else "float32"
    zero = blockwise_expand(builder, builder.cast(zero_point, exact), input.shape)
    shifted = builder.sub(builder.cast(input, exact), zero)
    return builder.mul(builder.cast(shifted, "float32"), blockwise_expand(builder, scale, input.shape))


@widened
def quantize_linear(builder: Builder, input: MLOperand, scale: MLOperand, zero_point: MLOperand) -> MLOperand:
    """Sums with 32-bit integers are exact in int64, others in float32."""
    lowest, highest = INTEGER_RANGES[zero_point.data_type]
    steps = builder.round_even(builder.div(input, blockwise_expand(builder, scale, input.shape)))
    if not zero_point.data_type.endswith("32"):
        zero = blockwise_expand(builder, builder.cast(zero_point, "float32"), input.shape)
        in_range = builder.clamp(builder.add(steps, zero), min_value=lowest, max_value=highest)
        return builder.cast(in_range, zero_point.data_type)
    finite = builder.clamp(steps, min_value=-(2.0**40), max_value=2.0**40)  # beyond any sum in the range
    zero = blockwise_expand(builder, builder.cast(zero_point, "int64"), input.shape)
    total = builder.add(builder.cast(finite, "int64"), zero)
    in_range = builder.clamp(total, min_value=lowest, max_value=highest)
    number_or_zero = builder.where(builder.is_nan(steps), number(builder, 0, in_range), in_range)
    return builder.cast(number_or_zero, zero_point.data_type)


def blockwise_expand(builder: Builder, input: MLOperand, shape: Sequence[int]) -> MLOperand:
    """Repeat each element, so that it becomes a block, until the input has ``shape``."""
    result = input
    for axis, size in enumerate(shape):
        before, repeated, after = result.shape[:axis], result.shape[axis], result.shape[axis + 1 :]
        if size != repeated:
            outer, inner = math.prod(before), math.prod(after)
            elements = builder.reshape(result, [outer, repeated, 1, inner])
            blocks = builder.expand(elements, [outer, repeated, size // repeated, inner])
            result = builder.reshape(blocks, [*before, size, *after])
    return result
