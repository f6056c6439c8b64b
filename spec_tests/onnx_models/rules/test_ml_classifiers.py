import numpy as np
import onnx
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import assert_refused, compared, make_model, node, run, run_onnxruntime
from webnn_py.onnx_models import OnnxModel

X = np.array([[-1.5, 0.2], [0.3, 0.1], [2, 0.4]], np.float32)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
THREE = {"coefficients": [1.0, 0.5, 0.0, 0.0, -0.2, 0.3], "intercepts": [0.1, 0.0, 0.2], "classlabels_ints": [4, 9, -6]}
TWO = {"coefficients": [1.0, 0.5], "intercepts": [0.1], "classlabels_ints": [5, 3]}
BOTH = {"outputs": 2, "wanted": (0, 1)}


test_classes_are_scored_and_the_best_has_its_label = compared(
    *(node("ai.onnx.ml.LinearClassifier", 1, X, **THREE, **BOTH, post_transform=item) for item in TRANSFORMS),
    *(node("ai.onnx.ml.LinearClassifier", 1, X, **TWO, **BOTH, post_transform=item) for item in TRANSFORMS),
    node("ai.onnx.ml.LinearClassifier", 1, np.array([[3, -7]]), **THREE, **BOTH),
    node("ai.onnx.ml.LinearClassifier", 1, X, **{**THREE, "coefficients": [*THREE["coefficients"]] * 2}, **BOTH),
    node("ai.onnx.ml.LinearClassifier", 1, X, **{**THREE, "classlabels_ints": [0, 1, 2]}, **BOTH),
    node("ai.onnx.ml.LinearClassifier", 1, X[0], **TWO, **BOTH, multi_class=1),
    node(
        "ai.onnx.ml.ZipMap", 1, X, classlabels_int64s=[4, 9], oracle=[X]
    ),  # a tensor, where onnxruntime has a list of dicts
)


async def test_scores_are_had_without_labels_that_are_strings(context):
    classifier = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        coefficients=TWO["coefficients"],
        intercepts=TWO["intercepts"],
        classlabels_strings=["no", "yes"],
        post_transform="LOGISTIC",
    )
    zipped = helper.make_node("ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
    written = onnx.load_model_from_string(make_model([classifier, zipped], {"x": X}, ["label", "map"], opset=18))
    written.graph.output[1].CopyFrom(  # onnxruntime asks for the type of what is no tensor
        helper.make_value_info(
            "map",
            helper.make_sequence_type_proto(
                helper.make_map_type_proto(onnx.TensorProto.STRING, helper.make_tensor_type_proto(1, []))
            ),
        )
    )
    _, maps = run_onnxruntime(written.SerializeToString(), {"x": X})
    model = OnnxModel.load(written.SerializeToString())
    del written.graph.output[0]
    (ours,) = await run(context, written.SerializeToString(), {"x": X})
    np.testing.assert_allclose(ours, [[item["no"], item["yes"]] for item in maps], rtol=1e-6)
    assert set(model.outputs) == {"label", "map"}


async def test_scores_and_their_map_may_both_be_outputs(context):
    classifier = helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **THREE)
    zipped = helper.make_node(
        "ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_int64s=THREE["classlabels_ints"]
    )
    scores, mapped = await run(
        context, make_model([classifier, zipped], {"x": X}, ["scores", "map"], opset=18), {"x": X}
    )
    np.testing.assert_array_equal(scores, mapped)


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (
            node("ai.onnx.ml.LinearClassifier", 1, X, **{**TWO, "intercepts": [0.1, 0.2, 0.3]}, **BOTH)[0],
            "intercepts is 3; it must",
        ),
        (
            node("ai.onnx.ml.LinearClassifier", 1, X, **{**TWO, "coefficients": [1.0]}, **BOTH)[0],
            "is 1; it must be 1 · 2",
        ),
        (node("ai.onnx.ml.LinearClassifier", 1, X, **THREE, **BOTH, post_transform="PROBIT")[0], "is PROBIT; it must"),
        (
            node(
                "ai.onnx.ml.LinearClassifier",
                1,
                X,
                coefficients=[1.0, 0.5],
                intercepts=[0.1],
                classlabels_strings=["a", "b"],
                **BOTH,
            )[0],
            "its labels are strings, which WebNN lacks",
        ),
        (
            node("ai.onnx.ml.ZipMap", 1, X, classlabels_int64s=[1])[0],
            "the shape of the input is [3, 2]; it must be rows of 1",
        ),
        (node("ai.onnx.ml.ZipMap", 1, X)[0], "the labels is none; it must be either integers or strings"),
    ],
    ids=lambda item: item[:30] if isinstance(item, str) else "",
)
async def test_classifiers_that_cannot_be_said_are_refused(context, case, text):
    assert_refused(context, case, text)
