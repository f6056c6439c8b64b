"""What is written from templates and in place is what ``onnx.helper`` makes."""

import numpy as np
import pytest
from onnx import GraphProto, TensorProto, helper, numpy_helper

from webnn_py.onnx_export.drafts import Draft, attributes_of, write_name, write_tensor

ATTRIBUTES = [
    {},
    {"axis": -1},
    {"strides": [2, 1], "pads": [0, 1, 2, 3], "group": 3},
    {"alpha": 0.25, "beta": 1.0},
    {"mode": "nearest"},
]

EQUAL_IN_PYTHON = [
    ({"alpha": 0.0}, {"alpha": -0.0}),
    ({"alpha": 1}, {"alpha": 1.0}),
    ({"axis": 0, "to": 1}, {"to": 1, "axis": 0}),
]


def written(draft):
    node = GraphProto().node.add()
    draft.write(node, draft.name)
    return node


def made(draft, attributes):
    name = draft.name or None
    return helper.make_node(
        draft.operator, draft.inputs, draft.outputs, name=name, domain=draft.domain or None, **attributes
    )


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_a_node_is_the_one_that_the_helper_makes(attributes):
    for name, domain in (("", ""), ("a label", "org.example")):
        draft = Draft("Op", ["x", "", "y"], ["z"], attributes_of(attributes | {"absent": None}), name, domain)
        for _ in range(2):  # the second is of a template that is there
            assert written(draft) == made(draft, attributes), (name, domain)


@pytest.mark.parametrize("pair", EQUAL_IN_PYTHON, ids=str)
def test_attributes_that_compare_equal_stay_what_they_are(pair):
    for attributes in pair:
        draft = Draft("Op", ["x"], ["y"], attributes_of(attributes))
        assert written(draft).SerializeToString() == made(draft, attributes).SerializeToString(), attributes


def test_names_are_put_in_the_place_of_others_and_the_rest_stays():
    draft = Draft("Op", ["a", "", "b"], ["t1", ""], attributes_of({"axis": 1}))
    placed = draft.placed({"a": "x", "t1": "label"}, "label")
    assert placed.inputs == ["x", "", "b"]
    assert placed.outputs == ["label", ""]
    assert (placed.operator, placed.attributes, placed.name) == ("Op", draft.attributes, "label")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.int64).reshape(2, 3).T,
        np.array(7, np.uint8),
        np.arange(3, dtype=">i4"),
        np.arange(5, dtype=np.float16)[::-2],
        np.zeros((0, 2), np.float32),
    ],
    ids=lambda array: f"{array.dtype.str} {array.shape}",
)
def test_a_tensor_is_the_one_that_the_helper_makes(array):
    tensor, number = TensorProto(), helper.np_dtype_to_tensor_dtype(array.dtype.newbyteorder("="))
    write_tensor(tensor, "c", number, array)
    assert tensor == numpy_helper.from_array(array.astype(array.dtype.newbyteorder("=")), "c")


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
