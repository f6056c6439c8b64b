"""Element-wise functions of one operand, and what passes its operand on."""

import numpy as np

from webnn_py.descriptors import MLOperandDataType
from webnn_py.onnx_models.conversion_context import ConversionContext, StaticValue
from webnn_py.onnx_models.table import one_to_one, rule
from webnn_py.operators import unary
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

UNSIGNED: tuple[MLOperandDataType, ...] = ("uint8", "uint32", "uint64")

one_to_one("Ceil", unary.ceil, 6, 13, module=__name__)
one_to_one("Cos", unary.cos, 7, 22, module=__name__)
one_to_one("Erf", unary.erf, 9, 13, module=__name__)
one_to_one("Exp", unary.exp, 6, 13, module=__name__)
one_to_one("Floor", unary.floor, 6, 13, module=__name__)
one_to_one("Log", unary.log, 6, 13, module=__name__)
one_to_one("Neg", unary.neg, 6, 13, module=__name__)
one_to_one("Reciprocal", unary.reciprocal, 6, 13, module=__name__)
one_to_one("Round", unary.round_even, 11, 22, module=__name__)
one_to_one("Sign", unary.sign, 9, 13, module=__name__)
one_to_one("Sin", unary.sin, 7, 22, module=__name__)
one_to_one("Sqrt", unary.sqrt, 6, 13, module=__name__)
one_to_one("Tan", unary.tan, 7, 22, module=__name__)


@rule("Abs", 6, 13)
def absolute(context: ConversionContext, x: MLOperand) -> MLOperand:
    """The absolute value, which unsigned integers are themselves."""
    return x if x.data_type in UNSIGNED else context.abs(x)


@rule("Sinh", 9, 22)
def hyperbolic_sine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """(exp(x) - exp(-x)) / 2."""
    difference = context.sub(context.exp(x), context.exp(context.neg(x)))
    return context.mul(difference, context.number(0.5, x))


@rule("Cosh", 9, 22)
def hyperbolic_cosine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """(exp(x) + exp(-x)) / 2."""
    return context.mul(context.add(context.exp(x), context.exp(context.neg(x))), context.number(0.5, x))


@rule("Asinh", 9, 22)
def inverse_hyperbolic_sine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """The sign of x times log(|x| + sqrt(x² + 1))."""
    size = context.abs(x)
    root = context.sqrt(context.add(context.mul(x, x), context.number(1, x)))
    return context.mul(context.sign(x), context.log(context.add(size, root)))


@rule("Acosh", 9, 22)
def inverse_hyperbolic_cosine(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Log(x + sqrt(x² - 1))."""
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
    """The operand itself."""
    return data


@rule("Dropout", 7, 10)
def dropout(context: ConversionContext, data: MLOperand, *, ratio: float) -> MLOperand:
    """The operand itself: nothing is dropped outside training."""
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
    """The operand itself, outside training, and a mask of ones: all is kept."""
    if training_mode is not None and training_mode.any():
        refuse("input training_mode", True, "False")
    if context.wanted[1:] != (True,):
        return [data]
    kept = context.constant(np.ones([], np.bool_))
    return [data, context.expand(kept, data.shape) if data.rank else kept]
