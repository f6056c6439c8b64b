"""Nodes in any order."""

import itertools

import numpy as np
import pytest
from onnx import helper

from spec_tests.onnx_models.single_node import assert_same, make_model, parsed, run, run_onnxruntime
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import InvalidModelError, OnnxModel
from webnn_py.onnx_models.reading.node_order import live

X = np.array([[1, -2, 3]], np.float32)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), name=f"n{outputs}", **attributes)


NODES = [node("Neg", "x", "a"), node("Exp", "a", "b"), node("Add", "a b", "c"), node("Sub", "c x", "y")]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
async def test_nodes_may_stand_in_any_order(context, order):
    data = make_model([NODES[place] for place in order], {"x": X}, ["y"], opset=14)
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}))


def test_an_order_that_works_is_kept_and_another_is_changed_little():
    names = [node.name for node in live(NODES, ["y", "b"]).nodes]
    assert names == ["na", "nb", "nc", "ny"]
    late = [NODES[1], NODES[0], *NODES[2:], node("Neg", "x", "z")]
    assert [node.name for node in live(late, ["y", "z"]).nodes] == ["na", "nb", "nc", "ny", "nz"]


async def test_nodes_of_inner_graphs_may_too(context):
    text = """(float[1,3] y) <int64 two = {2}, bool yes = {1}> {
      y = Loop (two, yes, later) <body = b (int64 i, bool c, float[1,3] a) => (bool c, float[1,3] n)
      {
        n = Add (a, inner)
        inner = Mul (later, outside)
      }>
      outside = Exp (later)
      later = Neg (x)
    }"""
    a, outside = -X, np.exp(-X)
    data = parsed(text, inputs="float[1,3] x")
    assert_same(await run(context, data, {"x": X}), [a + 2 * (a * outside)])


async def test_nodes_of_functions_may_too(context):
    body = "F (x) => (r) { r = Exp (m)  m = Neg (x) }"
    data = parsed("(float[1,3] y) { y = own.F (x) }", body, inputs="float[1,3] x")
    assert_same(await run(context, data, {"x": X}), [np.exp(-X)])


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([node("Neg", "y", "y")], "node 'ny' needs its own output"),
        ([node("Neg", "y", "a"), node("Exp", "a", "y")], "nodes 'na', 'ny' need each other's outputs in a cycle"),
        (
            [node("Neg", "x", "y"), node("Add", "x c", "a"), node("Exp", "a", "b"), node("Exp", "b", "c")],
            "nodes 'na', 'nc', 'nb' need each other's outputs in a cycle",
        ),
        (
            [node("Neg", f"v{index}", f"v{index - 1}") for index in range(1, 9)] + [node("Add", "x v0", "v8 ")],
            "nodes 'nv0', 'nv1', 'nv2', 'nv3', 'nv4' and 4 more need each other's outputs in a cycle",
        ),
    ],
)
def test_a_cycle_is_refused_by_its_nodes_names(nodes, text):
    output = nodes[0].output[0]
    with pytest.raises(InvalidModelError, match=text):
        OnnxModel.load(make_model(nodes, {"x": X}, [output], opset=14))


async def test_a_cycle_in_an_inner_graph_is_refused(context):
    text = """(float[1,3] y) <bool yes = {1}> {
      y = If (yes) <then_branch = t () => (float[1,3] p) { q = Neg (p)  p = Exp (q) },
        else_branch = e () => (float[1,3] r) { r = Neg (x) }>
    }"""
    model = OnnxModel.load(parsed(text, inputs="float[1,3] x"))
    with pytest.raises(InvalidModelError, match="need each other's outputs in a cycle"):
        model.convert(MLGraphBuilder(context))


async def test_of_equal_names_the_inner_graph_s_own_hangs_on_nothing_outside(context):
    text = """(float[1,3] y) <bool yes = {1}> {
      m = If (yes) <then_branch = t () => (float[1,3] p) { y = Neg (x)  p = Exp (y) },
        else_branch = e () => (float[1,3] r) { r = Neg (x) }>
      y = Abs (m)
    }"""
    assert_same(await run(context, parsed(text, inputs="float[1,3] x"), {"x": X}), [np.exp(-X)])
