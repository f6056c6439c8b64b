"""Networks of quantized weights are onnxruntime's own operator, as exact as the steps that others have them in."""

import numpy as np
import pytest
from onnx import helper

from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE

pytest.importorskip("onnxruntime")

from spec_tests.on_onnxruntime.both import assert_same, on_both
from spec_tests.on_onnxruntime.quantized_networks import ENDS, Weights, computed, of_one
from spec_tests.support.onnx_programs import make_model

STEPS, BATCH, SIZE, UNITS = 5, 2, 6, 4
STEP = 5e-3
"""Of a state, as much as it may be off where it is rounded to the other side."""


def weights(seed, directions=1, size=SIZE, *, data_type="int8", bias=True, columns=False, states=True):
    """Draw the inputs of a network from one seed."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(data_type)
    shape = (directions, 4 * UNITS) if columns else (directions,)
    arrays = {
        name: rng.integers(limits.min, limits.max, (directions, rows, 4 * UNITS), data_type, endpoint=True)
        for name, rows in (("w", size), ("r", UNITS))
    }
    if bias:
        arrays["b"] = rng.uniform(-1, 1, (directions, 8 * UNITS)).astype(np.float32)
    if states:
        arrays |= {name: rng.uniform(-1, 1, (directions, BATCH, UNITS)).astype(np.float32) for name in "hc"}
    for name in "wr":
        arrays[f"{name}s"] = rng.uniform(0.004, 0.01, shape).astype(np.float32)
        arrays[f"{name}z"] = np.full(directions, 0 if data_type == "int8" else 100, data_type)
    return Weights(UNITS, arrays)


X = np.random.default_rng(5).uniform(-1, 1, (STEPS, BATCH, SIZE)).astype(np.float32)


def of_two():
    first, second = weights(1), weights(2, size=UNITS)
    axes = np.array([1], np.int64)
    nodes = [
        first.node("x", "first "),
        helper.make_node("Squeeze", ["first y", "axes"], ["between"]),
        second.node("between", "second "),
    ]
    arrays = {**first.named("first "), **second.named("second "), "axes": axes}
    ends = ["first yh", *(f"second {end}" for end in ENDS)]
    return make_model(nodes, {"x": X, **arrays}, ends, arrays, opset=15), {"x": X}


LONG = 50 * SIZE
"""Of so many integers a sum may be more than float32 holds."""


def long():
    made = weights(13, size=LONG, data_type="uint8", bias=False)
    made.arrays["w"] = np.where(made.arrays["w"] < 100, np.uint8(0), np.uint8(255))
    made.arrays["wz"] = np.zeros(1, np.uint8)
    made.arrays["ws"] /= 100
    return made


def with_array(seed, name, array):
    made = weights(seed)
    made.arrays[name] = array.reshape(1, -1)
    return made


NETWORKS = {
    "forward": (of_one(weights(1), X), 1),
    "reverse": (of_one(weights(2), X, direction="reverse"), 1),
    "in both directions": (of_one(weights(3, 2), X, direction="bidirectional"), 2),
    "of uint8": (of_one(weights(4, data_type="uint8"), X), 1),
    "without bias or states": (of_one(weights(5, bias=False, states=False), X), 1),
    "of a scale for each column": (of_one(weights(6, columns=True), X), 1),
    "from states that are given": (of_one(weights(7), X, inputs=("h", "c")), 1),
    "of two steps": (of_one(weights(8), X[:2]), 1),
    "two in a row": (of_two(), 2),
    "of rows whose sums are cut": (of_one(long(), X.repeat(LONG // SIZE, 2)), 1),
    "of weights that are given": (of_one(weights(9), X, inputs=("w",)), 0),
    "of a zero point that is given": (of_one(weights(9), X, inputs=("wz",)), 0),
    "of a zero point for each column": (of_one(with_array(11, "rz", np.arange(4 * UNITS, dtype=np.int8)), X), 0),
    "of one step": (of_one(weights(10), X[:1]), 0),
    "with peepholes": (of_one(with_array(12, "p", np.linspace(-1, 1, 3 * UNITS, dtype=np.float32)), X), 0),
}
"""Models, and how many networks are one node."""


def networks(nodes):
    return sum(node.operator == "DynamicQuantizeLSTM" for node in nodes)


@pytest.mark.parametrize("case", NETWORKS)
async def test_a_network_is_one_node_as_exact_as_its_steps(ml, written_nodes, case):
    (model, inputs), count = NETWORKS[case]
    ours = await computed(ml, model, inputs)
    assert networks(written_nodes[0]) == count
    assert_same(ours, await computed(ml, model, inputs, backend="numpy"), atol=STEP)


HOSTILE = {
    "not a number": ("x", np.nan),
    "infinite": ("x", -np.inf),
    "too large": ("x", 3e38),
    "an infinite state": ("h", np.inf),
    "a cell that is not a number": ("c", np.nan),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_numbers_that_its_operator_takes_for_others_are_computed_step_by_step(ml, written_nodes, case):
    name, number = HOSTILE[case]
    model, inputs = of_one(weights(1, bias=False), X, inputs=("h", "c"))
    inputs[name] = inputs[name].copy()
    inputs[name][0, 0, 1] = number
    ours = await computed(ml, model, inputs)
    assert [*map(networks, written_nodes)] == [1, 0]
    with np.errstate(all="ignore"):
        assert_same(ours, await computed(ml, model, inputs, backend="numpy"), atol=STEP)


@pytest.mark.parametrize(("name", "number"), [("b", np.inf), ("h", np.nan), ("c", np.inf), ("h", 1e-44)], ids=str)
async def test_constants_that_its_operator_takes_for_others_are_computed_step_by_step(ml, written_nodes, name, number):
    made = weights(1)
    made.arrays[name] = np.full_like(made.arrays[name], number)
    model, inputs = of_one(made, X)
    ours = await computed(ml, model, inputs)
    assert [*map(networks, written_nodes)] == [1, 0]
    with np.errstate(all="ignore"):
        assert_same(ours, await computed(ml, model, inputs, backend="numpy"), atol=STEP)


@pytest.mark.parametrize("name", ["x", "h"])
async def test_what_is_so_small_that_its_scale_would_be_0_is_computed_step_by_step(ml, written_nodes, name):
    model, inputs = of_one(weights(1), X, inputs=("h", "c"))
    inputs[name] = np.full_like(inputs[name], 1e-44)
    await computed(ml, model, inputs)
    assert [*map(networks, written_nodes)] == [1, 0]


async def test_zeros_are_quantized_by_1(ml, written_nodes):
    model, inputs = of_one(weights(1, bias=False), X, inputs=("h", "c"))
    inputs = {name: np.zeros_like(array) for name, array in inputs.items()}
    ours = await computed(ml, model, inputs)
    assert len(written_nodes) == 1
    assert not any(array.any() for array in ours.values())


GATES = 4 * UNITS


def of_bytes(b, seed, rows, columns=GATES):
    integers = np.random.default_rng(seed).integers(-128, 127, (rows, columns), np.int8, endpoint=True)
    return b.cast(b.constant(integers), "float32")


def product(b, x, matrix, scale):
    integers, own_scale, zero_point = b.append(DYNAMIC_QUANTIZE, x)
    sums = b.matmul(b.sub(b.cast(integers, "float32"), b.cast(zero_point, "float32")), matrix)
    return b.mul(b.cast(b.cast(sums, "int32"), "float32"), b.mul(own_scale, scale))


def by_hand(b, x):
    w, r = of_bytes(b, 1, SIZE), of_bytes(b, 2, UNITS)
    scale = b.constant(np.float32(0.006), data_type="float32")
    bias = b.constant(np.full(GATES, 0.1, np.float32))
    h = c = b.constant(np.full((BATCH, UNITS), 0.25, np.float32))
    states = []
    for gates in b.split(product(b, b.reshape(x, [STEPS * BATCH, SIZE]), w, scale), STEPS, axis=0):
        i, o, f, candidate = b.split(b.add(b.add(gates, product(b, h, r, scale)), bias), 4, axis=1)
        c = b.add(b.mul(b.sigmoid(f), c), b.mul(b.sigmoid(i), b.tanh(candidate)))
        h = b.mul(b.sigmoid(o), b.tanh(c))
        states.append(b.reshape(h, [1, 1, BATCH, UNITS]))
    return b.concat(states, 0)


async def test_steps_that_are_drawn_by_hand_are_computed_as_they_are_drawn(contexts, written_nodes):
    assert_same(*await on_both(contexts, lambda b, x: {"y": by_hand(b, x)}, X), atol=STEP)
    assert networks(written_nodes[0]) == 0
