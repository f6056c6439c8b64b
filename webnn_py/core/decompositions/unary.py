"""Element-wise functions of one operand."""

from webnn_py.core.decompositions.common import decomposition, number, widened
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand


@decomposition
def neg(builder: Builder, input: MLOperand) -> MLOperand:
    """Less than zero would be 0 for 0."""
    return builder.mul(input, number(builder, -1, input))


@decomposition
def ceil(builder: Builder, input: MLOperand) -> MLOperand:
    return builder.neg(builder.floor(builder.neg(input)))


@decomposition
def identity(builder: Builder, input: MLOperand) -> MLOperand:
    return builder.reshape(input, input.shape)


@decomposition
def reciprocal(builder: Builder, input: MLOperand) -> MLOperand:
    return builder.div(number(builder, 1, input), input)


@decomposition
def sign(builder: Builder, input: MLOperand) -> MLOperand:
    zero, one, minus_one = (number(builder, value, input) for value in (0, 1, -1))
    negative_or_zero = builder.where(builder.lesser(input, zero), minus_one, zero)
    return builder.where(builder.greater(input, zero), one, negative_or_zero)


@widened
def tan(builder: Builder, input: MLOperand) -> MLOperand:
    return builder.div(builder.sin(input), builder.cos(input))
