"""Models are written as onnxruntime's optimizations would leave them, with the same bits as the drawn graph."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_written, computed

pytest.importorskip("onnxruntime")

from webnn_py.devices.rewriting.passes import PassContext, PassManager, passes_left_out
from webnn_py.onnx_export.node_passes import EQUAL_NODES, WrittenNodes
from webnn_py.onnx_export.nodes import OnnxNode

RNG = np.random.default_rng(23)
X = RNG.normal(size=(2, 3, 8)).astype(np.float32)


def spiked():
    x = X.copy()
    x[0, 0, 0], x[0, 1, 2], x[1, 2, 7] = np.inf, np.nan, -np.inf
    return x


def weights(b, *shape):
    return b.constant(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32))


def gru(b, x):
    """Of biases that are halves of one constant."""
    bias, recurrent_bias = b.split(weights(b, 1, 24), 2, axis=1)
    (last,) = b.gru(
        b.transpose(x, permutation=[1, 0, 2]),
        weights(b, 1, 12, 8),
        weights(b, 1, 12, 4),
        3,
        4,
        bias=bias,
        recurrent_bias=recurrent_bias,
    )
    return last


def lstm(b, x):
    """Of one bias of two."""
    return b.lstm(
        b.transpose(x, permutation=[1, 0, 2]),
        weights(b, 1, 16, 8),
        weights(b, 1, 16, 4),
        3,
        4,
        recurrent_bias=weights(b, 1, 16),
    )[0]


CASES = {
    "a network's biases": (gru, {"GRU": 1}),
    "a network's bias": (lstm, {"Concat": 0, "LSTM": 1}),
    "the greatest along one axis and another": (
        lambda b, x: b.reduce_max(b.reduce_max(b.exp(x), axes=[2]), axes=[0]),
        {"ReduceMax": 1, "GlobalMaxPool": 0},
    ),
    "the greatest along the last axes, one after the other": (
        lambda b, x: b.reduce_max(b.reduce_max(b.reshape(x, [1, 6, 2, 4]), axes=[3]), axes=[2]),
        {"GlobalMaxPool": 1, "ReduceMax": 0, "Reshape": 2},
    ),
    "the least along two axes that stay": (
        lambda b, x: b.reduce_min(b.reduce_min(x, axes=[1], keep_dimensions=True), axes=[2], keep_dimensions=True),
        {"ReduceMin": 1},
    ),
    "the greatest along an axis that stays, and one that does not": (
        lambda b, x: b.reduce_min(b.reduce_min(x, axes=[1], keep_dimensions=True), axes=[2]),
        {"ReduceMin": 2},
    ),
    "the greatest of the least": (
        lambda b, x: b.reduce_max(b.reduce_min(x, axes=[1]), axes=[0]),
        {"ReduceMin": 1, "ReduceMax": 1},
    ),
    "what is computed twice": (lambda b, x: b.mul(b.exp(b.neg(x)), b.exp(b.neg(x))), {"Exp": 1, "Neg": 1}),
    "what differs in an option": (
        lambda b, x: b.mul(b.leaky_relu(x, alpha=0.1), b.leaky_relu(x, alpha=0.2)),
        {"LeakyRelu": 2},
    ),
    "the same": (lambda b, x: b.exp(b.identity(b.neg(x))), {"Identity": 0}),
}


@pytest.mark.parametrize("case", CASES)
async def test_fewer_nodes_have_the_bits_of_what_was_drawn(contexts, written, case):
    draw, counts = CASES[case]
    fewer = [await computed(contexts[0], draw, X)]
    assert_written(written, **counts)
    fewer.append(await computed(contexts[0], draw, spiked()))
    for got, x in zip(fewer, (X, spiked()), strict=True):
        with passes_left_out("stacked-extremes", "equal-nodes", "unused-nodes"):
            expected = await computed(contexts[0], draw, x)
        np.testing.assert_array_equal(got, expected)
        if x is X or "network" not in case:  # onnxruntime's networks lose NaN
            np.testing.assert_allclose(got, await computed(contexts[1], draw, x), rtol=2e-5, atol=2e-6)


# --- nodes ---------------------------------------------------------------------------------------------------------


def merged(nodes, outputs):
    passes = PassManager(EQUAL_NODES)
    return passes.run(WrittenNodes(nodes, outputs, {}), PassContext())[0].nodes


def test_a_reshape_of_a_reshape_reads_what_that_one_read():
    nodes = [
        OnnxNode("Reshape", ["x", "a"], ["t"]),
        OnnxNode("Reshape", ["t", "b"], ["u"]),
        OnnxNode("Reshape", ["u", "c"], ["y"]),
    ]
    assert [list(node.inputs) for node in merged(nodes, ["y"])] == [["x", "a"], ["x", "b"], ["x", "c"]]


def test_an_output_is_made_by_a_node_of_its_own():
    nodes = [OnnxNode("Neg", ["x"], ["y"]), OnnxNode("Neg", ["x"], ["z"]), OnnxNode("Identity", ["y"], ["w"])]
    assert merged(nodes, ["y", "z", "w"]) == nodes


def test_what_an_output_has_already_is_read_there():
    nodes = [OnnxNode("Neg", ["x"], ["y"]), OnnxNode("Neg", ["x"], ["t"]), OnnxNode("Exp", ["t"], ["z"])]
    assert [(node.operator, list(node.inputs)) for node in merged(nodes, ["y", "z"])] == [
        ("Neg", ["x"]),
        ("Exp", ["y"]),
    ]


@pytest.mark.parametrize(
    ("attributes", "others"),
    [((("alpha", 0.0),), (("alpha", -0.0),)), ((("axis", 1),), (("axis", 1.0),)), ((), (("axis", 0),))],
    ids=["signs of zero", "types", "none"],
)
def test_nodes_that_differ_in_an_attribute_stay_two(attributes, others):
    nodes = [
        OnnxNode("Some", ["x"], ["t"], attributes),
        OnnxNode("Some", ["x"], ["u"], others),
        OnnxNode("Add", ["t", "u"], ["y"]),
    ]
    assert merged(nodes, ["y"]) == nodes


def test_nodes_of_other_outputs_stay_two():
    nodes = [
        OnnxNode("GRU", ["x"], ["", "t"]),
        OnnxNode("GRU", ["x"], ["u", "v"]),
        OnnxNode("Sum", ["t", "u", "v"], ["y"]),
    ]
    assert merged(nodes, ["y"]) == nodes
