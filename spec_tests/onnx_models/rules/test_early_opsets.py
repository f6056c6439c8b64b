"""Operators before opset 7, which onnxruntime does not run; nor does the reference know how they broadcast."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from spec_tests.onnx_models.single_node import assert_refused, compared, make_model, node
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

rng = np.random.default_rng(6)
X = rng.uniform(0.5, 2, [2, 3, 3, 4]).astype(np.float32)
OTHER = rng.uniform(0.5, 2, [2, 3, 3, 4]).astype(np.float32)
ROWS, SQUARE = OTHER[0, 0], OTHER[0, :, :, 0]
CHANNELS = OTHER[0, :, 0, 0]
COLUMN = CHANNELS[:, None, None]
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
COMPARISONS = {"Equal": np.equal, "Greater": np.greater, "Less": np.less}
LOGICAL = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
COUNTS = (10 * X).astype(np.int32)


test_broadcasting_by_attributes = compared(
    *(node(name, [1, 6], X, OTHER, oracle="reference") for name in ARITHMETIC),
    *(
        node(name, [1, 6], X, ROWS, broadcast=1, oracle=[computed(X, ROWS)], known=(1,))
        for name, computed in ARITHMETIC.items()
    ),
    *(
        node(name, [1, 6], X, SQUARE, broadcast=1, axis=1, oracle=[computed(X, SQUARE[..., None])])
        for name, computed in ARITHMETIC.items()
    ),
    node("Add", 6, X, CHANNELS[:1], broadcast=1, oracle=[X + CHANNELS[0]]),
    node("Mul", 1, X, CHANNELS, broadcast=1, axis=-3, consumed_inputs=[0, 0], oracle=[X * COLUMN]),
    node("Pow", 1, X, CHANNELS, broadcast=1, axis=1, oracle=[X**COLUMN]),
    *(
        node(name, 1, COUNTS, COUNTS[0, 0], broadcast=1, oracle=[computed(COUNTS, COUNTS[0, 0])])
        for name, computed in COMPARISONS.items()
    ),
    *(
        node(name, 1, X > 1, ROWS > 1, broadcast=1, oracle=[computed(X > 1, ROWS > 1)])
        for name, computed in LOGICAL.items()
    ),
)


test_other_operators = compared(
    node("PRelu", [1, 6], -X, CHANNELS[:1], oracle=[-X * CHANNELS[0]]),
    node("PRelu", [1, 6], -X, CHANNELS, oracle=[-X * COLUMN]),
    node(
        "Gemm", [1, 6], ROWS, ROWS.T.copy(), CHANNELS, broadcast=1, alpha=0.5, oracle=[ROWS @ ROWS.T / 2 + CHANNELS]
    ),
    node("Gemm", 6, ROWS, OTHER[1, 1], SQUARE, transB=1, beta=2.0, oracle=[ROWS @ OTHER[1, 1].T + 2 * SQUARE]),
    node("Dropout", [1, 6], X, is_test=1, oracle=[X]),
    node("Reshape", 1, X, shape=[0, -1], oracle=[X.reshape(2, -1)]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (node("Add", 6, X, ROWS), "the shapes of the inputs is [2, 3, 3, 4] and [3, 4]; it must be the same where"),
        (node("Add", 6, X, ROWS, broadcast=1, axis=1), "the shape of input B is [3, 4]; it must be that of"),
        (node("PRelu", 6, X, OTHER), "the shape of the slope is [2, 3, 3, 4]; it must be [1], or that of the channels"),
        (node("BatchNormalization", 6, X, *[CHANNELS] * 4), "attribute is_test is 0; it must be 1"),
        (node("BatchNormalization", 6, X, *[CHANNELS] * 4, is_test=1, spatial=0), "attribute spatial is 0; it must"),
        (node("Dropout", 6, X), "attribute is_test is 0; it must be 1"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_what_they_cannot_do_is_refused(context, case, text):
    assert_refused(context, case[0], text)


async def test_what_webnn_cannot_draw_is_not_left_to_the_reference(context):
    """Which broadcasts as today, whatever the attributes say."""
    known = {"a": SQUARE.astype(np.float64), "b": CHANNELS.astype(np.float64)}
    nodes = [
        helper.make_node("Add", ["a", "b"], ["c"], broadcast=1, axis=0),
        helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "d"], ["y"]),
    ]
    model = OnnxModel.load(make_model(nodes, {"x": SQUARE, **known}, ["y"], known, opset=6))
    with pytest.raises(UnsupportedModelError, match=r"node 'Add of c' \(Add, opset 6\): .* float64"):
        model.convert(MLGraphBuilder(context))


test_what_onnx_gave_up = compared(
    node("ImageScaler", 1, X, scale=0.5, bias=[1.0, 2.0, 3.0], oracle=[X / 2 + np.float32([[[1]], [[2]], [[3]]])]),
    node("ImageScaler", 1, X, bias=[1.0, 2.0, 3.0], oracle=[X + np.float32([[[1]], [[2]], [[3]]])]),
    node("Affine", 1, X, alpha=0.5, beta=2.0, oracle=[X / 2 + 2]),
    node("Affine", 1, X, oracle=[X]),
    node("Crop", 1, X, border=[1, 0, 2, 1], oracle=[X[:, :, :2, 1:2]]),
    node("Crop", 1, X, border=[1, 1, 0, 0], scale=[2, 3], oracle=[X[:, :, 1:3, 1:4]]),
)


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (node("ImageScaler", 1, X, bias=[1.0])[0], "attribute bias is [1.0]; it must be one for each channel of [2, 3"),
        (node("Crop", 1, X, border=[1, 2])[0], "attributes border and scale is (1, 2) and None; it must be four num"),
        (
            node("Gemm", 6, X[0, 0], X[0, 0].T, X[0, 0, 0, :3])[0],
            "the shape of input C is [3]; it must be [3, 3] where",
        ),
    ],
    ids=["ImageScaler", "Crop", "Gemm"],
)
async def test_what_onnx_gave_up_is_refused_where_it_does_not_fit(context, case, text):
    assert_refused(context, case, text)
