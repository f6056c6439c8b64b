"""``webnn-py run --compare onnxruntime`` of outputs that are no tensors in ONNX."""

import json

import numpy as np
import pytest
from onnx import TensorProto, helper

from webnn_py.command import comparison


def classifier(labels, shape):
    """Scores as skl2onnx writes them: a map of each row by ZipMap."""
    attribute = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"]),
        helper.make_node("ZipMap", ["p"], ["y"], domain="ai.onnx.ml", **{attribute: list(labels)}),
    ]
    key = TensorProto.STRING if isinstance(labels[0], str) else TensorProto.INT64
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    output = helper.make_value_info("y", helper.make_sequence_type_proto(kind))
    graph = helper.make_graph(
        nodes, "classifier", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))], [output]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (3,)])
@pytest.mark.parametrize("labels", [("c", "a", "b"), (7, -1, 3)], ids=["strings", "integers"])
def test_maps_are_compared_by_their_keys(labels, shape, command, model, tmp_path):
    path = model(classifier(labels, shape))
    np.save(tmp_path / "x.npy", np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    asked = ["--input", tmp_path / "x.npy", "--compare", "onnxruntime", "--tolerance", "1e-6"]
    ended = command("run", path, "--backend", "numpy", *asked, "--json").succeeded()
    assert json.loads(ended.out)["differences"]["y"]["mismatches"] == 0
    assert json.loads(ended.out)["differences"]["y"]["largest"] < 1e-6


@pytest.mark.parametrize(
    ("result", "keys", "text"),
    [
        ([{"a": 1.0}], ("a", "b"), "onnxruntime's maps have other keys than"),
        ([{"a": 1.0}], None, "onnxruntime's is a list, and no tensor; leave it out by --output"),
        ([np.ones(2)], None, "onnxruntime's is a list, and no tensor"),
        (None, None, "onnxruntime's is a NoneType"),
    ],
)
def test_what_cannot_be_an_array_is_told(result, keys, text):
    with pytest.raises(comparison.CommandFailedError, match=text):
        comparison._as_array("y", result, keys)
