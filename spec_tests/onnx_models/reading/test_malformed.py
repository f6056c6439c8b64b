"""Malformed models: each fault by itself, and the error that names it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spec_tests.onnx_models.single_node import int64s, make_model, run
from spec_tests.support.cells import cells
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import InvalidModelError, OnnxModel, UnsupportedModelError

X = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)


def tensor(**fields):
    return TensorProto(**{"name": "w", "dims": [2], "data_type": TensorProto.FLOAT, **fields})


def model_of(*nodes, inputs=None, outputs=("y",), opset=18, **initializers):
    """A model, to be spoilt."""
    given = {"x": X, **initializers} if inputs is None else {**inputs, **initializers}
    return onnx.load_model_from_string(make_model(nodes, given, outputs, initializers, opset=opset))


def with_tensor(item):
    proto = model_of(helper.make_node("Relu", ["x"], ["y"]))
    proto.graph.initializer.append(item)
    return proto


@cells(
    ("item", "text"),
    [
        (tensor(raw_data=bytes(7)), "tensor 'w' has 7 bytes of data; its shape [2] needs 8"),
        (tensor(float_data=[1]), "tensor 'w' has 1 elements of data; its shape [2] needs 2"),
        (tensor(int32_data=[1, 2]), "tensor 'w' has 0 elements of data; its shape [2] needs 2"),
        (tensor(dims=[-1], raw_data=bytes(8)), "tensor 'w' has the shape [-1]; it must be at least 0 everywhere"),
        (tensor(dims=[1] * 65, raw_data=bytes(4)), "tensor 'w' has 65 dimensions; at most 64 can be"),
        (tensor(dims=[2**62, 2**62], raw_data=b""), "tensor 'w' has 0 bytes of data; its shape "),
        (tensor(dims=[2**40], data_type=TensorProto.INT4, raw_data=b"a"), "tensor 'w' has 1 bytes of data; its shape "),
        (tensor(dims=[2**40], data_type=TensorProto.INT4, int32_data=[1]), "tensor 'w' has 1 elements of data; its sh"),
        (tensor(data_type=0, raw_data=b""), "tensor 'w' has the element type UNDEFINED, which does not exist"),
        (tensor(data_type=99, raw_data=b""), "tensor 'w' has the element type number 99, which does not exist"),
        (tensor(data_type=TensorProto.STRING, raw_data=bytes(8)), "tensor 'w' has strings as raw data; they must"),
        (tensor(data_type=TensorProto.COMPLEX64, float_data=[1, 2]), "has 2 elements of data; its shape [2] needs 4"),
        (tensor(raw_data=bytes(8), segment=TensorProto.Segment(begin=0, end=1)), "'w' is one segment of several"),
    ],
)
def test_a_tensor_s_data_are_as_long_as_its_shape(item, text):
    with pytest.raises(InvalidModelError) as caught:
        OnnxModel.load(with_tensor(item).SerializeToString())
    assert text in str(caught.value)


@cells("element_type", [number for name, number in TensorProto.DataType.items() if number])
@cells("count", [0, 1, 2, 3, 5])
def test_tensors_of_each_type_are_taken(element_type, count):
    if element_type == TensorProto.STRING:
        OnnxModel.load(with_tensor(tensor(dims=[count], data_type=8, string_data=[b"a"] * count)).SerializeToString())
        return
    array = np.zeros(count, helper.tensor_dtype_to_np_dtype(element_type))
    item = numpy_helper.from_array(array, "w")
    assert item.data_type == element_type
    OnnxModel.load(with_tensor(item).SerializeToString())
    in_field = helper.make_tensor("w", element_type, [count], [0] * count)
    OnnxModel.load(with_tensor(in_field).SerializeToString())


def spoilt(change, *nodes, **options):
    proto = model_of(*(nodes or [helper.make_node("Relu", ["x"], ["y"])]), **options)
    change(proto)
    return proto


LOADING = [
    (
        lambda m: m.opset_import.add(domain="a", version=-1),
        "the version of the operator set 'a' is -1; it must be from",
    ),
    (lambda m: m.opset_import.add(domain="a", version=2**40), "the version of the operator set 'a' is 1099511627776"),
    (lambda m: m.graph.input.add(name="x"), "2 of the model's inputs have the name 'x'"),
    (lambda m: m.graph.output.add(name="y"), "2 of the model's outputs have the name 'y'"),
    (lambda m: m.graph.input.add(), "one of the model's inputs has no name"),
    (lambda m: m.graph.output.add(), "one of the model's outputs has no name"),
]


@cells(("change", "text"), LOADING, ids=[text for _, text in LOADING])
def test_a_malformed_model_is_not_loaded(change, text):
    with pytest.raises(InvalidModelError) as caught:
        OnnxModel.load(spoilt(change).SerializeToString())
    assert text in str(caught.value)


def test_a_model_nested_too_deep_for_its_format_is_refused():
    inner = b""
    for _ in range(200):  # a graph (field 6) of an attribute (5) of a node (1) of a graph
        inner = _field(1, _field(5, _field(6, inner)))
    with pytest.raises(InvalidModelError, match="cannot be read as an ONNX model"):
        OnnxModel.load(_field(7, inner))


def _field(number, content):
    """A field of a message, as protobuf writes it."""
    length, digits = len(content), []
    while True:
        length, digit = divmod(length, 128)
        digits.append(digit | (128 if length else 0))
        if not length:
            return bytes([number << 3 | 2, *digits]) + content


BRANCH = helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "g", [], [onnx.ValueInfoProto(name="b")])
TWO = helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "g", [], [onnx.ValueInfoProto(name="b")] * 2)
TRUE = np.array(True)


def choice(*outputs, **branches):
    return helper.make_node("If", ["c"], list(outputs), name="n", **branches)


def node(operator, *inputs, **attributes):
    return helper.make_node(operator, list(inputs), ["y"], name="n", **attributes)


CONVERTING = [
    (model_of(choice("y"), c=TRUE), "it has 0 graphs called then_branch; it must have one"),
    (model_of(choice("y", then_branch=TWO), c=TRUE), "its then_branch has 0 inputs and 2 outputs; it must have none"),
    (model_of(choice("y", then_branch=1), c=TRUE), "it has 0 graphs called then_branch; it must have one"),
    (model_of(choice("y", then_branch=BRANCH), c=np.zeros(0, bool)), "its condition has the shape [0]; it must be a"),
    (model_of(node("Relu", "x", axis="one")), "attribute axis is 'one'; the operator has no such attribute"),
    (model_of(node("Softmax", "x", axis="one")), "attribute axis is of the type STRING; it must be of the type INT"),
    (model_of(node("Conv", "x", "x", pads=1)), "attribute pads is of the type INT; it must be of the type INTS"),
    (model_of(node("Cast", "w", to=1.0), w=X), "attribute to is of the type FLOAT; it must be of the type INT"),
    (
        model_of(node("Gelu", "x", approximate=b"\xff"), opset=20),
        "attribute approximate is b'\\xff', which is not UTF-8",
    ),
    *(
        (
            model_of(node("MaxPool", "x", kernel_shape=[1, 1], strides=[0, 1], auto_pad=auto_pad)),
            "strides, dilations and kernel shape is [0, 1]",
        )
        for auto_pad in ("NOTSET", "SAME_LOWER")
    ),
    (model_of(node("Max")), "it has no inputs; it must have at least 1"),
    (model_of(node("Mean")), "it has no inputs; it must have at least 1"),
    (model_of(node("Split", "x", num_outputs=0)), "attribute num_outputs is 0; it must be 1, as many as the outputs"),
    (model_of(node("Split", "x", "s"), s=int64s(1, 2)), "the length of split is 2; it must be 1, as many as the"),
    (model_of(node("Trilu", "x", "k"), k=np.array(np.nan)), "input k is float64 []; it must be a single integer"),
    (model_of(node("CumSum", "x", "k"), k=np.array(np.inf)), "input axis is float64 []; it must be a single integer"),
    *(
        (
            model_of(node(operator, "k", "x", "x", hidden_size=1), inputs={"k": X[0, 0, 0, 0], "x": X}),
            "the rank of input X is 0",
        )
        for operator in ("LSTM", "GRU")
    ),
    (
        model_of(node("Resize", "x", "", "k"), k=np.full(4, np.nan, np.float32)),
        "scales is [nan, nan, nan, nan]; it must",
    ),
    (
        model_of(node("Resize", "x", "", "", "k"), k=int64s(1, 1, -1, 1)),
        "sizes is [1, 1, -1, 1]; it must be at least",
    ),
    (model_of(node("ConvTranspose", "x", "x", output_padding=[1])), "attribute output_padding is [1]; it must be of l"),
    (
        model_of(node("ReduceSum", "x", "k"), k=int64s(*range(10**5))),
        "the number of axes is 100000; it must be at mo",
    ),
    (model_of(node("Pow", "x", "k"), k=np.array(1j)), "the data type of input Y is complex128; it must be a type of"),
    (model_of(node("Pad", "x", "k"), k=np.full(8, 2**64 - 1, np.uint64)), "node 'n' (Pad, opset 18): "),
    (model_of(node("Add", "x", "s"), s=np.array(["a"], object)), "constant(): the array's data type is object"),
    (model_of(node("Identity", "s"), s=np.array(["a"], object)), "one of its inputs is of strings, which are not supp"),
    (
        model_of(node("LSTM", "k", "k", "k", "", "c", hidden_size=1), inputs={"k": X[0]}, c=np.array(1j)),
        "input sequence_lens is complex128 []; it must be a list of integers",
    ),
    (model_of(node("Constant")), "it has 0 attributes; it must have one, its value"),
    (model_of(node("Constant", value_string="a")), "its attribute value_string is not supported"),
    (model_of(node("Range", "k", "k", "k"), k=np.array(0)), "inputs start, limit and delta is [0, 0, 0]; it must be"),
    (model_of(node("Tile", "k", "k"), k=int64s(-1)), "input repeats is [-1]; it must be at least 0 everywhere"),
    (model_of(node("Gather", "x", "k"), k=np.array(1.5)), "the data type of a value is float64; it must be"),
]


@pytest.mark.parametrize(("proto", "text"), CONVERTING, ids=[text[:70] for _, text in CONVERTING])
async def test_a_refusal_names_the_node(context, proto, text):
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(proto.SerializeToString()).convert(MLGraphBuilder(context))
    assert "node 'n' (" in str(caught.value)
    assert text in str(caught.value)


async def test_a_name_that_is_computed_twice_is_refused(context):
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="first"), helper.make_node("Neg", ["x"], ["y"], name="second")]
    text = "node 'second' computes 'y', which something before it gives already"
    with pytest.raises(InvalidModelError, match=text):
        OnnxModel.load(model_of(*nodes).SerializeToString()).convert(MLGraphBuilder(context))


@pytest.mark.parametrize("shape", [[2**31, 2], [1] * 9, [2**40]])
async def test_an_input_that_cannot_be_is_refused(context, shape):
    proto = model_of(helper.make_node("Relu", ["x"], ["y"]))
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    with pytest.raises(UnsupportedModelError, match="input 'x': input"):
        OnnxModel.load(proto.SerializeToString()).convert(MLGraphBuilder(context))


async def test_a_rule_that_forgets_something_still_gives_the_documented_error(context, monkeypatch):
    from webnn_py.onnx_models.conversion import node_conversion  # noqa: PLC0415 - beside what it changes

    def forgetful(*_):
        return dict[str, int]()["forgotten"]

    monkeypatch.setattr(node_conversion, "call", forgetful)
    text = r"node 'Relu of y' \(Relu, opset 18\) cannot be understood: KeyError: 'forgotten'"
    with pytest.raises(InvalidModelError, match=text) as caught:
        OnnxModel.load(model_of(helper.make_node("Relu", ["x"], ["y"])).SerializeToString()).convert(
            MLGraphBuilder(context)
        )
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("opset", [10, 13])
async def test_known_weights_of_any_opset_are_dequantized(context, opset):
    weights, scale, zero = np.arange(4, dtype=np.uint8), np.float32(0.5), np.uint8(1)
    x = np.ones(4, np.float32)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]), helper.make_node("Add", ["x", "d"], ["y"])]
    known = {"w": weights, "s": np.asarray(scale), "z": np.asarray(zero)}
    data = make_model(nodes, {"x": x, **known}, ["y"], known, opset=opset)
    (y,) = await run(context, data, {"x": x})
    np.testing.assert_array_equal(y, 1 + (weights.astype(np.float32) - 1) / 2)
