"""Networks of quantized weights, drawn step by step, are onnxruntime's own operator, as exact as the steps are."""

import numpy as np
import pytest
from onnx import helper

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device import dynamic_quantization
from webnn_py.onnx_models import OnnxModel

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
        names = ["w", "r", "b", "", "h", "c", "", "ws", "wz", "rs", "rz"]
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
    "of weights that are given": (of_one(Weights(9), inputs=("w",)), 0),
    "of one step": (of_one(Weights(10), X[:1]), 0),
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
async def test_a_network_is_one_node_as_exact_as_its_steps(ml, drafts, case):
    (model, inputs), count = NETWORKS[case]
    ours = await computed(ml, model, inputs)
    assert networks(drafts[0]) == count
    check(ours, await computed(ml, model, inputs, backend="numpy"))


HOSTILE = {
    "not a number": ("x", np.nan),
    "infinite": ("x", -np.inf),
    "too large": ("x", 3e38),
    "an infinite state": ("h", np.inf),
    "a cell that is not a number": ("c", np.nan),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_numbers_that_its_operator_takes_for_others_are_computed_step_by_step(ml, drafts, case):
    name, number = HOSTILE[case]
    model, inputs = of_one(Weights(1, bias=False), inputs=("h", "c"))
    inputs[name] = inputs[name].copy()
    inputs[name][0, 0, 1] = number
    ours = await computed(ml, model, inputs)
    assert [*map(networks, drafts)] == [1, 0]
    with np.errstate(all="ignore"):
        check(ours, await computed(ml, model, inputs, backend="numpy"))


@pytest.mark.parametrize(("name", "number"), [("b", np.inf), ("h", np.nan), ("c", np.inf), ("h", 1e-44)], ids=str)
async def test_constants_that_its_operator_takes_for_others_are_computed_step_by_step(ml, drafts, name, number):
    weights = Weights(1)
    weights.arrays[name] = np.full_like(weights.arrays[name], number)
    model, inputs = of_one(weights)
    ours = await computed(ml, model, inputs)
    assert [*map(networks, drafts)] == [1, 0]
    with np.errstate(all="ignore"):
        check(ours, await computed(ml, model, inputs, backend="numpy"))


@pytest.mark.parametrize("name", ["x", "h"])
async def test_what_is_so_small_that_its_scale_would_be_0_is_computed_step_by_step(ml, drafts, name):
    model, inputs = of_one(Weights(1), inputs=("h", "c"))
    inputs[name] = np.full_like(inputs[name], 1e-44)
    await computed(ml, model, inputs)
    assert [*map(networks, drafts)] == [1, 0]


async def test_zeros_are_quantized_by_1(ml, drafts):
    model, inputs = of_one(Weights(1, bias=False), inputs=("h", "c"))
    inputs = {name: np.zeros_like(array) for name, array in inputs.items()}
    ours = await computed(ml, model, inputs)
    assert len(drafts) == 1
    assert not any(array.any() for array in ours.values())


async def test_a_network_whose_states_others_read_stays_as_it_is_drawn(ml, drafts):
    def second_state(builder, outputs):
        operands = {value: operand for operand, value in builder._values.items()}
        joined = builder._values[outputs["y"]].node.inputs[0].node
        return {"between": operands[joined.inputs[1]]}

    model, inputs = of_one(Weights(1))
    ours = await computed(ml, model, inputs, also=second_state)
    assert networks(drafts[0]) == 0
    check(ours, await computed(ml, model, inputs, backend="numpy", also=second_state))
    np.testing.assert_array_equal(ours["between"].ravel(), ours["y"][1].ravel())


GATES = 4 * UNITS


def of_bytes(b, seed, rows, columns=GATES):
    integers = np.random.default_rng(seed).integers(-128, 127, (rows, columns), np.int8, endpoint=True)
    return b.cast(b.constant(integers), "float32")


def product(b, x, matrix, scale, *, quantized_by=None):
    integers, own_scale, zero_point = dynamic_quantization.decomposition(b, x)
    if quantized_by is not None:
        shape = [1] * x.rank
        integers = b.quantize_linear(x, b.reshape(quantized_by, shape), b.reshape(zero_point, shape))
    sums = b.matmul(b.sub(b.cast(integers, "float32"), b.cast(zero_point, "float32")), matrix)
    return b.mul(b.cast(b.cast(sums, "int32"), "float32"), b.mul(own_scale, scale))


def drawn(b, x, *, rows=BATCH, hidden=(BATCH, UNITS), cell=(BATCH, UNITS), bias=(GATES,), scale=(), columns=GATES):
    """Two steps, as the importer draws them but for these shapes."""

    def numbers(*shape):
        return b.constant(np.random.default_rng(len(shape)).uniform(0.004, 0.01, shape).astype(np.float32))

    w, r = of_bytes(b, 1, SIZE), of_bytes(b, 2, UNITS, columns)
    w_scale, r_scale, summand = numbers(), numbers(*scale), numbers(*bias)
    of_input = product(b, b.reshape(b.slice(x, [0, 0, 0], [2, rows, SIZE]), [2 * rows, SIZE]), w, w_scale)
    h, c, states = numbers(*hidden), numbers(*cell), []
    for gates in b.split(of_input, 2, axis=0):
        i, o, f, candidate = b.split(b.add(b.add(gates, product(b, h, r, r_scale)), summand), 4, axis=1)
        c = b.add(b.mul(b.sigmoid(f), c), b.mul(b.sigmoid(i), b.tanh(candidate)))
        h = b.mul(b.sigmoid(o), b.tanh(c))
        states.append(b.reshape(h, [1, 1, *h.shape]))
    return b.concat(states, 0)


@pytest.mark.parametrize(
    ("shapes", "count"),
    [
        ({}, 1),
        ({"bias": (1, GATES), "scale": (1, GATES)}, 1),
        ({"hidden": (1, UNITS)}, 0),
        ({"cell": (1, UNITS)}, 0),
        ({"cell": ()}, 0),
        ({"bias": (BATCH, GATES)}, 0),
        ({"bias": ()}, 0),
        ({"scale": (BATCH, 1)}, 0),
        ({"rows": 1}, 0),
        ({"columns": 1}, 0),
    ],
    ids=str,
)
async def test_what_is_broadcast_within_a_step_stays_as_it_is_drawn(ml, drafts, shapes, count):
    results = []
    for backend in ("onnxruntime", "numpy"):
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=X.shape)
        results.append(await compute(context, builder, {"x": X}, {"y": drawn(builder, x, **shapes)}))
    assert networks(drafts[0]) == count
    check(*results)


