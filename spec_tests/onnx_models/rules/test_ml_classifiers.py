import numpy as np
import onnx
from onnx import helper

from spec_tests.onnx_models.single_node import compared, make_model, ml, refused, run, run_onnxruntime
from webnn_py.onnx_models import OnnxModel

X = np.array([[-1.5, 0.2], [0.3, 0.1], [2, 0.4]], np.float32)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
THREE = {"coefficients": [1.0, 0.5, 0.0, 0.0, -0.2, 0.3], "intercepts": [0.1, 0.0, 0.2], "classlabels_ints": [4, 9, -6]}
TWO = {"coefficients": [1.0, 0.5], "intercepts": [0.1], "classlabels_ints": [5, 3]}


def classifier(x=X, *, outputs=2, **attributes):
    return ml("LinearClassifier", x, outputs=outputs, **attributes)


test_classes_are_scored_and_the_best_has_its_label = compared(
    *(classifier(**classes, post_transform=item) for classes in (THREE, TWO) for item in TRANSFORMS),
    classifier(np.array([[3, -7]]), **THREE),
    classifier(**{**THREE, "coefficients": THREE["coefficients"] * 2}),
    classifier(**{**THREE, "classlabels_ints": [0, 1, 2]}),
    classifier(X[0], **TWO, multi_class=1),
    ml("ZipMap", X, classlabels_int64s=[4, 9], oracle=[X]),  # a tensor, where onnxruntime has a list of dicts
)


async def test_scores_are_computed_without_labels_that_are_strings(context):
    strings = {"domain": "ai.onnx.ml", "classlabels_strings": ["no", "yes"]}
    scored = {name: TWO[name] for name in ("coefficients", "intercepts")} | {"post_transform": "LOGISTIC"}
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], **strings, **scored),
        helper.make_node("ZipMap", ["scores"], ["map"], **strings),
    ]
    written = onnx.load_model_from_string(make_model(nodes, {"x": X}, ["label", "map"], opset=18))
    score = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(onnx.TensorProto.STRING, score))
    written.graph.output[1].type.CopyFrom(maps)  # onnxruntime asks for the type of what is no tensor
    _, maps = run_onnxruntime(written.SerializeToString(), {"x": X})
    model = OnnxModel.load(written.SerializeToString())
    del written.graph.output[0]
    (ours,) = await run(context, written.SerializeToString(), {"x": X})
    np.testing.assert_allclose(ours, [[item["no"], item["yes"]] for item in maps], rtol=1e-6)
    assert set(model.outputs) == {"label", "map"}


async def test_scores_and_their_map_may_both_be_outputs(context):
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **THREE),
        helper.make_node("ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_int64s=[4, 9, -6]),
    ]
    scores, mapped = await run(context, make_model(nodes, {"x": X}, ["scores", "map"], opset=18), {"x": X})
    np.testing.assert_array_equal(scores, mapped)


STRINGS = {"coefficients": [1.0, 0.5], "intercepts": [0.1], "classlabels_strings": ["a", "b"]}


test_unsupported_classifiers_are_refused = refused(
    (classifier(**{**TWO, "intercepts": [0.1, 0.2, 0.3]}), "intercepts is 3; it must"),
    (classifier(**{**TWO, "coefficients": [1.0]}), "is 1; it must be 1 · 2"),
    (classifier(**THREE, post_transform="PROBIT"), "is PROBIT; it must"),
    (classifier(**STRINGS), "its labels are strings, which WebNN lacks"),
    (ml("ZipMap", X, classlabels_int64s=[1]), "the shape of the input is [3, 2]; it must be rows of 1"),
    (ml("ZipMap", X), "the labels is none; it must be either integers or strings"),
)
