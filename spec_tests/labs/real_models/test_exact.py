import numpy as np
import pytest
from onnx import TensorProto, helper

from spec_tests.labs.real_models.comparison import difference, session_of
from spec_tests.labs.real_models.exact import exactly
from spec_tests.support.onnx_programs import make_model

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal([1, 4, 9, 8]).astype(np.float32)
W = RANDOM.standard_normal([4, 2, 3, 2]).astype(np.float32)
B = RANDOM.standard_normal([4]).astype(np.float32)
SHAPE = {"kernel_shape": [3, 2]}


def written(path, nodes, opset=9, x=X, w=W):
    """Write a model of nodes from x to y."""
    weights = {"w": w, "b": B, "b2": B[:2]}
    path.write_bytes(make_model(nodes, {"x": x, **weights}, ["y"], weights, opset=opset))
    return path


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Conv", ["x", "w", "b"], ["y"], group=2, strides=[2, 1], pads=[1, 0, 2, 1], **SHAPE),
        helper.make_node("Conv", ["x", "w"], ["y"], group=2, dilations=[2, 3], **SHAPE),
        helper.make_node("Conv", ["x", "w"], ["y"], group=2, strides=[2, 2], auto_pad="SAME_UPPER", **SHAPE),
        helper.make_node("Conv", ["x", "w"], ["y"], group=2, strides=[2, 2], auto_pad="SAME_LOWER", **SHAPE),
        helper.make_node("ConvTranspose", ["x", "w", "b2"], ["y"], strides=[2, 3], pads=[1, 0, 1, 1], **SHAPE),
        helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], output_shape=[20, 17], **SHAPE),
        helper.make_node("ImageScaler", ["x"], ["y"], scale=0.5, bias=[1.0, 2.0, 3.0, 4.0]),
        helper.make_node("Affine", ["x"], ["y"], alpha=0.5, beta=3.0),
        helper.make_node("Crop", ["x"], ["y"], border=[1, 2, 3, 4]),
    ],
    ids=lambda node: node.op_type,
)
def test_what_the_evaluator_lacks_is_what_onnxruntime_has(tmp_path, node):
    path = written(tmp_path / "model.onnx", [node])
    (wanted,) = session_of(str(path)).run(None, {"x": X})
    exact = exactly(path, {"x": X})["y"]
    assert exact.dtype == np.float64
    assert difference(wanted, exact) < 1e-6


@pytest.mark.parametrize("dimensions", [1, 3])
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_convolutions_have_any_number_of_dimensions(tmp_path, operator, dimensions):
    x = RANDOM.standard_normal([2, 4, 7, 6, 5][: dimensions + 2]).astype(np.float32)
    w = RANDOM.standard_normal([4, 2, 3, 2, 2][: dimensions + 2]).astype(np.float32)
    group, bias = (2, "b") if operator == "Conv" else (1, "b2")
    pads = [1, 0, 1, 1, 1, 0][: 2 * dimensions]
    across = {"strides": [2, 1, 3][:dimensions], "pads": pads, "group": group}
    path = written(tmp_path / "model.onnx", [helper.make_node(operator, ["x", "w", bias], ["y"], **across)], x=x, w=w)
    (wanted,) = session_of(str(path)).run(None, {"x": x})
    assert difference(wanted, exactly(path, {"x": x})["y"]) < 1e-6


def test_all_is_computed_in_float64(tmp_path):
    third = helper.make_tensor("third", TensorProto.FLOAT, [], [1 / 3])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=third),
        helper.make_node("Constant", [], ["e"], value_float=0.1),
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "c"], ["m"]),
        helper.make_node("Add", ["m", "e"], ["y"]),
    ]
    path = written(tmp_path / "model.onnx", nodes, opset=13)
    exact = X.astype(np.float64) * np.float64(np.float32(1 / 3)) + np.float64(np.float32(0.1))
    assert np.array_equal(exactly(path, {"x": X})["y"], exact)