def odd_one(b, x, odd):
    """Five steps, of which the fourth is drawn in another way."""
    w, r, other = of_bytes(b, 1, SIZE), of_bytes(b, 2, UNITS), of_bytes(b, 3, UNITS)
    scale = b.constant(np.float32(0.006), data_type="float32")
    biases = [b.constant(np.full(GATES, value, np.float32)) for value in (0.1, 0.2)]
    h = c = b.constant(np.full((BATCH, UNITS), 0.25, np.float32))
    states = []
    for step, gates in enumerate(b.split(product(b, b.reshape(x, [STEPS * BATCH, SIZE]), w, scale), STEPS, axis=0)):
        is_odd = step == 3
        quantized_by = scale if is_odd and odd == "scale" else None
        of_state = product(b, h, other if is_odd and odd == "weights" else r, scale, quantized_by=quantized_by)
        summed = b.add(b.add(gates, of_state), biases[is_odd and odd == "bias"])
        i, o, f, candidate = b.split(summed, 4, axis=1)
        if is_odd and odd == "gates":
            i, f = f, i
        c = b.add(b.mul(b.sigmoid(f), c), b.mul(b.sigmoid(i), b.tanh(c if is_odd and odd == "cell" else candidate)))
        h = b.mul(b.sigmoid(o), b.tanh(c))
        states.append(b.reshape(h, [1, 1, BATCH, UNITS]))
    return b.concat(states, 0)


@pytest.mark.parametrize("odd", [None, "weights", "bias", "gates", "cell", "scale"], ids=str)
async def test_steps_of_which_one_is_another_stay_as_they_are_drawn(ml, drafts, odd):
    results = []
    for backend in ("onnxruntime", "numpy"):
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=X.shape)
        results.append(await compute(context, builder, {"x": X}, {"y": odd_one(builder, x, odd)}))
    assert networks(drafts[0]) == (odd is None)
    check(*results)
