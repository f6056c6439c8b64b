"""Element-wise functions of one operand, and operators that pass it on."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from webnn_py.core.decompositions.common import polynomial
from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.operators import unary
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue
from webnn_py.onnx_models.rule_table.declaration import one_to_one, rule

UNSIGNED: tuple[MLOperandDataType, ...] = ("uint8", "uint32", "uint64")

ARCTANGENT: Final = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
ARCSINE: Final = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)

one_to_one("Ceil", unary.ceil, 6, 13)
one_to_one("Cos", unary.cos, 7, 22)
one_to_one("Erf", unary.erf, 9, 13)
one_to_one("Exp", unary.exp, 6, 13)
one_to_one("Floor", unary.floor, 6, 13)
one_to_one("Log", unary.log, 6, 13)
one_to_one("Neg", unary.neg, 6, 13)
one_to_one("Reciprocal", unary.reciprocal, 6, 13)
one_to_one("Round", unary.round_even, 11, 22)
one_to_one("Sin", unary.sin, 7, 22)
one_to_one("Sqrt", unary.sqrt, 6, 13)
one_to_one("Tan", unary.tan, 7, 22)


@rule("Abs", 6, 13)
def absolute(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the absolute value; unsigned integers are unchanged."""
    return x if x.data_type in UNSIGNED else context.abs(x)


@rule("Sign", 9, 13)
def sign(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return 1, 0 or -1."""
    return context.min(x, context.number(1, x)) if x.data_type in UNSIGNED else context.sign(x)


@rule("Sinh", 9, 22)
def hyperbolic_sine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return (exp(x) - exp(-x)) / 2."""
    difference = context.sub(context.exp(x), context.exp(context.neg(x)))
    return context.mul(difference, context.number(0.5, x))


@rule("Cosh", 9, 22)
def hyperbolic_cosine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return (exp(x) + exp(-x)) / 2."""
    return context.mul(context.add(context.exp(x), context.exp(context.neg(x))), context.number(0.5, x))


@rule("Atan", 7, 22)
def inverse_tangent(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Compute the arctangent by a polynomial (Cephes), reduced at the tangents of pi / 8 and 3 · pi / 8."""
    one, size = context.number(1, x), context.abs(x)
    is_large = context.greater(size, context.number(math.tan(3 * math.pi / 8), x))
    is_middle = context.greater(size, context.number(math.tan(math.pi / 8), x))
    middle = context.div(context.sub(size, one), context.add(size, one))
    near = context.where(is_large, context.neg(context.reciprocal(size)), context.where(is_middle, middle, size))
    turn = context.where(is_middle, context.number(math.pi / 4, x), context.number(0, x))
    turn = context.where(is_large, context.number(math.pi / 2, x), turn)
    return context.mul(context.sign(x), context.add(turn, _odd_polynomial(context, near, ARCTANGENT)))


@rule("Asin", 7, 22)
def inverse_sine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Compute the arcsine by a polynomial (Cephes), beyond 0.5 of the root of (1 - x) / 2."""
    half, size = context.number(0.5, x), context.abs(x)
    is_large = context.greater(size, half)
    root = context.sqrt(context.mul(context.sub(context.number(1, x), size), half))
    angle = _odd_polynomial(context, context.where(is_large, root, size), ARCSINE)
    rest = context.sub(context.number(math.pi / 2, x), context.add(angle, angle))
    return context.mul(context.sign(x), context.where(is_large, rest, angle))


@rule("Acos", 7, 22)
def inverse_cosine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return pi / 2 minus the arcsine."""
    return context.sub(context.number(math.pi / 2, x), inverse_sine(context, x))


def _odd_polynomial(context: ConversionContext, x: MLOperand, coefficients: Sequence[float]) -> MLOperand:
    """Return x + x³ · a polynomial of x², its highest coefficient first."""
    square = context.mul(x, x)
    value = polynomial(context, coefficients, square)
    return context.add(x, context.mul(context.mul(value, square), x))


@rule("Asinh", 9, 22)
def inverse_hyperbolic_sine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the sign of x times log(|x| + sqrt(x² + 1))."""
    size = context.abs(x)
    root = context.sqrt(context.add(context.mul(x, x), context.number(1, x)))
    return context.mul(context.sign(x), context.log(context.add(size, root)))


@rule("Acosh", 9, 22)
def inverse_hyperbolic_cosine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return log(x + sqrt(x² - 1))."""
    root = context.sqrt(context.sub(context.mul(x, x), context.number(1, x)))
    return context.log(context.add(x, root))


@rule("Atanh", 9, 22)
def inverse_hyperbolic_tangent(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Half the logarithm of (1 + x) / (1 - x)."""
    one = context.number(1, x)
    ratio = context.div(context.add(one, x), context.sub(one, x))
    return context.mul(context.log(ratio), context.number(0.5, x))


@rule("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def identity(context: ConversionContext, data: MLOperand) -> MLOperand:
    """Return the operand itself."""
    return data


@rule("Dropout", 7, 10)
def dropout(context: ConversionContext, data: MLOperand, *, ratio: float) -> MLOperand:
    """Return the operand itself: nothing is dropped outside training."""
    return data


@rule("Dropout", 12, 13, 22)
def dropout_unless_training(
    context: ConversionContext,
    data: MLOperand,
    ratio: MLOperand | None = None,
    training_mode: StaticValue | None = None,
    *,
    seed: int | None = None,
) -> list[MLOperand]:
    """Return the operand itself, outside training, and a mask of ones: all is kept."""
    if training_mode is not None and training_mode.any():
        refuse("input training_mode", True, "False")
    if context.wanted[1:] != (True,):
        return [data]
    kept = context.constant(np.ones([], np.bool_))
    return [data, context.expand(kept, data.shape) if data.rank else kept]
