import attrs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from spec_tests.onnx_models.single_node import assert_same, make_model, parsed, run, run_onnxruntime
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import InvalidModelError, OnnxModel, TensorInfo, UnsupportedModelError

X = np.array([[1, -2, 3]], np.float32)


def relu_model(shape="batch, 3"):
    return parsed(f"(float[{shape}] y) {{ y = Relu (x) }}", inputs=f"float[{shape}] x", opset=14)


SUM = parsed("(float[1,3] y) { y = Add (a, b) }", inputs="float[1,3] a, float[1,3] b")


def test_a_model_says_its_inputs_and_outputs():
    model = OnnxModel.load(relu_model("batch, 3, ?"))
    assert dict(model.inputs) == {"x": TensorInfo("float32", ("batch", 3, "?"))}
    assert dict(model.outputs) == {"y": TensorInfo("float32", ("batch", 3, "?"))}
    assert repr(model) == "<OnnxModel (x: float32 ['batch', 3, '?']) -> (y: float32 ['batch', 3, '?'])>"


OVERRIDABLE = parsed("(float[1,3] y) { y = Add (x, w) }", inputs="float[1,3] x, float[3] w = {1, -2, 3}")


def test_inputs_with_a_value_of_their_own_are_overridable():
    model = OnnxModel.load(OVERRIDABLE)
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
async def test_an_overridable_input_has_the_caller_s_value(context, given, names, w):
    builder = MLGraphBuilder(context)
    OnnxModel.load(OVERRIDABLE).convert(builder, **given)
    assert builder.input_names == set(names)
    feeds = {"x": X, "w": w}
    assert_same(await run(context, OVERRIDABLE, feeds, **given), run_onnxruntime(OVERRIDABLE, feeds))


async def test_a_wrong_name_is_refused_with_the_inputs_but_not_all_weights(context):
    text = r"input_values names \['v'\]; the model's inputs are \['x'\], and 1 with values of their own"
    with pytest.raises(ValueError, match=text):
        OnnxModel.load(OVERRIDABLE).convert(MLGraphBuilder(context), input_values={"v": X})


async def test_all_conversions_of_a_model_know_its_own_values(context):
    model = OnnxModel.load(OVERRIDABLE)
    model.convert(MLGraphBuilder(context), input_values={"w": X[0] * 7})
    builder = MLGraphBuilder(context)
    (y,) = model.convert(builder).values()
    *_, w = builder.value_of(y).node.inputs
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
        "graph_name": "g",
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
    proto = onnx.load_model_from_string(relu_model("1, 1, 3"))
    for dimension, size in zip(proto.graph.input[0].type.tensor_type.shape.dim, (-1, 0, 3), strict=True):
        dimension.dim_value = size
    assert OnnxModel.load(proto.SerializeToString()).inputs["x"].shape == ("?", "?", 3)


def test_models_are_made_by_load_only():
    with pytest.raises(TypeError, match=r"use OnnxModel\.load"):
        OnnxModel()


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x02", b"GIF89a", b"plain text, nothing else", bytes(64)])
def test_files_that_are_no_models_are_refused(data, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(InvalidModelError, match=r"model\.onnx .*ONNX model"):
        OnnxModel.load(path)
    with pytest.raises(ValueError, match=f"the {len(data)} bytes given .*ONNX model"):
        OnnxModel.load(data)


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
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(SUM).convert(builder, input_values={"b": X}))
    assert list(graph.input_descriptors) == ["a"]
    graph.destroy()


async def test_a_frozen_input_is_copied(context):
    b, builder = X.copy(), MLGraphBuilder(context)
    outputs = OnnxModel.load(SUM).convert(builder, input_values={"b": b})
    b[...] = 0
    assert_same([(await compute(context, builder, {"a": X}, outputs))["y"]], [X + X])


async def test_outputs_that_are_inputs_or_known_are_computed(context):
    text = """(float[1,3] same, int64[2] shape, bool[1,3] truths, float[1,3] w) <float[1,3] w = {1, -2, 3}>
      { same = Identity (x)  shape = Shape (x)  truths = Cast <to = 9> (w) }"""
    model = parsed(text, inputs="float[1,3] x")
    assert_same(await run(context, model, {"x": X}), [X, np.array([1, 3]), X != 0, X])


async def test_an_output_may_have_two_names(context):
    model = parsed("(float[1,3] a, float[1,3] b) { a = Relu (x)  b = Identity (a) }", inputs="float[1,3] x")
    assert_same(await run(context, model, {"x": X}), [np.maximum(X, 0)] * 2)


async def test_of_the_outputs_some_may_be_wanted(context):
    text = "(float[1,3] a, float[1,3] b, float[1,3] c) { a = Relu (x)  b = RandomNormalLike (x)  c = Add (z, a) }"
    model = OnnxModel.load(parsed(text, inputs="float[1,3] x, float[1,3] z"))
    builder = MLGraphBuilder(context)
    assert list(model.convert(builder, outputs=["a"])) == ["a"]
    assert builder.input_names == {"x"}
    assert list(await model.convert_in_steps(MLGraphBuilder(context), outputs=["c", "a", "c"])) == ["c", "a"]
    with pytest.raises(UnsupportedModelError, match="RandomNormalLike"):
        model.convert(MLGraphBuilder(context), outputs=["b"])
    for names, told in ((["a", "x"], r"\['x'\]"), ([], "none")):
        with pytest.raises(ValueError, match=rf"outputs names {told}; the model's outputs are \['a', 'b', 'c'\]"):
            model.convert(MLGraphBuilder(context), outputs=names)


async def test_a_broken_model_is_refused(context):
    model = make_model([helper.make_node("Relu", ["x"], ["y"], name="r")], {"z": X}, ["y"], opset=14)
    with pytest.raises(ValueError, match="the model is broken: node 'r' uses 'x', which nothing computes"):
        OnnxModel.load(model).convert(MLGraphBuilder(context))
