"""Nodes and tensors that are written from templates and in place are those that ``onnx.helper`` makes."""

import numpy as np
import pytest
from onnx import GraphProto, TensorProto, helper, numpy_helper

from webnn_py.onnx_export.nodes import OnnxNode, attributes_of, write_name, write_tensor

ATTRIBUTES = [
    {},
    {"axis": -1},
    {"strides": [2, 1], "pads": [0, 1, 2, 3], "group": 3},
    {"alpha": 0.25, "beta": 1.0},
    {"mode": "nearest"},
    {"starts": [-(2**63), -1, 2**63 - 1], "text": "Größe"},
]

EQUAL_IN_PYTHON = [
    ({"alpha": 0.0}, {"alpha": -0.0}),
    ({"alpha": 1}, {"alpha": 1.0}),
    ({"axis": 0, "to": 1}, {"to": 1, "axis": 0}),
]


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
]


def written(draft):
    node = GraphProto().node.add()
    draft.write(node, draft.name)
    return node.SerializeToString(deterministic=True)


def made(draft, attributes):
    name = draft.name or None
    node = helper.make_node(
        draft.operator, draft.inputs, draft.outputs, name=name, domain=draft.domain or None, **attributes
    )
    return node.SerializeToString(deterministic=True)


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_a_node_is_the_one_that_the_helper_makes(attributes):
    for name, domain in (("", ""), ("a label", "org.example"), ("Würfel 立方体" * 20, "")):
        draft = OnnxNode("Op", ["x", "", "ÿ"], ["z"], attributes_of(attributes | {"absent": None}), name, domain)
        for _ in range(2):  # the second is of a template that is there
            assert written(draft) == made(draft, attributes), (name, domain)


@pytest.mark.parametrize("pair", EQUAL_IN_PYTHON, ids=str)
def test_attributes_that_compare_equal_keep_their_types(pair):
    for attributes in pair:
        draft = OnnxNode("Op", ["x"], ["y"], attributes_of(attributes))
        assert written(draft) == made(draft, attributes), attributes


def test_names_are_put_in_the_place_of_others_and_the_rest_stays():
    draft = OnnxNode("Op", ["a", "", "b"], ["t1", ""], attributes_of({"axis": 1}))
    placed = draft.placed({"a": "x", "t1": "label"}, "label")
    assert placed.inputs == ["x", "", "b"]
    assert placed.outputs == ["label", ""]
    assert (placed.operator, placed.attributes, placed.name) == ("Op", draft.attributes, "label")


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str} {array.shape}")
def test_a_tensor_is_the_one_that_the_helper_makes(array):
    made = numpy_helper.from_array(array.astype(array.dtype.newbyteorder("=")), "c")
    tensor = TensorProto()
    write_tensor(tensor, "c", made.data_type, array)
    assert tensor.SerializeToString() == made.SerializeToString()


def test_a_tensor_whose_bytes_lie_elsewhere_says_where_and_how_many():
    tensor = TensorProto()
    write_name(tensor, "c", TensorProto.INT32, np.zeros((2, 3), np.int32))
    assert (tensor.name, tensor.data_type, list(tensor.dims)) == ("c", TensorProto.INT32, [2, 3])
    assert tensor.data_location == TensorProto.EXTERNAL
    assert {entry.key: entry.value for entry in tensor.external_data} == {
        "location": "c",
        "offset": "0",
        "length": "24",
    }
    assert not tensor.HasField("raw_data")
