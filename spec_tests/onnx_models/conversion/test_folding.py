import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from spec_tests.onnx_models.single_node import assert_same, int64s, make_model, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.core.graph import Constant
from webnn_py.devices.arena import split_constant
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import ModelLimits, OnnxModel, UnsupportedModelError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def make(*nodes, outputs=("y",), opset=15, **initializers):
    return make_model(
        [
            helper.make_node(operator, inputs.split(), results.split(), **attributes)
            for operator, inputs, results, attributes in nodes
        ],
        {"x": X, **initializers},
        outputs,
        initializers,
        opset=opset,
    )


def drawn(context, model, **options):
    """The graph that the model becomes."""
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(model).convert(builder, **options)
    return drawing_of("a test", outputs)


SHAPE_CHAIN = make(
    ("Shape", "x", "s", {}),
    ("Cast", "s", "s32", {"to": 6}),
    ("Slice", "s32 zero one zero", "batch", {}),
    ("Gather", "s32 two", "last", {"axis": 0}),
    ("Unsqueeze", "last zero", "last1", {}),
    ("Concat", "batch minus1 last1", "wanted32", {"axis": 0}),
    ("Cast", "wanted32", "wanted", {"to": 7}),
    ("Transpose", "x", "t", {"perm": [0, 2, 1]}),
    ("Reshape", "t wanted", "y", {}),
    zero=int64s(0),
    one=int64s(1),
    two=np.array(2),
    minus1=np.array([-1], np.int32),
)


async def test_of_a_chain_of_shapes_nothing_is_left(context):
    graph = drawn(context, SHAPE_CHAIN)
    assert [node.operator.name for node in graph.nodes] == ["transpose", "reshape"]
    assert not any(isinstance(value, Constant) for node in graph.nodes for value in node.inputs)
    assert_same(await run(context, SHAPE_CHAIN, {"x": X}), run_onnxruntime(SHAPE_CHAIN, {"x": X}))


@pytest.mark.parametrize(
    "nodes",
    [
        [("Constant", "", "c", {"value": numpy_helper.from_array(X[0, 0])})],
        [("Constant", "", "c", {"value_floats": [1.0, 2.0, 3.0, 4.0]})],
        [("Size", "x", "n", {}), ("Cast", "n", "c", {"to": 1})],
        [("ConstantOfShape", "four", "c", {"value": numpy_helper.from_array(X[0, 0, 3:])})],
        [("Range", "zero24 step24 step6", "r", {}), ("Cast", "r", "c", {"to": 1})],
        [("Mul", "w w", "m", {}), ("Sqrt", "m", "c", {})],
        [("ReduceMax", "w", "c", {})],
        [("Where", "t w minus", "c", {})],
        [("Softmax", "w", "c", {})],
        [("MatMul", "w eye", "c", {})],
    ],
    ids=lambda nodes: "+".join(node[0] for node in nodes),
)
async def test_values_of_known_inputs_are_known(context, nodes):
    model = make(
        *nodes,
        ("Add", "x c", "y", {}),
        four=int64s(4),
        zero24=np.array(0),
        step24=np.array(24),
        step6=np.array(6),
        w=X[0, 0] + 1,
        minus=-X[0, 0],
        t=np.array([True, False, True, False]),
        eye=np.eye(4, dtype=np.float32),
    )
    _, live = split_constant(drawn(context, model))  # the device computes the others once, before any run
    assert [node.operator.name for node in live] == ["add"]
    assert_same(await run(context, model, {"x": X}), run_onnxruntime(model, {"x": X}))


async def test_the_weights_of_a_spectrogram_s_bands_are_known(context):
    model = make(
        ("MelWeightMatrix", "bands length rate low high", "m", {}),
        ("ReduceMax", "m", "c", {"axes": [0], "keepdims": 0}),
        ("Add", "x c", "y", {}),
        opset=17,
        bands=np.array(4),
        length=np.array(64),
        rate=np.array(8000),
        low=np.array(60, np.float32),
        high=np.array(3000, np.float32),
    )
    assert [node.operator.name for node in drawn(context, model).nodes] == ["add"]
    assert_same(await run(context, model, {"x": X}), run_onnxruntime(model, {"x": X}))


async def test_each_initializer_becomes_one_constant(context):
    model = make(
        ("Add", "x w", "a", {}), ("Mul", "a w", "b", {}), ("Sub", "w b", "c", {}), ("Identity", "c", "y", {}), w=X[0, 0]
    )
    graph = drawn(context, model)
    assert len({value for node in graph.nodes for value in node.inputs if isinstance(value, Constant)}) == 1


