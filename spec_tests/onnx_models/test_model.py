import attrs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spec_tests.onnx_models.single_node import assert_same, make_model, node, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import InvalidModelError, OnnxModel, TensorInfo, UnsupportedModelError

X = np.array([[1, -2, 3]], np.float32)


def relu_model(shape=("batch", 3), element_type=TensorProto.FLOAT):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", element_type, shape)],
        [helper.make_tensor_value_info("y", element_type, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)]).SerializeToString()


def test_a_model_says_its_inputs_and_outputs():
    model = OnnxModel.load(relu_model(["batch", 3, None]))
    assert dict(model.inputs) == {"x": TensorInfo("float32", ("batch", 3, "?"))}
    assert dict(model.outputs) == {"y": TensorInfo("float32", ("batch", 3, "?"))}
    assert repr(model) == "<OnnxModel (x: float32 ['batch', 3, '?']) -> (y: float32 ['batch', 3, '?'])>"


def overridable_model():
    """x + w, where w has a value of its own, 1, -2, 3, and is an input."""
    proto = onnx.load_model_from_string(
        make_model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], opset=14)
    )
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    proto.graph.initializer.append(numpy_helper.from_array(X[0], "w"))
    return proto.SerializeToString()


def test_inputs_with_a_value_of_their_own_are_overridable():
    model = OnnxModel.load(overridable_model())
    assert list(model.inputs) == ["x"]
    assert dict(model.overridable) == {"w": TensorInfo("float32", (3,))}


@pytest.mark.parametrize(
    ("given", "names", "w"),
    [
        ({}, "x", X[0]),
        ({"input_values": {"w": X[0] * 7}}, "x", X[0] * 7),
        ({"input_shapes": {"w": [3]}}, "xw", -X[0]),
    ],
    ids=["its own", "a value", "an input"],
)
async def test_an_overridable_input_has_what_the_caller_says(context, given, names, w):
    builder = MLGraphBuilder(context)
    OnnxModel.load(overridable_model()).convert(builder, **given)
    assert builder._input_names == set(names)
    feeds = {"x": X, "w": w}
    assert_same(await run(context, overridable_model(), feeds, **given), run_onnxruntime(overridable_model(), feeds))


async def test_a_wrong_name_is_told_with_the_inputs_but_not_all_weights(context):
    text = r"input_values names \['v'\]; the model's inputs are \['x'\], and 1 with values of their own"
    with pytest.raises(ValueError, match=text):
        OnnxModel.load(overridable_model()).convert(MLGraphBuilder(context), input_values={"v": X})


async def test_all_conversions_of_a_model_know_its_own_values(context):
    model = OnnxModel.load(overridable_model())
    model.convert(MLGraphBuilder(context), input_values={"w": X[0] * 7})
    builder = MLGraphBuilder(context)
    (y,) = model.convert(builder).values()
    *_, w = builder._values[y].node.inputs
    np.testing.assert_array_equal(w.data, X[0])


def test_a_model_tells_its_metadata():
    proto = onnx.load_model_from_string(relu_model())
    proto.producer_name, proto.producer_version, proto.domain = "a tool", "1.2", "org.example"
    proto.model_version, proto.ir_version, proto.graph.doc_string = 3, 8, "of the graph"
    proto.opset_import.append(helper.make_opsetid("own", 2))
    helper.set_model_props(proto, {"labels": "cat,dog", "": "no name"})
    metadata = OnnxModel.load(proto.SerializeToString()).metadata
    assert attrs.asdict(metadata, recurse=False) == {
        "producer_name": "a tool",
        "producer_version": "1.2",
        "domain": "org.example",
        "model_version": 3,
        "ir_version": 8,
        "opsets": {"": 14, "own": 2},
        "graph_name": "graph",
        "doc_string": "of the graph",
        "properties": {"labels": "cat,dog", "": "no name"},
    }
    proto.doc_string = "of the model"
    assert OnnxModel.load(proto.SerializeToString()).metadata.doc_string == "of the model"


def test_booleans_are_uint8_and_unknown_ranks_have_no_shape():
    proto = onnx.load_model_from_string(relu_model())
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.BOOL
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    proto.graph.output[0].type.Clear()
    model = OnnxModel.load(proto.SerializeToString())
    assert model.inputs["x"] == TensorInfo("uint8", None)
    assert model.outputs["y"] == TensorInfo("unknown", None)
    assert str(model.inputs["x"]) == "uint8 of any shape"


