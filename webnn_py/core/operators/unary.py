"""Element-wise unary operators (section "Element-wise unary operations").

The output has the input's data type and shape. Floats are computed in float32 at least and rounded once.
"""

import math

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import family
from webnn_py.core.operators.limits import ANY, COMMON, FLOATS, SIGNED, LimitsRow, input_and_output
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import same

OF_SIGNED: LimitsRow = input_and_output(SIGNED, required=COMMON, keeps_rank=True)
OF_FLOATS: LimitsRow = input_and_output(FLOATS, keeps_rank=True)
OF_ANY: LimitsRow = input_and_output(ANY, required=COMMON, keeps_rank=True)


@family(elementwise=True, propagates_nan=True)
def _unary(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    return same(input)


abs_ = _unary(
    "abs",
    OF_SIGNED,
    "The absolute value; that of the lowest integer wraps to itself.",
    no_larger=True,
    result_range=(0, math.inf),
)
ceil = _unary("ceil", OF_FLOATS, "Round up to an integer.")
cos = _unary("cos", OF_FLOATS, "The cosine of an angle in radians.", result_range=(-1, 1))
erf = _unary("erf", OF_FLOATS, "The Gauss error function, 2/√π · ∫₀ˣ exp(-t²) dt.", result_range=(-1, 1))
exp = _unary(
    "exp", OF_FLOATS, "The base of natural logarithms, e, to the power of the element.", result_range=(0, math.inf)
)
floor = _unary("floor", OF_FLOATS, "Round down to an integer.")
identity = _unary(
    "identity",
    OF_ANY,
    "The element itself; the way to make an input or a constant an output of the graph.",
    selects=True,
)
log = _unary("log", OF_FLOATS, "The natural logarithm; -Infinity of 0, NaN of negative numbers.")
neg = _unary("neg", OF_SIGNED, "The element with its sign changed; the lowest integer wraps to itself.", no_larger=True)
reciprocal = _unary("reciprocal", OF_FLOATS, "One divided by the element.")
round_even = _unary("roundEven", OF_FLOATS, "Round to the nearest integer, halves to the even one.")
sin = _unary("sin", OF_FLOATS, "The sine of an angle in radians.", no_larger=True, result_range=(-1, 1))
sign = _unary(
    "sign",
    OF_SIGNED,
    "1 for a positive element, -1 for a negative one, otherwise 0: for zeros and for NaN.",
    result_range=(-1, 1),
    propagates_nan=False,
)
sqrt = _unary("sqrt", OF_FLOATS, "The square root; NaN of negative numbers.", result_range=(0, math.inf))
tan = _unary("tan", OF_FLOATS, "The tangent of an angle in radians.")