async def test_types_that_webnn_lacks_are_allowed_where_they_are_known(context):
    model = make(("Cast", "w", "c", {"to": 1}), ("Add", "x c", "y", {}), w=np.array(2.0))
    assert [node.operator.name for node in drawn(context, model).nodes] == ["add"]


async def test_operators_have_the_name_of_their_node(context):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Gelu", ["a"], ["y"], approximate="tanh"),
    ]
    labels = [node.label for node in drawn(context, make_model(nodes, {"x": X}, ["y"], opset=20)).nodes]
    assert labels[0] == "first"
    assert set(labels[1:]) == {"Gelu of y"}


@pytest.mark.parametrize("opset", [11, 13])
async def test_known_values_are_computed_by_the_opset_s_version(context, opset):
    by_attribute = {"axes": [0]} if opset < 13 else {}
    axes = "" if opset < 13 else " zero"
    nodes = (
        ("Unsqueeze", f"w{axes}", "u", by_attribute),
        ("Squeeze", f"u{axes}", "s", by_attribute),
        ("Unsqueeze", f"s{axes}", "v", by_attribute),
        ("ReduceSum", f"v{axes}", "c", {**by_attribute, "keepdims": 0}),
        ("Add", "x c", "y", {}),
    )
    model = make(*nodes, opset=opset, w=X[0, 0], zero=int64s(0))
    assert [node.operator.name for node in drawn(context, model).nodes] == ["add"]
    assert_same(await run(context, model, {"x": X}), run_onnxruntime(model, {"x": X}))


async def test_a_known_value_that_cannot_be_computed_is_refused_with_the_reason(context):
    model = make(("Reshape", "w five", "c", {}), ("Add", "x c", "y", {}), w=X, five=int64s(5))
    with pytest.raises(UnsupportedModelError, match=r"\(Reshape, opset 15\): input shape is \[5\]; it must be"):
        drawn(context, model)


@pytest.mark.parametrize("operator", ["DepthToSpace", "SpaceToDepth"])
async def test_a_refusal_of_known_values_is_in_the_rule_s_words_and_not_in_numpy_s(context, operator):
    model = make((operator, "w", "d", {"blocksize": 0}), ("Add", "x d", "y", {}), opset=13, w=X[np.newaxis])
    with pytest.raises(UnsupportedModelError, match="attribute blocksize is 0; it must be at least 1"):
        drawn(context, model)


QUANTIZED_SHAPE = (("DequantizeLinear", "q s", "f", {}), ("Cast", "f", "wanted", {"to": 7}))
KNOWN = {"q": np.array([8, 12], np.int8), "s": np.array(0.5, np.float32)}


@pytest.mark.parametrize("opset", [13, 19])
async def test_a_shape_may_come_from_operators_that_are_drawn(context, opset):
    model = make(*QUANTIZED_SHAPE, ("Reshape", "x wanted", "y", {}), opset=opset, **KNOWN)
    assert_same(await run(context, model, {"x": X}), [X.reshape(4, 6)])


async def test_nodes_that_the_reference_cannot_compute_are_drawn(context):
    model = make(("GlobalLpPool", "w", "m", {"p": 2}), ("Add", "x m", "y", {}), w=X)
    assert [node.operator.name for node in drawn(context, model).nodes] == ["reduce_l2", "add"]
    with pytest.raises(UnsupportedModelError, match=r"'Unique of u'.*it cannot be computed while building: axis 5 is"):
        drawn(context, make(("Unique", "w", "u", {"axis": 5}), ("Add", "x u", "y", {}), w=X))


async def test_nodes_that_cannot_be_drawn_are_computed(context):
    weights = np.array([1, 2, -4, 0.5], np.float32)
    eighths = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT8E4M3FN, [4], weights)
    proto = onnx.load_model_from_string(make(("DequantizeLinear", "w s", "f", {}), ("Add", "x f", "y", {}), opset=21))
    proto.graph.initializer.extend([eighths, numpy_helper.from_array(KNOWN["s"], "s")])
    assert_same(await run(context, proto.SerializeToString(), {"x": X}), [X + weights / 2])


async def test_values_of_drawn_operators_are_within_the_limits(context):
    model = make(*QUANTIZED_SHAPE, ("Reshape", "x wanted", "y", {}), opset=13, **KNOWN)
    with pytest.raises(
        UnsupportedModelError, match=r"node 'Cast of wanted'|node 'Reshape of y'.*limits.bytes allows 3"
    ):
        OnnxModel.load(model, limits=ModelLimits(bytes=3)).convert(MLGraphBuilder(context))
