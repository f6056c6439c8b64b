import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

X = np.random.default_rng(9).uniform(-2, 2, [3, 4]).astype(np.float32)
X[1] = 0
COUNTS = np.arange(-6, 6).reshape(3, 4)
PLACES = np.array([2, 0, 2])


@each(
    node("ai.onnx.ml.Scaler", 1, X, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 2.0, 3.0, 4.0]),
    node("ai.onnx.ml.Scaler", 1, COUNTS, offset=[1.0], scale=[0.5]),
    *(node("ai.onnx.ml.Normalizer", 1, item, norm=norm) for norm in ("MAX", "L1", "L2") for item in (X, COUNTS)),
    node("ai.onnx.ml.Normalizer", 1, X[0]),
    node("ai.onnx.ml.Binarizer", 1, X, threshold=0.5),
)
async def test_what_comes_before_a_network(context, case):
    await check(context, case)


@each(
    node("ai.onnx.ml.LinearRegressor", 1, X, coefficients=np.arange(8.0).tolist(), intercepts=[1.0, 2.0], targets=2),
    node("ai.onnx.ml.LinearRegressor", 1, X, coefficients=[1.0, 2.0, 3.0, 4.0]),
    node("ai.onnx.ml.ArrayFeatureExtractor", 1, X, PLACES, known=(1,)),
    node("ai.onnx.ml.ArrayFeatureExtractor", 1, COUNTS, PLACES),
)
async def test_what_comes_behind(context, case):
    await check(context, case)
