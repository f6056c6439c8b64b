import numpy as np

from spec_tests.onnx_models.single_node import compared, node

rng = np.random.default_rng(2)
X = rng.uniform(-3, 3, [2, 5]).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
WITHIN = np.linspace(-1, 1, 41, dtype=np.float32)
ANY = np.array([-np.inf, -1e9, -3, -2, -1, -0.5, -0.3, 0, 1e-9, 0.4, 0.7, 2.4, 2.5, 99, np.inf], np.float32)
HALVES = np.array([-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5], np.float32)
INTEGERS = np.array([-3, 0, 4], np.int32)


test_element_by_element = compared(
    *(node(operator, [6, 13], X) for operator in ("Abs", "Ceil", "Exp", "Floor", "Neg", "Reciprocal")),
    *(node(operator, [6, 13], POSITIVE) for operator in ("Log", "Sqrt")),
    *(node(operator, [7, 22], X) for operator in ("Cos", "Sin", "Tan")),
    *(node(operator, [9, 13], X) for operator in ("Erf", "Sign")),
    node("Round", [11, 22], HALVES),
    *(node(operator, 9, X) for operator in ("Sinh", "Cosh", "Asinh")),
    *(node(operator, 22, X, oracle="reference") for operator in ("Sinh", "Cosh", "Asinh")),
    *(node(operator, 7, WITHIN) for operator in ("Asin", "Acos")),
    *(node(operator, 22, WITHIN, oracle="reference") for operator in ("Asin", "Acos")),
    node("Atan", 7, ANY),
    node("Atan", 22, ANY, oracle="reference"),
    node("Acosh", 9, POSITIVE + 1),
    node("Acosh", 22, POSITIVE + 1, oracle="reference"),
    node("Atanh", 9, X / 4),
    node("Atanh", 22, X / 4, oracle="reference"),
    *(node(operator, 13, INTEGERS) for operator in ("Abs", "Neg", "Sign")),
    *(node("Sign", 13, np.array([0, 1, 200], name)) for name in ("uint8", "uint32", "uint64")),
    node("Abs", 13, np.array([0, 200], np.uint8)),
    node("Exp", 13, X.astype(np.float16), relative=2e-3),
)


test_operators_that_return_their_operand = compared(
    node("Identity", [1, 13, 14, 16, 19, 21, 23, 24, 25], X),
    node("Dropout", [7, 10], X, ratio=0.3),
    node("Dropout", [12, 13, 22], X),
    node("Dropout", [12, 13, 22], X, outputs=2),
    node("Dropout", 13, np.array(2, np.float32), outputs=2, wanted=(1,)),
    node("Dropout", [12, 13, 22], X, np.array(0.3, np.float32), known=(1,)),
    node("Dropout", [12, 13, 22], X, np.array(0.3, np.float32), np.array(False), known=(1, 2), seed=3),
)
