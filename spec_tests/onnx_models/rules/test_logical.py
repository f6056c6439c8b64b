import numpy as np

from spec_tests.onnx_models.single_node import compared, node

A = np.array([[-1, 0, 1], [2, np.nan, np.inf]], np.float32)
B = np.array([[-1, 1, 0], [2, np.nan, -np.inf]], np.float32)
INTEGERS = np.array([[1, 2, 3], [3, 2, 1]], np.int32)
TRUTHS = np.array([[True, False, True], [False, False, True]])
OTHERS = np.array([True, True, False])


test_comparisons = compared(
    node("Equal", [7, 11, 13, 19], INTEGERS, INTEGERS[:, ::-1].copy()),
    node("Equal", [11, 13, 19], A, B),
    node("Equal", [7, 11, 13, 19], TRUTHS, OTHERS),
    *(node(operator, [7, 9, 13], A, B) for operator in ("Greater", "Less")),
    *(node(operator, [9, 13], INTEGERS, INTEGERS[:1]) for operator in ("Greater", "Less")),
    *(node(operator, [12, 16], A, B) for operator in ("GreaterOrEqual", "LessOrEqual")),
    *(node(operator, [12, 16], INTEGERS, INTEGERS[:1]) for operator in ("GreaterOrEqual", "LessOrEqual")),
)


test_logic = compared(
    *(node(operator, 7, TRUTHS, OTHERS) for operator in ("And", "Or", "Xor")),
    node("And", 7, TRUTHS, OTHERS, known=(1,)),
    node("Not", 1, TRUTHS),
)


test_classification_of_floats = compared(
    node("IsNaN", [9, 13, 20], A),
    node("IsInf", [10, 20], B),
    node("IsInf", [10, 20], A - 1, detect_negative=0),
    node("IsInf", [10, 20], B, detect_positive=0),
    node("IsInf", [10, 20], B, detect_positive=0, detect_negative=0),
)


test_choice = compared(
    node("Where", [9, 16], TRUTHS, INTEGERS, np.array(7, np.int32)),
    node("Where", [9, 16], OTHERS, A, B),
    node("Where", 16, OTHERS, A, B, known=(0,)),
    node("Where", 16, TRUTHS, TRUTHS, ~TRUTHS, oracle="reference"),
)
