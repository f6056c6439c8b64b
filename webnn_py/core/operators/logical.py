"""Element-wise logical operators (section "Element-wise logical operations") and ``where``.

Truth is uint8: anything but 0 is true as an operand, and outputs are exactly 0 or 1.
"""

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import family, operator
from webnn_py.core.operators.limits import ANY, COMMON, FLOATS, UINT8, LimitsRow, limit
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import broadcast, output

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


@family(elementwise=True, boolean=True)
def _unary(a: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    # spec: element-wise-logical-op 7-8
    return output("uint8", a.shape)


@family(elementwise=True, boolean=True)
def _binary(a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    # spec: element-wise-logical-op 6.3
    return output("uint8", broadcast(a.shape, b.shape))


equal = _binary("equal", COMPARISON, "Compare element by element: a = b. NaN equals nothing.", commutative=True)
not_equal = _binary(
    "notEqual",
    COMPARISON,
    "Compare element by element: a ≠ b. NaN differs from everything, itself included.",
    commutative=True,
)
greater = _binary("greater", COMPARISON, "Compare element by element: a > b. False where one of them is NaN.")
greater_or_equal = _binary(
    "greaterOrEqual", COMPARISON, "Compare element by element: a ≥ b. False where one of them is NaN."
)
lesser = _binary("lesser", COMPARISON, "Compare element by element: a < b. False where one of them is NaN.")
lesser_or_equal = _binary(
    "lesserOrEqual", COMPARISON, "Compare element by element: a ≤ b. False where one of them is NaN."
)
logical_not = _unary("logicalNot", NEGATION, "Negate element by element: 1 where a is 0, otherwise 0.")
logical_and = _binary("logicalAnd", CONNECTIVE, "1 where both elements of a pair are true.", commutative=True)
logical_or = _binary("logicalOr", CONNECTIVE, "1 where at least one element of a pair is true.", commutative=True)
logical_xor = _binary("logicalXor", CONNECTIVE, "1 where exactly one element of a pair is true.", commutative=True)
is_nan = _unary("isNaN", FLOAT_TEST, "1 where the element is NaN.")
is_infinite = _unary("isInfinite", FLOAT_TEST, "1 where the element is infinite, of either sign.")


@operator("where", WHERE, elementwise=True, selects=("true_value", "false_value"))
def where(
    condition: MLOperand, true_value: MLOperand, false_value: MLOperand, *, label: str = ""
) -> MLOperandDescriptor:
    """Choose element by element between two operands; all three broadcast to one another.

    Args:
        condition: where it is not 0, the output is taken from ``true_value``.
        true_value: the elements where the condition holds.
        false_value: the elements where it does not, of the same data type.
    """
    # spec: where 4-4.1
    values = broadcast(true_value.shape, false_value.shape, ("true_value", "false_value"))
    # spec: where 5-5.1
    return output(true_value.data_type, broadcast(condition.shape, values, ("condition", "the two values together")))
