import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, ml

X = Random(9, -2, 2).floats(3, 4)
X[1] = 0
COUNTS = np.arange(-6, 6).reshape(3, 4)
PLACES = np.array([2, 0, 2])


test_preprocessing = compared(
    ml("Scaler", X, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 2.0, 3.0, 4.0]),
    ml("Scaler", COUNTS, offset=[1.0], scale=[0.5]),
    *(ml("Normalizer", item, norm=norm) for norm in ("MAX", "L1", "L2") for item in (X, COUNTS)),
    ml("Normalizer", X[0]),
    ml("Binarizer", X, threshold=0.5),
)


test_regression_and_selection = compared(
    ml("LinearRegressor", X, coefficients=np.arange(8.0).tolist(), intercepts=[1.0, 2.0], targets=2),
    ml("LinearRegressor", X, coefficients=[1.0, 2.0, 3.0, 4.0]),
    ml("ArrayFeatureExtractor", X, PLACES, known=(1,)),
    ml("ArrayFeatureExtractor", COUNTS, PLACES),
)
