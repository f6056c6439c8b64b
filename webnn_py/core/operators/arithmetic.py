"""Element-wise binary operators (section "Element-wise binary operations").

Both operands have one data type; their shapes broadcast to each other. Integers wrap around.
"""

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import family
from webnn_py.core.operators.limits import ANY, COMMON, EVERY_RANK, of_ranks
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import broadcast, output

BINARY = of_ranks(ANY, required=COMMON, a=EVERY_RANK, b=EVERY_RANK, output=EVERY_RANK)


@family(elementwise=True, propagates_nan=True)
def _binary(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    # spec: element-wise-binary-op 5-6
    return output(a.data_type, broadcast(a.shape, b.shape))


add = _binary("add", BINARY, "Add element by element: a + b.", commutative=True)
sub = _binary("sub", BINARY, "Subtract element by element: a - b.")
mul = _binary("mul", BINARY, "Multiply element by element: a · b.", commutative=True)
div = _binary(
    "div",
    BINARY,
    """Divide element by element: a / b.

Integers truncate toward zero; an integer divided by zero is 0.""",
)
max_ = _binary(
    "max",
    BINARY,
    "The greater of each pair of elements; NaN if one of them is NaN.",
    commutative=True,
    selects=True,
)
min_ = _binary(
    "min",
    BINARY,
    "The lesser of each pair of elements; NaN if one of them is NaN.",
    commutative=True,
    selects=True,
)
pow_ = _binary(
    "pow",
    BINARY,
    """Raise a to the power b, element by element.

Integers raised to a negative power truncate toward zero: 0, or ±1 for a base of ±1.""",
    propagates_nan=False,
)
