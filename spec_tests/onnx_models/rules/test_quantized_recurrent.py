"""Recurrent networks of quantized weights: onnxruntime quantizes the same states, so that results are as close."""

import attrs
import numpy as np
import pytest

from spec_tests.onnx_models.single_node import check, each, node, seven_bits
from spec_tests.support.backends import BACKENDS
from webnn_py import MLGraphBuilder
from webnn_py.graph import Constant
from webnn_py.onnx_models import OnnxModel
from webnn_py.script.builder import drawing_of

rng = np.random.default_rng(12)
STEPS, BATCH, SIZE, HIDDEN = 4, 2, 3, 5
OPERATOR = "com.microsoft.DynamicQuantizeLSTM"
OUTPUTS = {"hidden_size": HIDDEN, "outputs": 3, "wanted": (0, 1, 2)}


pytestmark = pytest.mark.sampled(5)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    return request.param


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def weights(directions, data_type, *, per_column=False):
    limits = np.iinfo(data_type)
    shape = [directions, 4 * HIDDEN] if per_column else [directions]
    for rows in (SIZE, HIDDEN):
        made = rng.integers(limits.min, limits.max, [directions, rows, 4 * HIDDEN], data_type, endpoint=True)
        yield made if data_type == "uint8" else seven_bits(made)
    for _ in range(2):
        yield rng.uniform(0.004, 0.01, shape).astype(np.float32)
        yield np.full(shape, 100 if data_type == "uint8" else 0, data_type)


def given(directions, data_type="int8", *, bias=None, lengths=None, states=(None, None), peepholes=None, **options):
    w, r, *rest = weights(directions, data_type, **options)
    return w, r, bias, lengths, *states, peepholes, *rest


KNOWN = (1, 2, 8, 9, 10, 11)


def opposite():
    """Weights and states such that both products are 133 million, and nothing together: what is left is the bias."""
    w = np.full([1, 1, 4], 127, np.int8)
    bias = np.full([1, 8], 0.25, np.float32)
    state, scale, zero = np.full([1, 1, 1], 255, np.float32), np.array([2**12], np.float32), np.zeros(1, np.int8)
    return w, -w, bias, None, state, np.zeros_like(state), None, scale, zero, scale, zero


@each(
    node(OPERATOR, 1, floats(STEPS, BATCH, SIZE), *given(1), known=KNOWN, **OUTPUTS),
    node(
        OPERATOR,
        1,
        floats(STEPS, BATCH, SIZE),
        *given(2, "uint8", bias=floats(2, 8 * HIDDEN), states=(floats(2, BATCH, HIDDEN), floats(2, BATCH, HIDDEN))),
        known=KNOWN,
        direction="bidirectional",
        **OUTPUTS,
    ),
    node(
        OPERATOR,
        1,
        floats(STEPS, BATCH, SIZE),
        *given(
            1,
            bias=floats(1, 8 * HIDDEN),
            lengths=np.full(BATCH, STEPS, np.int32),
            peepholes=floats(1, 3 * HIDDEN),
            per_column=True,
        ),
        known=(*KNOWN, 4),
        direction="reverse",
        activations=["Sigmoid", "Tanh", "Tanh"],
        **OUTPUTS,
    ),
    node(OPERATOR, 1, floats(1, 1, SIZE), *given(1), known=KNOWN, **OUTPUTS),
)
async def test_lstm(context, case):
    await check(context, case)


@each(node(OPERATOR, 1, np.full([1, 1, 1], 255, np.float32), *opposite(), known=KNOWN, **{**OUTPUTS, "hidden_size": 1}))
async def test_the_bias_of_an_lstm_is_added_last(context, backend, case):
    if backend == "wgpu":
        pytest.skip("a GPU's quotients may be a unit off, and products that it adds at once are not rounded")
    await check(context, case)


async def test_the_weights_are_turned_into_floats_once_for_all_steps(context):
    (case,) = node(OPERATOR, 1, floats(9, BATCH, SIZE), *given(2), known=KNOWN, direction="bidirectional", **OUTPUTS)
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(case.model()).convert(builder)
    graph = drawing_of("a test", outputs)
    casts = [next(iter(item.inputs)) for item in graph.nodes if item.operator.name == "cast"]
    of_weights = [item.descriptor.shape for item in casts if isinstance(item, Constant) and item.descriptor.rank == 2]
    assert sorted(of_weights) == sorted([(SIZE, 4 * HIDDEN), (HIDDEN, 4 * HIDDEN)] * 2)


async def test_onnxruntimes_own_kernels_round_the_states_of_many_steps_as_its_network_does(ml):
    steps, hidden = 40, 24
    r = seven_bits(rng.integers(-128, 128, (2, hidden, 4 * hidden), np.int8))
    w = seven_bits(rng.integers(-128, 128, (2, SIZE, 4 * hidden), np.int8))
    quantized = np.array([0.008, 0.005], np.float32), np.zeros(2, np.int8)
    rest = (floats(2, 8 * hidden), None, None, None, None, *quantized, *quantized)
    options = {**OUTPUTS, "hidden_size": hidden, "direction": "bidirectional"}
    (case,) = node(OPERATOR, 1, floats(steps, 1, SIZE), w, r, *rest, known=KNOWN, **options)
    context = await ml.create_context(backend="onnxruntime", threads=1)
    await check(context, attrs.evolve(case, relative=0, absolute=1e-6))  # a step of a state makes some 1e-3
