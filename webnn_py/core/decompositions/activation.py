"""Activations and softmax.

Where the specification's formula overflows or cancels on the way, an equal one that does not stands here.
"""

import math
from typing import Final

from webnn_py.core.decompositions.common import GREATEST, decomposition, number, polynomial, widened
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand

ERFC: Final = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807),
    *(-0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223),
)
"""ln(erfc(z) / t) + z² as a polynomial of t = 1 / (1 + z / 2), the highest power first: good to 1.2e-7 (Numerical
Recipes in C, section 6.2)."""


TANH: Final = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
"""(tanh(x) / x - 1) / x² as a polynomial of x², the highest power first: for |x| up to 0.625 (Cephes, tanhf)."""


@decomposition
def clamp(
    builder: Builder, input: MLOperand, *, min_value: MLNumber | None = None, max_value: MLNumber | None = None
) -> MLOperand:
    result = input
    if min_value is not None and not _is_nan(min_value):
        result = builder.max(result, number(builder, min_value, input))
    if max_value is not None and not _is_nan(max_value):
        result = builder.min(result, number(builder, max_value, input))
    return result


def _is_nan(value: MLNumber) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _exp_less_one(builder: Builder, input: MLOperand) -> MLOperand:
    """exp(x) - 1 of a negative x, without the error of the difference: (u - 1) · x / ln(u) with u = exp(x)."""
    one, minus_one = number(builder, 1, input), number(builder, -1, input)
    power = builder.exp(input)
    less_one = builder.sub(power, one)
    exact = builder.div(builder.mul(less_one, input), builder.log(power))
    some = builder.where(builder.equal(less_one, minus_one), minus_one, exact)
    return builder.where(builder.equal(power, one), input, some)


def _log_of_one_more(builder: Builder, input: MLOperand) -> MLOperand:
    """ln(1 + x) of a positive x, without the error of the sum: ln(u) · x / (u - 1) with u = 1 + x."""
    one = number(builder, 1, input)
    more = builder.add(one, input)
    exact = builder.div(builder.mul(builder.log(more), input), builder.sub(more, one))
    return builder.where(builder.equal(more, one), input, exact)


@widened
def elu(builder: Builder, input: MLOperand, *, alpha: float = 1.0) -> MLOperand:
    zero = number(builder, 0, input)
    below = builder.mul(number(builder, alpha, input), _exp_less_one(builder, builder.min(zero, input)))
    return builder.where(builder.greater(input, zero), input, below)


@widened
def gelu(builder: Builder, input: MLOperand) -> MLOperand:
    """Below zero with erfc, since 1 + erf cancels there."""
    zero, half, one, root = (number(builder, value, input) for value in (0, 0.5, 1, math.sqrt(2)))
    above = builder.mul(builder.mul(input, half), builder.add(one, builder.erf(builder.div(input, root))))
    below = builder.mul(*_half_erfc(builder, builder.max(input, number(builder, -32, input))))
    return builder.where(builder.lesser(input, zero), below, above)


def _half_erfc(builder: Builder, input: MLOperand) -> tuple[MLOperand, MLOperand]:
    """Return x and erfc(-x / √2) / 2, where x is below zero and not below -32.

    x² / 2 is cut in two, the first exact: its exponential would make much of the error of a square.
    """
    half, one, fine = (number(builder, value, input) for value in (0.5, 1, 64))
    root = number(builder, -math.sqrt(0.125), input)
    t = builder.div(one, builder.add(one, builder.mul(input, root)))
    power = polynomial(builder, ERFC, t)
    coarse = builder.div(builder.round_even(builder.mul(input, fine)), fine)
    rest = builder.mul(builder.sub(input, coarse), builder.add(input, coarse))
    first = builder.exp(builder.neg(builder.mul(builder.mul(coarse, coarse), half)))
    second = builder.exp(builder.sub(power, builder.mul(rest, half)))
    return builder.mul(input, half), builder.mul(builder.mul(t, first), second)


@widened
def hard_sigmoid(builder: Builder, input: MLOperand, *, alpha: float = 0.2, beta: float = 0.5) -> MLOperand:
    zero, one = number(builder, 0, input), number(builder, 1, input)
    line = builder.add(builder.mul(input, number(builder, alpha, input)), number(builder, beta, input))
    return builder.max(builder.min(line, one), zero)


@widened
def hard_swish(builder: Builder, input: MLOperand) -> MLOperand:
    zero, three, six, lowest = (number(builder, value, input) for value in (0, 3, 6, -3))
    gate = builder.min(six, builder.add(input, three))
    above = builder.mul(input, builder.div(gate, six))
    return builder.where(builder.lesser(input, lowest), zero, above)


@widened
def leaky_relu(builder: Builder, input: MLOperand, *, alpha: float = 0.01) -> MLOperand:
    return builder.prelu(input, number(builder, alpha, input))


@widened
def linear(builder: Builder, input: MLOperand, *, alpha: float = 1.0, beta: float = 0.0) -> MLOperand:
    return builder.add(builder.mul(input, number(builder, alpha, input)), number(builder, beta, input))


@widened
def prelu(builder: Builder, input: MLOperand, slope: MLOperand) -> MLOperand:
    """A slope that is not finite makes NaN above zero, too."""
    zero = number(builder, 0, input)
    return builder.add(builder.max(zero, input), builder.mul(slope, builder.min(zero, input)))


@decomposition
def relu(builder: Builder, input: MLOperand) -> MLOperand:
    return builder.max(number(builder, 0, input), input)


@widened
def sigmoid(builder: Builder, input: MLOperand) -> MLOperand:
    """With exp(-|x|), which does not overflow."""
    zero, one = number(builder, 0, input), number(builder, 1, input)
    power = builder.exp(builder.neg(builder.abs(input)))
    is_negative = builder.lesser(input, zero)
    return builder.div(builder.where(is_negative, power, one), builder.add(one, power))


@widened
def softplus(builder: Builder, input: MLOperand) -> MLOperand:
    """max(0, x) + ln(1 + exp(-|x|)), which is ln(1 + exp(x))."""
    power = builder.exp(builder.neg(builder.abs(input)))
    return builder.add(builder.max(number(builder, 0, input), input), _log_of_one_more(builder, power))


@widened
def softsign(builder: Builder, input: MLOperand) -> MLOperand:
    """An infinity would be divided by itself."""
    finite = builder.clamp(input, min_value=-GREATEST, max_value=GREATEST)
    return builder.div(finite, builder.add(number(builder, 1, input), builder.abs(finite)))


@widened
def tanh(builder: Builder, input: MLOperand) -> MLOperand:
    """Near zero, where 1 - 2 / (exp(2|x|) + 1) cancels, a polynomial."""
    zero, one, two = (number(builder, value, input) for value in (0, 1, 2))
    square = builder.mul(input, input)
    near = builder.add(input, builder.mul(input, builder.mul(square, polynomial(builder, TANH, square))))
    magnitude = builder.abs(input)
    power = builder.exp(builder.mul(two, magnitude))
    positive = builder.sub(one, builder.div(two, builder.add(power, one)))
    far = builder.where(builder.lesser(input, zero), builder.neg(positive), positive)
    return builder.where(builder.lesser(magnitude, number(builder, 0.625, input)), near, far)


@widened
def softmax(builder: Builder, input: MLOperand, axis: int) -> MLOperand:
    greatest = builder.reduce_max(input, axes=[axis], keep_dimensions=True)
    powers = builder.exp(builder.sub(input, greatest))
    return builder.div(powers, builder.reduce_sum(powers, axes=[axis], keep_dimensions=True))
