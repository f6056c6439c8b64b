import numpy as np

from spec_tests.onnx_models.single_node import compared, node

rng = np.random.default_rng(3)
X = rng.uniform(-4, 4, [2, 3, 4]).astype(np.float32)
SMALL = np.arange(6).reshape(2, 3)
SLOPE = rng.uniform(-1, 1, [3, 1]).astype(np.float32)
INTEGERS = np.array([-9, 0, 9], np.int32)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


test_element_by_element = compared(
    *(node(operator, [6, 13], X) for operator in ("Sigmoid", "Tanh")),
    node("Relu", [6, 13, 14], X),
    *(node(operator, [1, 22], X) for operator in ("Softplus", "Softsign")),
    *(node(operator, [6, 22], X) for operator in ("Elu", "HardSigmoid", "Selu")),
    node("Elu", [6, 22], X, alpha=0.5),
    node("HardSigmoid", [6, 22], X, alpha=0.1, beta=0.6),
    node("Selu", [6, 22], X, alpha=1.5, gamma=1.1),
    node("HardSwish", [14, 22], X),
    node("LeakyRelu", [6, 16], X),
    node("LeakyRelu", [6, 16], X, alpha=0.3),
    node("PRelu", [7, 9, 16], X, SLOPE, known=(1,)),
    node("PRelu", 16, X, SLOPE),
    node("ThresholdedRelu", [10, 22], X),
    node("ThresholdedRelu", [10, 22], X, alpha=-0.5),
    node("Gelu", 20, X),
    node("Gelu", 20, X, approximate="tanh"),
    node("Celu", 12, X),
    node("Celu", 12, X, alpha=2.0),
    node("Celu", 28, X, alpha=2.0, oracle="reference"),
    node("PRelu", 16, SMALL.astype(np.uint32), SMALL[0].astype(np.uint32)),
    node("Shrink", 9, X),
    *(node("Shrink", 9, SMALL.astype(name), lambd=1.5, bias=2.0) for name in ("uint8", "int32", "int64")),
    node("Shrink", 9, X, lambd=1.5, bias=0.25),
    *(node("Shrink", 9, SMALL.astype(name), lambd=1.5, bias=0.5) for name in ("uint8", "int32", "int64")),
    node("Swish", 24, X, oracle="reference"),
    node("Swish", 24, X, alpha=0.5, oracle="reference"),
)


test_clip = compared(
    node("Clip", 6, X),
    node("Clip", 6, X, min=-1.0),
    node("Clip", 6, X, min=-1.0, max=2.0),
    node("Clip", [11, 12, 13], X),
    node("Clip", [11, 12, 13], X, number(-1), known=(1,)),
    node("Clip", [11, 12, 13], X, None, number(1), known=(2,)),
    node("Clip", [11, 12, 13], X, number(-1), number(2), known=(1, 2)),
    node("Clip", [12, 13], X, number(2), number(-1), known=(1, 2)),
    node("Clip", [12, 13], X, number(-1), number(2)),
    node("Clip", 13, X, number(-1), number(2), known=(1,)),
    node("Clip", [12, 13], INTEGERS, number(-3, np.int32), number(3, np.int32), known=(1, 2)),
)


test_softmax = compared(
    *(node("Hardmax", [1, 11], X, axis=axis) for axis in (0, 1, 2)),
    *(node("Hardmax", 13, np.round(X), axis=axis) for axis in (0, 1, -1)),
    *(node(operator, [1, 11], X, axis=axis) for operator in ("Softmax", "LogSoftmax") for axis in (0, 1, 2)),
    *(node(operator, [1, 11], X) for operator in ("Softmax", "LogSoftmax")),
    *(node(operator, 11, X, axis=-2) for operator in ("Softmax", "LogSoftmax")),
    *(node(operator, 13, X, axis=axis) for operator in ("Softmax", "LogSoftmax") for axis in (0, 1, -1)),
    *(node(operator, 13, X) for operator in ("Softmax", "LogSoftmax")),
    *(node(operator, 13, X * 50, absolute=1e-4) for operator in ("Softmax", "LogSoftmax")),
)
