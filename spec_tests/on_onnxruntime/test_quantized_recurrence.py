"""Networks of quantized weights are onnxruntime's own operator, as exact as the steps that others have them in."""

import numpy as np
import pytest
from onnx import helper

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel
from webnn_py.operators.composites import dynamically_quantized

pytest.importorskip("onnxruntime")

from spec_tests.onnx_models.single_node import make_model

STEPS, BATCH, SIZE, UNITS = 5, 2, 6, 4
STEP = 5e-3
"""Of a state, as much as it may be off where it is rounded to the other side."""


class Weights:
    """The inputs of a network by name, drawn from one seed."""

    def __init__(self, seed, directions=1, size=SIZE, *, data_type="int8", bias=True, columns=False, states=True):
        rng = np.random.default_rng(seed)
        limits = np.iinfo(data_type)
        shape = (directions, 4 * UNITS) if columns else (directions,)
        self.arrays = {
            name: rng.integers(limits.min, limits.max, (directions, rows, 4 * UNITS), data_type, endpoint=True)
            for name, rows in (("w", size), ("r", UNITS))
        }
        if bias:
            self.arrays["b"] = rng.uniform(-1, 1, (directions, 8 * UNITS)).astype(np.float32)
        if states:
            self.arrays |= {name: rng.uniform(-1, 1, (directions, BATCH, UNITS)).astype(np.float32) for name in "hc"}
        for name in "wr":
            self.arrays[f"{name}s"] = rng.uniform(0.004, 0.01, shape).astype(np.float32)
            self.arrays[f"{name}z"] = np.full(directions, 0 if data_type == "int8" else 100, data_type)

    def node(self, x, ends, prefix="", direction="forward"):
        names = ["w", "r", "b", "", "h", "c", "p", "ws", "wz", "rs", "rz"]
        given = [prefix + name if name in self.arrays else "" for name in names]
        options = {"hidden_size": UNITS, "direction": direction, "domain": "com.microsoft"}
        return helper.make_node("DynamicQuantizeLSTM", [x, *given], [prefix + end for end in ends], **options)

    def named(self, prefix=""):
        return {prefix + name: array for name, array in self.arrays.items()}


X = np.random.default_rng(5).uniform(-1, 1, (STEPS, BATCH, SIZE)).astype(np.float32)
ENDS = "y", "yh", "yc"


def of_one(weights, x=X, direction="forward", inputs=()):
    """A model of one network, some of whose weights are inputs, and what these are given."""
    arrays = {"x": x, **weights.named()}
    initializers = {name: array for name, array in weights.named().items() if name not in inputs}
    made = make_model([weights.node("x", ENDS, direction=direction)], arrays, [*ENDS], initializers, opset=15)
    return made, {name: arrays[name] for name in ("x", *inputs)}


def of_two():
    first, second = Weights(1), Weights(2, size=UNITS)
    axes = np.array([1], np.int64)
    nodes = [
        first.node("x", ENDS, "first "),
        helper.make_node("Squeeze", ["first y", "axes"], ["between"]),
        second.node("between", ENDS, "second "),
    ]
    arrays = {**first.named("first "), **second.named("second "), "axes": axes}
    ends = ["first yh", *(f"second {end}" for end in ENDS)]
    return make_model(nodes, {"x": X, **arrays}, ends, arrays, opset=15), {"x": X}


LONG = 50 * SIZE
"""Of so many integers a sum may be more than float32 holds."""


def long():
    weights = Weights(13, size=LONG, data_type="uint8", bias=False)
    weights.arrays["w"] = np.where(weights.arrays["w"] < 100, np.uint8(0), np.uint8(255))
    weights.arrays["wz"] = np.zeros(1, np.uint8)
    weights.arrays["ws"] /= 100
    return weights


def with_zero_points(weights):
    weights.arrays["rz"] = np.arange(4 * UNITS, dtype=np.int8).reshape(1, -1)
    return weights


def with_peepholes(weights):
    weights.arrays["p"] = np.linspace(-1, 1, 3 * UNITS, dtype=np.float32).reshape(1, -1)
    return weights


