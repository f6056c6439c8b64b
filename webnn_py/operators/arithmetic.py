"""Element-wise binary operators (section "Element-wise binary operations").

Both operands have one data type; their shapes broadcast to each other. Integers wrap around.
"""

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.declaration import operator
from webnn_py.operators.limits import ANY, COMMON, LimitsRow, limit
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import broadcast, output

BINARY: LimitsRow = {
    "a": limit(ANY, required=COMMON),
    "b": limit(ANY, required=COMMON, type_of="a"),
    "output": limit(ANY, required=COMMON, type_of="a"),
}


@operator("add", BINARY, elementwise=True, commutative=True, propagates_nan=True)
def add(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Add element by element: a + b."""
    return output(a.data_type, broadcast(a.shape, b.shape))


@operator("sub", BINARY, elementwise=True, propagates_nan=True)
def sub(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Subtract element by element: a - b."""
    return output(a.data_type, broadcast(a.shape, b.shape))


@operator("mul", BINARY, elementwise=True, commutative=True, propagates_nan=True)
def mul(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Multiply element by element: a · b."""
    return output(a.data_type, broadcast(a.shape, b.shape))


@operator("div", BINARY, elementwise=True, propagates_nan=True)
def div(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Divide element by element: a / b.

    Integers truncate toward zero; an integer divided by zero is 0.
    """
    return output(a.data_type, broadcast(a.shape, b.shape))


@operator("max", BINARY, elementwise=True, commutative=True, selects=True, propagates_nan=True)
def max_(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The greater of each pair of elements; NaN if one of them is NaN."""
    return output(a.data_type, broadcast(a.shape, b.shape))


@operator("min", BINARY, elementwise=True, commutative=True, selects=True, propagates_nan=True)
def min_(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """The lesser of each pair of elements; NaN if one of them is NaN."""
    return output(a.data_type, broadcast(a.shape, b.shape))


@operator("pow", BINARY, elementwise=True)
def pow_(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Raise a to the power b, element by element.

    Integers raised to a negative power truncate toward zero: 0, or ±1 for a base of ±1.
    """
    return output(a.data_type, broadcast(a.shape, b.shape))
