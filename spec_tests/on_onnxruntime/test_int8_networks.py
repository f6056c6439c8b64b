"""Weights of quantized networks are int8, which onnxruntime multiplies faster, where no sum of theirs can saturate."""

import numpy as np
import onnx
import pytest
from onnx import helper

from webnn_py import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Input, Node
from webnn_py.devices.onnxruntime.own_operators.quantized_lstm import QUANTIZED_LSTM
from webnn_py.devices.onnxruntime.passes import int8_networks
from webnn_py.devices.onnxruntime.passes.int8_row_order import paired

pytest.importorskip("onnxruntime")

from spec_tests.on_onnxruntime.both import assert_same
from spec_tests.on_onnxruntime.quantized_networks import ENDS, Weights, computed, of_one
from spec_tests.onnx_models.single_node import make_model, run_onnxruntime

pytestmark = pytest.mark.usefixtures("set_vnni")

MOST = 32_640
"""255 · 128: what two products of bytes may be together, so that 16 bits hold it."""


@pytest.fixture
def set_vnni(monkeypatch):
    """A function that says whether the processor multiplies bytes by itself; it does not, from the start."""
    set_it = lambda has_it: monkeypatch.setattr(int8_networks, "has_vnni", lambda: has_it)  # noqa: E731
    set_it(False)
    return set_it


@pytest.fixture
def pair_by(monkeypatch):
    """A function that sets what puts the rows of matrices in an order in which no two products saturate."""
    return lambda function: monkeypatch.setattr(int8_networks, "paired", function)


def pairs_that_saturate(matrix):
    """The pairs of rows, 2k and 2k + 1, that some bytes make saturate."""
    wide = matrix[: len(matrix) // 2 * 2].astype(np.int64).reshape(-1, 2, matrix.shape[1])
    largest, lowest = (255 * part.sum(1) for part in (wide.clip(0), wide.clip(None, 0)))
    return np.flatnonzero(((largest > MOST) | (lowest < -MOST)).any(1))


def quiet(rng, rows, columns, loud=0):
    """Weights of -64 to 64, but some columns of the first rows, any two of which are too much together."""
    weights = rng.integers(-64, 64, (rows, columns), np.int8, endpoint=True)
    weights[:, ::5] = rng.integers(0, 2, weights[:, ::5].shape)
    weights[:loud, ::5] = rng.choice(np.int8([-128, -127, -90, 100, 127]), len(weights[0, ::5]))
    return weights


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_put_into_an_order_in_which_no_pair_saturates(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(8, 60))
    weights = quiet(rng, rows, int(rng.integers(1, 40)), loud=rows // 2)
    order = paired([weights])
    assert pairs_that_saturate(weights).size
    assert sorted(order) == [*range(rows)]
    assert not pairs_that_saturate(weights[order]).size
    assert rows % 2 == 0 or order[-1] == rows - 1


@pytest.mark.parametrize("seed", range(8))
def test_no_order_is_given_in_which_a_pair_saturates(seed):
    rng = np.random.default_rng(seed)
    weights = (rng.normal(0, 14 + 4 * seed, (32, 64)).round().clip(-128, 127)).astype(np.int8)
    order = paired([weights])
    assert order is None or not pairs_that_saturate(weights[order]).size


@pytest.mark.parametrize(
    ("first", "second", "is_fine"),
    [
        (127, 1, True),
        (127, 2, False),
        (64, 64, True),
        (65, 64, False),
        (-128, 0, True),
        (-128, -1, False),
        (-64, -64, True),
        (-65, -64, False),
        (127, -128, True),
    ],
)
def test_two_rows_may_be_128_together_on_either_side_of_0(first, second, is_fine):
    weights = np.int8([[first], [second]])
    assert (pairs_that_saturate(weights).size == 0) == is_fine
    assert (paired([weights]) is not None) == is_fine


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 19, 33, 64, 130])
@pytest.mark.parametrize("columns", [1, 3, 8, 17, 40])
def test_onnxruntime_adds_such_pairs_exactly(rows, columns):
    rng = np.random.default_rng([rows, columns])
    weights = rng.choice(np.int8([-128, -127, -1, 0, 1, 127]), (rows, columns))
    partners = weights[1::2]
    of = weights[: 2 * len(partners) : 2].astype(np.int16)
    # As much as may be beside each: 128 or -128 together, or any of the other sign.
    rest = np.where(of > 0, 128 - of, -128 - of)
    partners[...] = np.where(rng.random(of.shape) < 0.5, rest, np.where(of > 0, -128, 127)).clip(-128, 127)
    assert not pairs_that_saturate(weights).size
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    for a in (1, 2, 5, 9):
        for values in ([255], [0, 255], [*range(256)]):
            given = {"a": rng.choice(np.uint8(values), (a, rows)), "za": np.array(rng.integers(256), np.uint8)}
            constants = {"b": weights, "zb": np.array(0, np.int8)}
            made = make_model([node], {**given, **constants}, ["y"], constants, opset=15)
            (sums,) = run_onnxruntime(made, given)
            np.testing.assert_array_equal(sums, (given["a"].astype(int) - int(given["za"])) @ weights.astype(int))


