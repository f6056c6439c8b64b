"""Activation functions."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from webnn_py.core.operators import activation
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import counted, scalar
from webnn_py.onnx_models.rule_table.declaration import one_to_one, rule
from webnn_py.onnx_models.rules import unary

one_to_one("Elu", activation.elu, 6, 22, attributes=["alpha"])
one_to_one("HardSigmoid", activation.hard_sigmoid, 6, 22, attributes=["alpha", "beta"])
one_to_one("HardSwish", activation.hard_swish, 14, 22)
one_to_one("LeakyRelu", activation.leaky_relu, 6, 16, attributes=["alpha"])
one_to_one("Relu", activation.relu, 6, 13, 14)
one_to_one("Sigmoid", activation.sigmoid, 6, 13)
one_to_one("Softplus", activation.softplus, 1, 22)
one_to_one("Softsign", activation.softsign, 1, 22)
one_to_one("Tanh", activation.tanh, 6, 13)


@rule("Celu", 12, 28)
def celu(context: ConversionContext, x: MLOperand, *, alpha: float) -> MLOperand:
    """Return max(0, x) + min(0, alpha · (exp(x / alpha) - 1)), which is alpha · elu(x / alpha) for a positive alpha.

    ONNX's body would give a scalar an axis.
    """
    if alpha <= 0:
        refuse("attribute alpha", alpha, "greater than 0")
    factor = context.number(alpha, x)
    return context.mul(context.elu(context.div(x, factor)), factor)


@rule("Clip", 6, 11, 12, 13)
def clip(
    context: ConversionContext,
    x: MLOperand,
    min: Value | None = None,
    max: Value | None = None,
) -> MLOperand:
    """Limit elements to a range; the upper bound wins where it is below the lower one.

    ONNX's body has up to four nodes.
    """
    if not isinstance(min, MLOperand) and not isinstance(max, MLOperand):
        low = None if min is None else scalar("input min", min)
        high = None if max is None else scalar("input max", max)
        if low is None or high is None or low <= high:
            return context.clamp(x, min_value=low, max_value=high)
    if min is not None:
        x = context.max(x, context.operand(min))
    return x if max is None else context.min(x, context.operand(max))


@rule("Gelu", 20)
def gelu(context: ConversionContext, x: MLOperand, *, approximate: Literal["none", "tanh"]) -> MLOperand:
    """Return the Gaussian error linear unit, exact or approximated by tanh. ONNX's body has six nodes."""
    if approximate == "none":
        return context.gelu(x)
    cubic = context.mul(context.mul(context.mul(x, x), x), context.number(0.044715, x))
    inner = context.mul(context.add(x, cubic), context.number(math.sqrt(2 / math.pi), x))
    return context.mul(context.mul(x, context.number(0.5, x)), context.add(context.tanh(inner), context.number(1, x)))


@rule("PRelu", 7, 9, 16)
def prelu(context: ConversionContext, x: MLOperand, slope: MLOperand) -> MLOperand:
    """Apply a slope to negative numbers; unsigned integers are unchanged. ONNX's body has three nodes."""
    return x if x.data_type in unary.UNSIGNED else context.prelu(x, slope)


@rule("Selu", 6, 22)
def selu(context: ConversionContext, x: MLOperand, *, alpha: float, gamma: float) -> MLOperand:
    """Return the scaled exponential linear unit: gamma · elu(x). ONNX's body has seven nodes."""
    return context.mul(context.elu(x, alpha=alpha), context.number(gamma, x))


@rule("Swish", 24)
def swish(context: ConversionContext, x: MLOperand, *, alpha: float) -> MLOperand:
    """Return x · sigmoid(alpha · x). ONNX's body would multiply by an alpha of 1, too."""
    scaled = x if alpha == 1 else context.mul(x, context.number(alpha, x))
    return context.mul(x, context.sigmoid(scaled))


