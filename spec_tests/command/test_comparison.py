"""``webnn-py run --compare onnxruntime`` of outputs that are no tensors in ONNX."""

from onnx import TensorProto, helper


def test_maps_cannot_be_compared_and_are_left_out_by_output(command, model):
    """Scores as skl2onnx writes them: a map of each row by ZipMap."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"]),
        helper.make_node("ZipMap", ["p"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[7, -1, 3]),
    ]
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    outputs = [
        helper.make_value_info("y", helper.make_sequence_type_proto(kind)),
        helper.make_tensor_value_info("p", TensorProto.FLOAT, [2, 3]),
    ]
    graph = helper.make_graph(
        nodes, "classifier", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])], outputs
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    path = model(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    asked = ("run", path, "--backend", "numpy", "--compare", "onnxruntime", "--tolerance", "1e-6")
    command(*asked).assert_refused("onnxruntime's is a list, and no tensor; leave it out by --output", 1)
    command(*asked, "--output", "p").succeeded()
