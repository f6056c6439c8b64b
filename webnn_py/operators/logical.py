"""Element-wise logical operators (section "Element-wise logical operations") and ``where``.

Truth is uint8: anything but 0 is true as an operand, and outputs are exactly 0 or 1.
"""

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.declaration import operator
from webnn_py.operators.limits import ANY, COMMON, FLOATS, UINT8, LimitsRow, limit
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import broadcast, output

COMPARISON: LimitsRow = {
    "a": limit(ANY, required=COMMON),
    "b": limit(ANY, required=COMMON, type_of="a"),
    "output": limit(UINT8),
}
NEGATION: LimitsRow = {"a": limit(UINT8), "output": limit(UINT8)}
CONNECTIVE: LimitsRow = {"a": limit(UINT8), "b": limit(UINT8, type_of="a"), "output": limit(UINT8)}
FLOAT_TEST: LimitsRow = {"a": limit(FLOATS), "output": limit(UINT8)}
WHERE: LimitsRow = {
    "condition": limit(UINT8),
    "true_value": limit(ANY, required=COMMON),
    "false_value": limit(ANY, required=COMMON, type_of="true_value"),
    "output": limit(ANY, required=COMMON, type_of="true_value"),
}


@operator("equal", COMPARISON, elementwise=True, commutative=True, boolean=True)
def equal(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Compare element by element: a = b. NaN equals nothing."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("notEqual", COMPARISON, elementwise=True, commutative=True, boolean=True)
def not_equal(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Compare element by element: a ≠ b. NaN differs from everything, itself included."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("greater", COMPARISON, elementwise=True, boolean=True)
def greater(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Compare element by element: a > b. False where one of them is NaN."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("greaterOrEqual", COMPARISON, elementwise=True, boolean=True)
def greater_or_equal(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Compare element by element: a ≥ b. False where one of them is NaN."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("lesser", COMPARISON, elementwise=True, boolean=True)
def lesser(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Compare element by element: a < b. False where one of them is NaN."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("lesserOrEqual", COMPARISON, elementwise=True, boolean=True)
def lesser_or_equal(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Compare element by element: a ≤ b. False where one of them is NaN."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("logicalNot", NEGATION, elementwise=True, boolean=True)
def logical_not(a: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Negate element by element: 1 where a is 0, otherwise 0."""
    return output("uint8", a.shape)


@operator("logicalAnd", CONNECTIVE, elementwise=True, commutative=True, boolean=True)
def logical_and(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """1 where both elements of a pair are true."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("logicalOr", CONNECTIVE, elementwise=True, commutative=True, boolean=True)
def logical_or(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """1 where at least one element of a pair is true."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("logicalXor", CONNECTIVE, elementwise=True, commutative=True, boolean=True)
def logical_xor(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """1 where exactly one element of a pair is true."""
    return output("uint8", broadcast(a.shape, b.shape))


@operator("isNaN", FLOAT_TEST, elementwise=True, boolean=True)
def is_nan(a: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """1 where the element is NaN."""
    return output("uint8", a.shape)


@operator("isInfinite", FLOAT_TEST, elementwise=True, boolean=True)
def is_infinite(a: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """1 where the element is infinite, of either sign."""
    return output("uint8", a.shape)


@operator("where", WHERE, elementwise=True, selects=("true_value", "false_value"))
def where(
    condition: MLOperand, true_value: MLOperand, false_value: MLOperand, *, label: str = ""
) -> MLOperandDescriptor:
    """Choose element by element between two operands; all three broadcast to one another.

    Args:
        condition: where it is not 0, the output is taken from ``true_value``.
        true_value: the elements where the condition holds.
        false_value: the elements where it does not, of the same data type.
        label: the operator's name in messages.
    """
    values = broadcast(true_value.shape, false_value.shape, ("true_value", "false_value"))
    return output(true_value.data_type, broadcast(condition.shape, values, ("condition", "the two values together")))
