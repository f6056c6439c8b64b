"""Element-wise unary operators (section "Element-wise unary operations").

The output has the input's data type and shape. Floats are computed in float32 at least and rounded once.
"""

import math

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.declaration import operator
from webnn_py.operators.limits import ANY, COMMON, FLOATS, SIGNED, LimitsRow, limit
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import same

OF_SIGNED: LimitsRow = {
    "input": limit(SIGNED, required=COMMON),
    "output": limit(SIGNED, required=COMMON, type_of="input", rank_of="input"),
}
OF_FLOATS: LimitsRow = {
    "input": limit(FLOATS),
    "output": limit(FLOATS, type_of="input", rank_of="input"),
}
OF_ANY: LimitsRow = {
    "input": limit(ANY, required=COMMON),
    "output": limit(ANY, required=COMMON, type_of="input", rank_of="input"),
}


@operator("abs", OF_SIGNED, elementwise=True, no_larger=True, result_range=(0, math.inf), propagates_nan=True)
def abs_(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The absolute value; that of the lowest integer wraps to itself."""
    return same(input)


@operator("ceil", OF_FLOATS, elementwise=True, propagates_nan=True)
def ceil(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Round up to an integer."""
    return same(input)


@operator("cos", OF_FLOATS, elementwise=True, result_range=(-1, 1), propagates_nan=True)
def cos(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The cosine of an angle in radians."""
    return same(input)


@operator("erf", OF_FLOATS, elementwise=True, result_range=(-1, 1), propagates_nan=True)
def erf(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The Gauss error function, 2/√π · ∫₀ˣ exp(-t²) dt."""
    return same(input)


@operator("exp", OF_FLOATS, elementwise=True, result_range=(0, math.inf), propagates_nan=True)
def exp(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The base of natural logarithms, e, to the power of the element."""
    return same(input)


@operator("floor", OF_FLOATS, elementwise=True, propagates_nan=True)
def floor(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Round down to an integer."""
    return same(input)


@operator("identity", OF_ANY, elementwise=True, selects=True, propagates_nan=True)
def identity(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The element itself; the way to make an input or a constant an output of the graph."""
    return same(input)


@operator("log", OF_FLOATS, elementwise=True, propagates_nan=True)
def log(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The natural logarithm; -Infinity of 0, NaN of negative numbers."""
    return same(input)


@operator("neg", OF_SIGNED, elementwise=True, no_larger=True, propagates_nan=True)
def neg(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The element with its sign changed; the lowest integer wraps to itself."""
    return same(input)


@operator("reciprocal", OF_FLOATS, elementwise=True, propagates_nan=True)
def reciprocal(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """One divided by the element."""
    return same(input)


@operator("roundEven", OF_FLOATS, elementwise=True, propagates_nan=True)
def round_even(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Round to the nearest integer, halves to the even one."""
    return same(input)


@operator("sin", OF_FLOATS, elementwise=True, no_larger=True, result_range=(-1, 1), propagates_nan=True)
def sin(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The sine of an angle in radians."""
    return same(input)


@operator("sign", OF_SIGNED, elementwise=True, result_range=(-1, 1))
def sign(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """1 for a positive element, -1 for a negative one, otherwise 0: for zeros and for NaN."""
    return same(input)


@operator("sqrt", OF_FLOATS, elementwise=True, result_range=(0, math.inf), propagates_nan=True)
def sqrt(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The square root; NaN of negative numbers."""
    return same(input)


@operator("tan", OF_FLOATS, elementwise=True, propagates_nan=True)
def tan(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The tangent of an angle in radians."""
    return same(input)
