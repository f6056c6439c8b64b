"""Element-wise arithmetic."""

from functools import reduce

import numpy as np

from webnn_py.onnx_models.conversion_context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.table import one_to_one, rule
from webnn_py.operators import arithmetic
from webnn_py.operators.casting import INTEGER_RANGES
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

one_to_one("Add", arithmetic.add, 7, 13, 14, module=__name__)
one_to_one("Sub", arithmetic.sub, 7, 13, 14, module=__name__)
one_to_one("Mul", arithmetic.mul, 7, 13, 14, module=__name__)
one_to_one("Div", arithmetic.div, 7, 13, 14, module=__name__)


@rule("Max", 6, 8, 12, 13)
def maximum(context: ConversionContext, *data: MLOperand) -> MLOperand:
    """The greatest of any number of tensors."""
    return reduce(context.max, data)


@rule("Min", 6, 8, 12, 13)
def minimum(context: ConversionContext, *data: MLOperand) -> MLOperand:
    """The least of any number of tensors."""
    return reduce(context.min, data)


@rule("Sum", 6, 8, 13)
def total(context: ConversionContext, *data: MLOperand) -> MLOperand:
    """The sum of any number of tensors."""
    return reduce(context.add, data)


@rule("Mean", 6, 8, 13)
def mean(context: ConversionContext, *data: MLOperand) -> MLOperand:
    """The mean of any number of tensors."""
    added = reduce(context.add, data)
    return context.div(added, context.number(len(data), added))


@rule("Pow", 7, 12, 13, 15)
def power(context: ConversionContext, x: MLOperand, y: Value) -> MLOperand:
    """A base of one data type to the power of an exponent of another: the result has the base's."""
    if isinstance(y, np.ndarray):
        return context.pow(x, context.constant(_exponent(y, x)))
    if y.data_type != x.data_type:
        if x.data_type not in ("float32", "float16"):
            refuse("the data type of input Y", y.data_type, f"{x.data_type}, that of input X, or known while building")
        y = context.cast(y, x.data_type)
    return context.pow(x, y)


def _exponent(exponent: StaticValue, base: MLOperand) -> StaticValue:
    """A static exponent in the base's data type; integers have no other powers that are integers."""
    if exponent.dtype.kind not in "iuf":
        refuse("the data type of input Y", exponent.dtype.name, "a type of integers or floats")
    if base.data_type in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[base.data_type]
        if np.any(exponent != np.trunc(exponent)) or np.any(exponent < lowest) or np.any(exponent > highest):
            refuse("input Y", "an exponent that is no integer of the base's data type", base.data_type)
    with np.errstate(all="ignore"):  # one that is too large or too small for the data type is infinite or 0 there
        return exponent.astype(base.data_type)