NETWORKS = {
    "forward": (of_one(Weights(1)), 1),
    "reverse": (of_one(Weights(2), direction="reverse"), 1),
    "in both directions": (of_one(Weights(3, 2), direction="bidirectional"), 2),
    "of uint8": (of_one(Weights(4, data_type="uint8")), 1),
    "without bias or states": (of_one(Weights(5, bias=False, states=False)), 1),
    "of a scale for each column": (of_one(Weights(6, columns=True)), 1),
    "from states that are given": (of_one(Weights(7), inputs=("h", "c")), 1),
    "of two steps": (of_one(Weights(8), X[:2]), 1),
    "two in a row": (of_two(), 2),
    "of rows whose sums are cut": (of_one(long(), X.repeat(LONG // SIZE, 2)), 1),
    "of weights that are given": (of_one(Weights(9), inputs=("w",)), 0),
    "of a zero point that is given": (of_one(Weights(9), inputs=("wz",)), 0),
    "of a zero point for each column": (of_one(with_zero_points(Weights(11))), 0),
    "of one step": (of_one(Weights(10), X[:1]), 0),
    "with peepholes": (of_one(with_peepholes(Weights(12))), 0),
}
"""Models, and how many networks are one node."""


def networks(nodes):
    return sum(node.operator == "DynamicQuantizeLSTM" for node in nodes)


async def computed(ml, model, inputs, *, backend="onnxruntime", also=None):
    context = await ml.create_context(backend=backend, **({"threads": 1} if backend == "onnxruntime" else {}))
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(model).convert(builder)
    if also is not None:
        outputs |= also(builder, outputs)
    return await compute(context, builder, inputs, outputs)


def check(ours, expected):
    assert ours.keys() == expected.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=STEP, err_msg=name)


@pytest.mark.parametrize("case", NETWORKS)
async def test_a_network_is_one_node_as_exact_as_its_steps(ml, written_nodes, case):
    (model, inputs), count = NETWORKS[case]
    ours = await computed(ml, model, inputs)
    assert networks(written_nodes[0]) == count
    check(ours, await computed(ml, model, inputs, backend="numpy"))


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
    model, inputs = of_one(Weights(1, bias=False), inputs=("h", "c"))
    inputs[name] = inputs[name].copy()
    inputs[name][0, 0, 1] = number
    ours = await computed(ml, model, inputs)
    assert [*map(networks, written_nodes)] == [1, 0]
    with np.errstate(all="ignore"):
        check(ours, await computed(ml, model, inputs, backend="numpy"))


@pytest.mark.parametrize(("name", "number"), [("b", np.inf), ("h", np.nan), ("c", np.inf), ("h", 1e-44)], ids=str)
async def test_constants_that_its_operator_takes_for_others_are_computed_step_by_step(ml, written_nodes, name, number):
    weights = Weights(1)
    weights.arrays[name] = np.full_like(weights.arrays[name], number)
    model, inputs = of_one(weights)
    ours = await computed(ml, model, inputs)
    assert [*map(networks, written_nodes)] == [1, 0]
    with np.errstate(all="ignore"):
        check(ours, await computed(ml, model, inputs, backend="numpy"))


@pytest.mark.parametrize("name", ["x", "h"])
async def test_what_is_so_small_that_its_scale_would_be_0_is_computed_step_by_step(ml, written_nodes, name):
    model, inputs = of_one(Weights(1), inputs=("h", "c"))
    inputs[name] = np.full_like(inputs[name], 1e-44)
    await computed(ml, model, inputs)
    assert [*map(networks, written_nodes)] == [1, 0]


async def test_zeros_are_quantized_by_1(ml, written_nodes):
    model, inputs = of_one(Weights(1, bias=False), inputs=("h", "c"))
    inputs = {name: np.zeros_like(array) for name, array in inputs.items()}
    ours = await computed(ml, model, inputs)
    assert len(written_nodes) == 1
    assert not any(array.any() for array in ours.values())


GATES = 4 * UNITS


def of_bytes(b, seed, rows, columns=GATES):
    integers = np.random.default_rng(seed).integers(-128, 127, (rows, columns), np.int8, endpoint=True)
    return b.cast(b.constant(integers), "float32")


def product(b, x, matrix, scale):
    integers, own_scale, zero_point = dynamically_quantized(b, x)
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


async def test_steps_that_are_drawn_by_hand_are_computed_as_they_are_drawn(ml, written_nodes):
    results = []
    for backend in ("onnxruntime", "numpy"):
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=X.shape)
        results.append(await compute(context, builder, {"x": X}, {"y": by_hand(builder, x)}))
    assert networks(written_nodes[0]) == 0
    check(*results)
