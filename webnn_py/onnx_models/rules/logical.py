"""Comparisons, logic and choice. Booleans are ``uint8``, 0 or 1."""

import math

from webnn_py.core.operators import logical
from webnn_py.core.operators.operand import MLOperand
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_table.declaration import one_to_one, rule

one_to_one("Equal", logical.equal, 7, 11, 13, 19)
one_to_one("Greater", logical.greater, 7, 9, 13)
one_to_one("GreaterOrEqual", logical.greater_or_equal, 12, 16)
one_to_one("Less", logical.lesser, 7, 9, 13)
one_to_one("LessOrEqual", logical.lesser_or_equal, 12, 16)
one_to_one("Not", logical.logical_not, 1)
one_to_one("And", logical.logical_and, 7)
one_to_one("Or", logical.logical_or, 7)
one_to_one("Xor", logical.logical_xor, 7)
one_to_one("Where", logical.where, 9, 16)
one_to_one("IsNaN", logical.is_nan, 9, 13, 20)


@rule("IsInf", 10, 20)
def is_inf(context: ConversionContext, x: MLOperand, *, detect_negative: bool, detect_positive: bool) -> MLOperand:
    """Return 1 where the element is infinite, of either sign or of one."""
    if detect_negative and detect_positive:
        return context.is_infinite(x)
    if detect_negative or detect_positive:
        return context.equal(x, context.number(math.inf if detect_positive else -math.inf, x))
    return context.logical_and(context.is_infinite(x), context.is_nan(x))  # neither: nowhere
