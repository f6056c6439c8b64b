"""Messages are written as protocol buffers writes what ``onnx.helper`` makes, byte for byte."""

import numpy as np
import pytest
from onnx import ModelProto, OperatorSetIdProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from webnn_py.onnx_export import wire

NAMES = ["c", "", "a/label with spaces", "Würfel 立方体", "n" * 127, "n" * 128, "ñ" * 20_000]
INTEGERS = [0, 1, 127, 128, 300, 2**14, 2**31 - 1, 2**63 - 1, -1, -(2**31), -(2**63)]
ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6, dtype=np.int64).reshape(2, 3).T,
    np.array([-(2**63), -1, 2**63 - 1]),
    np.array([np.nan, -np.inf, -0.0, 1e-45], np.float32),
    np.array(7, np.uint8),
    np.array([True, False]),
    np.arange(3, dtype=">i4"),
    np.arange(5, dtype=np.float16)[::-2],
    np.zeros((0, 2), np.float32),
    np.arange(70_000, dtype=np.int32),
]


def as_text(array):
    return f"{array.dtype.str} {array.shape}"


def in_order(array):
    return array.astype(array.dtype.newbyteorder("="))


@pytest.mark.parametrize("value", INTEGERS)
def test_an_integer_is_the_one_that_is_read(value):
    field = OperatorSetIdProto.VERSION_FIELD_NUMBER
    written = wire.number(field, value)
    assert written == OperatorSetIdProto(version=value).SerializeToString()
    assert OperatorSetIdProto.FromString(written).version == value


def test_a_field_may_have_any_number():
    for field in (1, 15, 16, 2047, 2048):
        message = OperatorSetIdProto.FromString(wire.number(field, 5) + wire.text(field + 1, "of another version"))
        assert message.ByteSize() == len(wire.number(field, 5)) + len(wire.text(field + 1, "of another version"))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name[:20]}, {len(name)}")
def test_text_is_the_one_that_is_read(name):
    written = wire.text(OperatorSetIdProto.DOMAIN_FIELD_NUMBER, name)
    assert written == OperatorSetIdProto(domain=name).SerializeToString()
    assert OperatorSetIdProto.FromString(written).domain == name


def test_text_that_is_none_is_refused():
    with pytest.raises(UnicodeEncodeError):
        wire.text(1, "\ud800")


@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name[:20]}, {len(name)}")
@pytest.mark.parametrize("array", ARRAYS, ids=as_text)
def test_a_tensor_is_the_one_that_the_helper_makes(array, name):
    made = numpy_helper.from_array(in_order(array), name)
    made.name = name  # the helper leaves an empty one out
    written = b"".join(wire.tensor(name, made.data_type, array))
    assert written == made.SerializeToString()
    np.testing.assert_array_equal(numpy_helper.to_array(TensorProto.FromString(written)), array)


@pytest.mark.parametrize("array", ARRAYS, ids=as_text)
def test_a_tensor_is_described_without_its_elements(array):
    made = numpy_helper.from_array(in_order(array), "c")
    described = TensorProto.FromString(wire.described("c", made.data_type, array.shape))
    assert not described.HasField("raw_data")
    described.raw_data = wire.elements(array)
    assert described == made


def test_a_tensor_whose_bytes_lie_elsewhere_says_where_and_how_many():
    written = b"".join(wire.tensor_beside("c", TensorProto.INT32, np.zeros((2, 3), np.int32)))
    tensor = TensorProto.FromString(written)
    assert written == tensor.SerializeToString()
    assert (tensor.name, tensor.data_type, list(tensor.dims)) == ("c", TensorProto.INT32, [2, 3])
    assert tensor.data_location == TensorProto.EXTERNAL
    assert {entry.key: entry.value for entry in tensor.external_data} == {
        "location": "c",
        "offset": "0",
        "length": "24",
    }
    assert not tensor.HasField("raw_data")


@pytest.mark.parametrize(
    "shape", [(), (1,), (0, 3), (2, 2**31 - 1), (1,) * 200], ids=lambda shape: f"{len(shape)} axes"
)
@pytest.mark.parametrize("name", NAMES[:4])
def test_an_input_is_the_one_that_the_helper_makes(name, shape):
    made = helper.make_tensor_value_info(name, TensorProto.INT64, shape)
    assert wire.value_info(name, TensorProto.INT64, shape) == made.SerializeToString()
    assert ValueInfoProto.FromString(wire.value_info(name, TensorProto.INT64, shape)) == made


def test_a_model_is_the_one_that_the_helper_makes():
    nodes = [helper.make_node("Add", ["x", "c"], ["s"], "sum"), helper.make_node("Relu", ["s"], ["y"])]
    tensors = [numpy_helper.from_array(np.arange(400, dtype=np.float32), "c")]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, [400])] for name in "xy")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, tensors)
    made = helper.make_model(
        graph, opset_imports=opsets, ir_version=10, producer_name="webnn_py", producer_version="1.2"
    )
    messages = ([item.SerializeToString() for item in items] for items in (nodes, inputs, outputs))
    pieces = [wire.tensor("c", TensorProto.FLOAT, np.arange(400, dtype=np.float32))]
    of_graph = wire.graph("graph", *messages, pieces)
    written = wire.model(10, ("webnn_py", "1.2"), of_graph, [wire.opset("", 20), wire.opset("com.microsoft", 1)])
    assert written == made.SerializeToString()
    checker.check_model(ModelProto.FromString(written))
