"""Nodes are written as protocol buffers writes those that ``onnx.helper`` makes."""

import pytest
from onnx import helper

from webnn_py.onnx_export.drafts import Draft, attributes_of

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


def made(draft, attributes):
    name = draft.name or None
    return helper.make_node(
        draft.operator, draft.inputs, draft.outputs, name=name, domain=draft.domain or None, **attributes
    )


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_a_node_is_the_one_that_the_helper_makes(attributes):
    for name, domain in (("", ""), ("a label", "org.example"), ("Würfel 立方体" * 20, "")):
        draft = Draft("Op", ["x", "", "ÿ"], ["z"], attributes_of(attributes | {"absent": None}), name, domain)
        for _ in range(2):  # the second finds what the first has said
            assert draft.encoded(name) == made(draft, attributes).SerializeToString(deterministic=True), (name, domain)


@pytest.mark.parametrize("pair", EQUAL_IN_PYTHON, ids=str)
def test_attributes_that_compare_equal_stay_what_they_are(pair):
    for attributes in pair:
        draft = Draft("Op", ["x"], ["y"], attributes_of(attributes))
        assert draft.encoded("") == made(draft, attributes).SerializeToString(deterministic=True), attributes


def test_names_are_put_in_the_place_of_others_and_the_rest_stays():
    draft = Draft("Op", ["a", "", "b"], ["t1", ""], attributes_of({"axis": 1}))
    placed = draft.placed({"a": "x", "t1": "label"}, "label")
    assert placed.inputs == ["x", "", "b"]
    assert placed.outputs == ["label", ""]
    assert (placed.operator, placed.attributes, placed.name) == ("Op", draft.attributes, "label")