def test_sizes_below_1_are_open():
    assert OnnxModel.load(relu_model([-1, 0, 3])).inputs["x"].shape == ("?", "?", 3)


def test_models_are_made_by_load_only():
    with pytest.raises(TypeError, match=r"use OnnxModel\.load"):
        OnnxModel()


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x02", b"GIF89a", b"plain text, nothing else", bytes(64)])
def test_what_is_no_model_is_refused(data, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(InvalidModelError, match=r"model\.onnx .*ONNX model"):
        OnnxModel.load(path)
    with pytest.raises(ValueError, match=f"the {len(data)} bytes given .*ONNX model"):
        OnnxModel.load(data)


@pytest.mark.parametrize("name", ["model.json", "model.onnxtxt", "model"])
def test_a_model_is_read_as_protobuf_whatever_its_file_is_called(name, tmp_path):
    (tmp_path / name).write_bytes(relu_model())
    assert list(OnnxModel.load(tmp_path / name).inputs) == ["x"]
    (tmp_path / name).write_text('{"graph": {}}', encoding="utf-8")
    with pytest.raises(InvalidModelError, match="is JSON; only ONNX models can be read"):
        OnnxModel.load(tmp_path / name)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        OnnxModel.load(tmp_path / "missing.onnx")


async def test_data_beside_the_file_are_found(context, tmp_path):
    w = np.arange(300, dtype=np.float32)
    proto = onnx.load_model_from_string(
        make_model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": w, "w": w}, ["y"], {"w": w}, opset=14)
    )
    onnx.save_model(proto, tmp_path / "model.onnx", save_as_external_data=True, location="model.data", size_threshold=0)
    assert_same(await run(context, tmp_path / "model.onnx", {"x": w}), [w + w])
    with pytest.raises(ValueError, match="load the model by its path"):
        OnnxModel.load((tmp_path / "model.onnx").read_bytes())


async def test_open_shapes_are_given(context):
    assert_same(await run(context, relu_model(), {"x": X}, input_shapes={"x": [1, 3]}), [np.maximum(X, 0)])


@pytest.mark.parametrize(
    ("shapes", "values", "text"),
    [
        ({}, {}, r"input 'x' is float32 \['batch', 3\]; give its shape in input_shapes"),
        ({"x": [1, 4]}, {}, r"the shape of input 'x' is \[1, 4\]; it must fit \['batch', 3\]"),
        ({"x": [3]}, {}, r"the shape of input 'x' is \[3\]; it must fit \['batch', 3\]"),
        ({"x": [1, 3], "z": [1]}, {}, r"input_shapes names \['z'\]; the model's inputs are \['x'\]"),
        ({}, {"z": X}, r"input_values names \['z'\]; the model's inputs are \['x'\]"),
        ({}, {"x": X.astype(np.float64)}, "the value of input 'x' is float64; it must be float32"),
        ({}, {"x": X[0]}, r"the shape of input 'x' is \[3\]; it must fit \['batch', 3\]"),
    ],
)
async def test_shapes_and_values_that_do_not_fit_are_refused(context, shapes, values, text):
    with pytest.raises(ValueError, match=text):
        OnnxModel.load(relu_model()).convert(MLGraphBuilder(context), shapes, values)


async def test_frozen_inputs_are_constants(context):
    model = OnnxModel.load(make_model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": X, "b": X}, ["y"], opset=14))
    builder = MLGraphBuilder(context)
    graph = await builder.build(model.convert(builder, input_values={"b": X}))
    assert list(graph.input_descriptors) == ["a"]
    graph.destroy()


async def test_a_frozen_input_is_copied(context):
    b = X.copy()
    model = make_model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": X, "b": X}, ["y"], opset=14)
    loaded = OnnxModel.load(model)
    builder = MLGraphBuilder(context)
    outputs = loaded.convert(builder, input_values={"b": b})
    b[...] = 0
    graph = await builder.build(outputs)
    (a, y) = [
        await context.create_buffer(data_type="float32", shape=[1, 3], writable=True, readable=True) for _ in "ay"
    ]
    context.write_buffer(a, X)
    context.dispatch(graph, {"a": a}, {"y": y})
    assert_same([await context.read_buffer(y)], [X + X])
    context.destroy()


async def test_outputs_that_are_inputs_or_known_are_computed(context):
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Cast", ["w"], ["truths"], to=TensorProto.BOOL),
    ]
    model = make_model(nodes, {"x": X, "w": X}, ["same", "shape", "truths", "w"], {"w": X}, opset=14)
    assert_same(await run(context, model, {"x": X}), [X, np.array([1, 3]), X != 0, X])


async def test_an_output_may_have_two_names(context):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Identity", ["a"], ["b"])]
    model = make_model(nodes, {"x": X}, ["a", "b"], opset=14)
    assert_same(await run(context, model, {"x": X}), [np.maximum(X, 0)] * 2)


async def test_of_the_outputs_some_may_be_wanted(context):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("RandomNormalLike", ["x"], ["b"]),
        helper.make_node("Add", ["z", "a"], ["c"]),
    ]
    model = OnnxModel.load(make_model(nodes, {"x": X, "z": X}, ["a", "b", "c"], opset=14))
    builder = MLGraphBuilder(context)
    assert list(model.convert(builder, outputs=["a"])) == ["a"]
    assert builder._input_names == {"x"}
    assert list(await model.convert_in_steps(MLGraphBuilder(context), outputs=["c", "a", "c"])) == ["c", "a"]
    with pytest.raises(UnsupportedModelError, match="RandomNormalLike"):
        model.convert(MLGraphBuilder(context), outputs=["b"])
    for names, told in ((["a", "x"], r"\['x'\]"), ([], "none")):
        with pytest.raises(ValueError, match=rf"outputs names {told}; the model's outputs are \['a', 'b', 'c'\]"):
            model.convert(MLGraphBuilder(context), outputs=names)