@rule("Shrink", 9)
def shrink(context: ConversionContext, x: MLOperand, *, bias: float, lambd: float) -> MLOperand:
    """Return 0 from -lambd to lambd; beyond, the element moved towards 0 by ``bias``.

    ONNX's body would negate unsigned integers, which WebNN does not.
    """
    if lambd < 0:
        refuse("attribute lambd", lambd, "at least 0")
    if x.data_type in INTEGER_RANGES:  # in the data type, as onnxruntime has it
        if not (math.isfinite(lambd) and math.isfinite(bias)):
            refuse("attributes lambd and bias", f"{lambd}, {bias}", "finite numbers where elements are integers")
        lambd = math.floor(lambd)
    limit, zero = context.number(lambd, x), context.number(0, x)
    is_above, moved = context.greater(x, limit), _moved(context, x, -bias)
    if x.data_type in unary.UNSIGNED:
        return context.where(is_above, moved, zero)
    is_below = context.lesser(x, context.number(-lambd, x))
    low = context.where(is_below, _moved(context, x, bias), zero)
    return context.where(is_above, moved, low)


def _moved(context: ConversionContext, x: MLOperand, by: float) -> MLOperand:
    """Add a number; to integers, a fraction is added in float32, and the sum truncated."""
    if x.data_type not in INTEGER_RANGES:
        return context.add(x, context.number(by, x))
    if by == math.trunc(by):
        shift = context.number(math.trunc(abs(by)), x)
        return context.sub(x, shift) if by < 0 else context.add(x, shift)
    wide = context.cast(x, "float32")
    return context.cast(context.add(wide, context.number(by, wide)), x.data_type)


@rule("ThresholdedRelu", 10, 22)
def thresholded_relu(context: ConversionContext, x: MLOperand, *, alpha: float) -> MLOperand:
    """Return x where it is greater than alpha, otherwise 0.

    It is an activation of recurrent layers, too; ONNX's body would be twice as many nodes of float16.
    """
    return context.where(context.greater(x, context.number(alpha, x)), x, context.number(0, x))


@rule("Softmax", 13)
def softmax(context: ConversionContext, x: MLOperand, *, axis: int) -> MLOperand:
    """Exponentials divided by their sum along an axis. ONNX's body has five nodes."""
    return context.softmax(x, counted(axis, x.rank))


@rule("Hardmax", 13)
def hardmax(context: ConversionContext, x: MLOperand, *, axis: int) -> MLOperand:
    """Return 1 for the first greatest element along an axis, 0 for the others."""
    axis = counted(axis, x.rank)
    place = context.arg_max(x, axis, keep_dimensions=True, output_data_type="int32")
    along = [x.shape[axis] if index == axis else 1 for index in range(x.rank)]
    context.reserve(4 * x.shape[axis])
    places = context.constant(np.arange(x.shape[axis], dtype=np.int32).reshape(along))
    return context.cast(context.equal(places, place), x.data_type)


@rule("LogSoftmax", 13)
def log_softmax(context: ConversionContext, x: MLOperand, *, axis: int) -> MLOperand:
    """Return the logarithm of the softmax, which is x less the logarithm of the sum of exponentials.

    ONNX's body has six nodes.
    """
    return context.sub(x, context.reduce_log_sum_exp(x, axes=[counted(axis, x.rank)], keep_dimensions=True))


def _of_rows(onnx_operator: str, function: Callable[..., MLOperand]) -> Callable[..., MLOperand]:
    """Register a rule that applies another one over all axes from one on, as if the tensor were a matrix."""

    @rule(onnx_operator, 1, 11)
    def convert(context: ConversionContext, x: MLOperand, *, axis: int) -> MLOperand:
        first = counted(axis, x.rank)
        rows = context.reshape(x, [math.prod(x.shape[:first]), math.prod(x.shape[first:])])
        return context.reshape(function(context, rows, axis=1), x.shape)

    return convert


softmax_of_rows = _of_rows("Softmax", softmax)
_of_rows("LogSoftmax", log_softmax)
_of_rows("Hardmax", hardmax)
