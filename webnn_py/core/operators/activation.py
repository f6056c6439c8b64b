"""Activation functions: clamp, softmax, and element-wise functions (sections "clamp" to "tanh").

Options that are numbers are cast to the operand's data type before use. Floats are computed in float32 and rounded
once. NaN stays NaN; an infinite element gives the function's limit.
"""

import math

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.declaration import family, operator
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.limits import (
    ANY,
    EVERY_RANK,
    FLOATS,
    MAX_RANK,
    SIGNED,
    LimitsRow,
    input_and_output,
    of_ranks,
)
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import broadcast, check_axis, output, refuse, same

CLAMP: LimitsRow = input_and_output(ANY, required=FLOATS, keeps_rank=True)
OF_FLOATS: LimitsRow = input_and_output(FLOATS, keeps_rank=True)
PRELU = of_ranks(SIGNED, required=FLOATS, input=EVERY_RANK, slope=EVERY_RANK, output=EVERY_RANK)
RELU: LimitsRow = input_and_output(SIGNED, required=FLOATS, keeps_rank=True)
SOFTMAX: LimitsRow = input_and_output(FLOATS, rank=(1, MAX_RANK), keeps_rank=True)


def clamp_bounds(
    data_type: MLOperandDataType, min_value: float | None, max_value: float | None
) -> tuple[int | float, int | float]:
    """Return the bounds of ``clamp`` as numbers of the data type: a bound that is absent, or NaN, bounds nothing."""
    # spec: clamp 3-6
    lowest = -math.inf if min_value is None or min_value != min_value else min_value  # noqa: PLR0124 - NaN
    highest = math.inf if max_value is None or max_value != max_value else max_value  # noqa: PLR0124 - NaN
    return cast_number(lowest, data_type), cast_number(highest, data_type)


@family(elementwise=True, propagates_nan=True)
def _activation(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    return same(input)


@operator("clamp", CLAMP, elementwise=True, propagates_nan=True)
def clamp(
    input: MLOperand,
    *,
    min_value: MLNumber | None = None,
    max_value: MLNumber | None = None,
    label: str = "",
) -> MLOperandDescriptor:
    """Limit elements to the range from ``min_value`` to ``max_value``.

    Args:
        input: the elements to bound.
        min_value: the lower bound; none when absent or NaN.
        max_value: the upper bound; none when absent or NaN. At least ``min_value``, both cast to the data type.
    """
    lowest, highest = clamp_bounds(input.data_type, min_value, max_value)
    # spec: clamp 7
    if lowest > highest:
        refuse(f"min_value, as {input.data_type},", lowest, f"at most max_value, {highest}")
    return same(input)


@operator("elu", OF_FLOATS, elementwise=True, propagates_nan=True)
def elu(input: MLOperand, *, alpha: float = 1.0, label: str = "") -> MLOperandDescriptor:
    """The exponential linear unit: max(0, x) + alpha · (exp(min(0, x)) - 1).

    Args:
        input: x, the elements to compute with.
        alpha: how far below 0 very negative elements end.
    """
    return same(input)


@operator("hardSigmoid", OF_FLOATS, elementwise=True, result_range=(0, 1), propagates_nan=True)
def hard_sigmoid(input: MLOperand, *, alpha: float = 0.2, beta: float = 0.5, label: str = "") -> MLOperandDescriptor:
    """A sigmoid made of three straight lines: max(0, min(1, alpha · x + beta)).

    Args:
        input: x, the elements to compute with.
        alpha: the slope of the middle line.
        beta: the value at 0, before it is bounded.
    """
    return same(input)


@operator("leakyRelu", OF_FLOATS, elementwise=True, propagates_nan=True)
def leaky_relu(input: MLOperand, *, alpha: float = 0.01, label: str = "") -> MLOperandDescriptor:
    """A rectifier that lets a little through: max(0, x) + alpha · min(0, x).

    Args:
        input: x, the elements to compute with.
        alpha: the slope for negative elements.
    """
    return same(input)


@operator("linear", OF_FLOATS, elementwise=True, propagates_nan=True)
def linear(input: MLOperand, *, alpha: float = 1.0, beta: float = 0.0, label: str = "") -> MLOperandDescriptor:
    """A straight line: alpha · x + beta.

    Args:
        input: x, the elements to compute with.
        alpha: the slope.
        beta: the value at 0.
    """
    return same(input)


@operator("prelu", PRELU, elementwise=True, propagates_nan=True)
def prelu(input: MLOperand, slope: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """A rectifier with a slope for each element: max(0, x) + slope · min(0, x). Integers wrap around.

    Args:
        input: x, the elements to compute with.
        slope: the slopes for negative elements; the two shapes broadcast to each other.
    """
    # spec: prelu 4-5
    return output(input.data_type, broadcast(input.shape, slope.shape, ("input", "slope")))


@operator("softmax", SOFTMAX, result_range=(0, 1), propagates_nan=True)
def softmax(input: MLOperand, axis: int, *, label: str = "") -> MLOperandDescriptor:
    """Exponentials divided by their sum along an axis, computed so that none overflows.

    Args:
        input: the tensor to normalize.
        axis: the dimension along which the outputs add up to 1.
    """
    # spec: softmax 4
    check_axis(axis, input)
    return same(input)


gelu = _activation(
    "gelu",
    OF_FLOATS,
    "The Gaussian error linear unit: 0.5 · x · (1 + erf(x / √2)), without approximation by tanh.",
    no_larger=True,
)
hard_swish = _activation(
    "hardSwish", OF_FLOATS, "The element times a hard sigmoid: x · max(0, min(6, x + 3)) / 6.", no_larger=True
)
relu = _activation("relu", RELU, "The rectifier: max(0, x).", no_larger=True, result_range=(0, math.inf))
sigmoid = _activation("sigmoid", OF_FLOATS, "The logistic function: 1 / (1 + exp(-x)).", result_range=(0, 1))
softplus = _activation(
    "softplus",
    OF_FLOATS,
    "A smooth rectifier: ln(1 + exp(x)), computed so that it does not overflow.",
    result_range=(0, math.inf),
)
softsign = _activation(
    "softsign", OF_FLOATS, "A slowly saturating sign: x / (1 + |x|).", no_larger=True, result_range=(-1, 1)
)
tanh = _activation("tanh", OF_FLOATS, "The hyperbolic tangent.", no_larger=True, result_range=(-1, 1))