async def test_inputs_that_nothing_needs_are_left_out(context):
    unused = {"unused": X, "open": X[:0], "double": X.astype(np.float64)}
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": X, **unused}, ["y"], opset=14)
    assert_same(await run(context, model, {"x": X}), [np.maximum(X, 0)])


def two_branches(condition):
    """Relu of x + w, or its negative: w and x come from outside the branches."""
    w = numpy_helper.from_array(X, "w")
    branches = [
        helper.make_graph(nodes, "branch", [], [onnx.ValueInfoProto(name=output)], [])
        for nodes, output in (
            ([helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Relu", ["s"], ["r"])], "r"),
            ([helper.make_node("Neg", ["x"], ["n"])], "n"),
        )
    ]
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], name="choice", then_branch=branches[0], else_branch=branches[1])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [w] + ([] if condition is None else [numpy_helper.from_array(np.array(condition), "c")]),
    )
    if condition is None:
        graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    opsets = [helper.make_opsetid("", 16)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize("condition", [True, False])
async def test_a_known_condition_chooses_its_branch(context, condition):
    model = two_branches(condition)
    assert_same(await run(context, model, {"x": X}), run_onnxruntime(model, {"x": X}))


async def test_a_frozen_condition_chooses_its_branch(context):
    values = {"c": np.array(False)}
    assert_same(await run(context, two_branches(None), {"x": X}, input_values=values), [-X])


async def test_functions_of_the_model_are_inlined(context):
    twice = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 14)],
    )
    graph = helper.make_graph(
        [helper.make_node("Twice", ["x"], ["y"], domain="own")],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
    )
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[twice], ir_version=8)
    assert_same(await run(context, model.SerializeToString(), {"x": X}), [X + X])


async def test_a_broken_model_is_refused(context):
    model = make_model([helper.make_node("Relu", ["x"], ["y"], name="r")], {"z": X}, ["y"], opset=14)
    with pytest.raises(ValueError, match="the model is broken: node 'r' uses 'x', which nothing computes"):
        OnnxModel.load(model).convert(MLGraphBuilder(context))


async def test_the_comparison_can_fail(context):
    (case,) = node("Add", 14, X, X)
    actual = await run(context, case.model(), case.feeds)
    for shifted in (X + X + 1e-3, (X + X).astype(np.float16), X[0] + X[0]):
        with pytest.raises(AssertionError):
            assert_same(actual, [shifted])