STEPS, BATCH, SIZE, UNITS = 6, 2, 22, 20


def weights(seed, directions=1, size=SIZE, units=UNITS, *, loud=(6, 4), columns=False, zero_point=None):
    """Draw the inputs of a network; this many first rows of its weights are too large."""
    rng = np.random.default_rng(seed)
    gates, shape = 4 * units, (directions, 4 * units) if columns else (directions,)
    arrays = {
        name: np.stack([quiet(rng, rows, gates, count) for _ in range(directions)])
        for name, rows, count in (("w", size, loud[0]), ("r", units, loud[1]))
    }
    arrays["b"] = rng.uniform(-1, 1, (directions, 8 * units)).astype(np.float32)
    for name in "wr":
        arrays[f"{name}s"] = rng.uniform(0.002, 0.006, shape).astype(np.float32)
        arrays[f"{name}z"] = np.zeros(directions, np.int8)
        if zero_point is not None:
            arrays[name] = (arrays[name].astype(np.int16) + zero_point).clip(0, 255).astype(np.uint8)
            arrays[f"{name}z"] = np.full(directions, zero_point, np.uint8)
    return Weights(units, arrays)


def with_states(made, seed):
    rng, shape = np.random.default_rng(seed), (len(made.arrays["w"]), BATCH, made.units)
    made.arrays |= {name: rng.uniform(-1, 1, shape).astype(np.float32) for name in ("h", "c")}
    return made


def of_random(made, *, size=SIZE, **options):
    return of_one(made, np.random.default_rng(5).uniform(-1, 1, (STEPS, BATCH, size)).astype(np.float32), **options)


def of_two(first, second, between="first y", direction="bidirectional"):
    """A model of two networks, the second of which reads the states of the first one, or the same input."""
    x = np.random.default_rng(6).uniform(-1, 1, (STEPS, BATCH, SIZE)).astype(np.float32)
    shape = np.int64([STEPS, BATCH, -1])
    nodes = [
        first.node("x", prefix="first ", direction=direction),
        helper.make_node("Transpose", [between], ["in a row"], perm=[0, 2, 1, 3] if between != "x" else [0, 1, 2]),
        helper.make_node("Reshape", ["in a row", "shape"], ["joined"]),
        second.node("joined", prefix="second ", direction=direction),
    ]
    arrays = {**first.named("first "), **second.named("second "), "shape": shape}
    ends = [f"{name} {end}" for name in ("first", "second") for end in ENDS]
    return make_model(nodes, {"x": x, **arrays}, ends, arrays, opset=15), {"x": x}


def of_two_orders():
    """Two directions, in which the first element of the input has no partner in common."""
    made = weights(3, 2, size=4, loud=(0, 2))
    made.arrays["w"][..., 0] = [127, 63, 63, 0], [127, 63, 0, 63]
    return made


def far_from_zero_point():
    """Weights of uint8 one of which, less its zero point, is none of int8."""
    made = weights(8, loud=(0, 0), zero_point=70)
    made.arrays["w"][0, 3, 5] = 70 + 128
    return made


def of_one_matrix():
    """Two networks of the same weights of the input, of which the units have another order."""
    first, second = weights(11, units=64, loud=(4, 4)), weights(12, units=64, loud=(4, 10))
    second.arrays["w"] = first.arrays["w"]
    return of_two(first, second, "x", "forward")


INT8, UINT8 = [onnx.TensorProto.INT8], [onnx.TensorProto.UINT8]

NETWORKS = {
    "as they are": (of_random(weights(1, loud=(0, 0))), INT8),
    "of rows of the input in another order": (of_random(weights(1, loud=(6, 0))), INT8),
    "of units in another order": (of_random(weights(1, loud=(0, 6))), INT8),
    "of both": (of_random(weights(1)), INT8),
    "of many rows in another order": (of_random(weights(1, size=90, units=48, loud=(44, 24)), size=90), INT8),
    "reverse": (of_random(weights(2), direction="reverse"), INT8),
    "in both directions": (of_random(weights(3, 2), direction="bidirectional"), INT8 * 2),
    "of an input in two orders": (of_random(of_two_orders(), direction="bidirectional", size=4), INT8 * 2),
    "of odd sizes": (of_random(weights(4, size=13, units=11), size=13), INT8),
    "of a scale for each column": (of_random(weights(5, columns=True)), INT8),
    "from states that are given": (of_random(with_states(weights(6), 1), inputs=("h", "c")), INT8),
    "from other states": (of_random(with_states(weights(6), 1)), INT8),
    "from a bias that is given": (of_random(weights(7), inputs=("b",)), INT8),
    "of uint8 about 128": (of_random(weights(8, zero_point=128)), INT8),
    "of uint8 about 70": (of_random(weights(8, loud=(0, 0), zero_point=70)), INT8),
    "of uint8 about 0": (of_random(weights(8, loud=(6, 4), zero_point=0)), INT8),
    "one behind the other": (of_two(weights(9, 2), weights(10, 2, size=2 * UNITS)), INT8 * 4),
    "of the same weights in other orders": (of_one_matrix(), INT8 * 2),
    "of uint8 beyond int8": (of_random(far_from_zero_point()), UINT8),
    "of rows of the input that are too loud": (of_random(weights(1, loud=(SIZE, 0))), UINT8),
    "of units that are too loud": (of_random(weights(1, loud=(0, UNITS))), UINT8),
}
"""Models, and the data types of the weights of their networks."""


