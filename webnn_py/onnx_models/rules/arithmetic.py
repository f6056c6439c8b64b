"""Element-wise arithmetic."""

from functools import reduce

import numpy as np

from webnn_py.onnx_models.draw import Draw, Known, Value
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
def maximum(draw: Draw, *data: MLOperand) -> MLOperand:
    """The greatest of any number of tensors."""
    return reduce(draw.max, data)


@rule("Min", 6, 8, 12, 13)
def minimum(draw: Draw, *data: MLOperand) -> MLOperand:
    """The least of any number of tensors."""
    return reduce(draw.min, data)


@rule("Sum", 6, 8, 13)
def total(draw: Draw, *data: MLOperand) -> MLOperand:
    """The sum of any number of tensors."""
    return reduce(draw.add, data)


@rule("Mean", 6, 8, 13)
def mean(draw: Draw, *data: MLOperand) -> MLOperand:
    """The mean of any number of tensors."""
    added = reduce(draw.add, data)
    return draw.div(added, draw.number(len(data), added))


@rule("Pow", 7, 12, 13, 15)
def power(draw: Draw, x: MLOperand, y: Value) -> MLOperand:
    """A base of one data type to the power of an exponent of another: the result has the base's."""
    if isinstance(y, np.ndarray):
        return draw.pow(x, draw.constant(_exponent(y, x)))
    if y.data_type != x.data_type:
        if x.data_type not in ("float32", "float16"):
            refuse("the data type of input Y", y.data_type, f"{x.data_type}, that of input X, or known while drawing")
        y = draw.cast(y, x.data_type)
    return draw.pow(x, y)


def _exponent(known: Known, base: MLOperand) -> Known:
    """A known exponent in the base's data type; integers have no other powers that are integers."""
    if base.data_type in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[base.data_type]
        if np.any(known != np.trunc(known)) or np.any(known < lowest) or np.any(known > highest):
            refuse("input Y", "an exponent that is no integer of the base's data type", base.data_type)
    return known.astype(base.data_type)