def types_of(models):
    """Return the data types of the weights of networks, in the order in which models are written, and forget them."""
    found = []
    for graph in models:
        types = {item.name: item.data_type for item in graph.initializer}
        nodes = [node for node in graph.node if node.op_type == "DynamicQuantizeLSTM"]
        found += [kind for node in nodes for kind in dict.fromkeys(types[name] for name in node.input[1:3])]
    models.clear()
    return found


def given_up(matrices):
    assert all(matrix.dtype == np.int8 for matrix in matrices)


SPREADS = {
    "as they are": lambda x: x,
    "all 255": np.ones_like,
    "0 or 255": lambda x: (x > 0).astype(np.float32),
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("case", NETWORKS)
async def test_networks_of_int8_give_what_those_of_uint8_give(ml, models, pair_by, case, spread):
    (model, inputs), types = NETWORKS[case]
    inputs = {name: array if name == "b" else SPREADS[spread](array) for name, array in inputs.items()}
    ours = await computed(ml, model, inputs)
    assert types_of(models) == types
    pair_by(given_up)
    expected = await computed(ml, model, inputs)
    assert set(types_of(models)) == {onnx.TensorProto.UINT8}
    assert_same(ours, expected)


ORDERS = {
    "backwards": lambda count: np.arange(count)[::-1],
    "by turns": lambda count: np.roll(np.arange(count), 3),
    "in three pieces": lambda count: np.concatenate(np.split(np.arange(count), [2, 7])[::-1]),
    "in no order": np.random.default_rng(2).permutation,
}


async def test_with_vnni_weights_stay_as_they_are(ml, models, set_vnni):
    set_vnni(True)
    (model, inputs), _ = NETWORKS["of units that are too loud"]
    await computed(ml, model, inputs)
    assert types_of(models) == INT8


@pytest.mark.parametrize("order", ORDERS)
async def test_results_are_the_same_in_any_order(ml, pair_by, order):
    first, second = weights(9, 2, loud=(0, 0), columns=True), weights(10, 2, size=2 * UNITS, loud=(0, 0))
    model, inputs = of_two(with_states(first, 1), with_states(second, 2))
    expected = await computed(ml, model, inputs)
    pair_by(lambda matrices: ORDERS[order](len(matrices[0])))
    ours = await computed(ml, model, inputs)
    assert_same(ours, expected)


@pytest.mark.parametrize(("ends", "expected"), [([1100], [1100]), ([900, 1100], [514, 1028, 1100])])
def test_rows_in_another_order_are_cut_where_sums_of_any_are_exact(ends, expected):
    def constant(array):
        return Constant(MLOperandDescriptor(array.dtype.name, array.shape), array)

    rng = np.random.default_rng(1)
    operands = {name: constant(np.zeros((1, 1, 2), np.float32)) for name in ("hidden", "cell")}
    operands["x"] = Input(MLOperandDescriptor("float32", (2, 1, 1100)), "x")
    for name, rows, loud in (("w", 1100, 2), ("r", 2, 0)):
        operands[name] = constant(quiet(rng, rows, 8, loud)[None])
        operands[f"{name}_scale"] = constant(np.ones(1, np.float32))
        operands[f"{name}_zero_point"] = constant(np.zeros(1, np.int8))
    outputs = tuple(MLOperandDescriptor("float32", shape) for shape in ((2, 1, 1, 2), (1, 1, 2), (1, 1, 2)))
    options = {"w_ends": ends, "r_ends": [2], "is_backward": False}
    network = Node(QUANTIZED_LSTM, operands, options, outputs)
    graph = Graph.reaching({"y": network.results[0]})
    (node,) = [
        node
        for node in int8_networks.use_signed_weights(graph, lambda value: value.data).nodes
        if node.operator is QUANTIZED_LSTM
    ]
    assert node.operand("w").data_type == "int8"
    assert [*node.options["w_ends"]] == expected
