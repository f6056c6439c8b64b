"""Recurrent networks of quantized weights: onnxruntime quantizes the same states, so that results are as close."""

import attrs
import numpy as np
import pytest

from spec_tests.onnx_models.single_node import Random, check, compared, each, microsoft, seven_bits
from spec_tests.support.backends import BACKENDS, on_each
from webnn_py import MLGraphBuilder
from webnn_py.core.graph import Constant
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import OnnxModel

random = Random(12)
floats = random.floats
STEPS, BATCH, SIZE, HIDDEN = 4, 2, 3, 5
KNOWN = (1, 2, 8, 9, 10, 11)


pytestmark = pytest.mark.sampled(5)


backend = on_each(BACKENDS)


def signed_weights(*shape):
    return seven_bits(random.integers("int8", *shape))


def lstm(x, w, r, *quantized, given=(None,) * 5, known=KNOWN, hidden=HIDDEN, **options):
    """Return the case of a network; ``given`` has its bias, lengths, states and peepholes."""
    inputs = x, w, r, *given, *quantized
    return microsoft("DynamicQuantizeLSTM", *inputs, known=known, hidden_size=hidden, outputs=3, **options)


def weights(directions, data_type="int8", *, per_column=False):
    """Return random weights with their scales and zero points."""
    shape = [directions, 4 * HIDDEN] if per_column else [directions]
    made = random.integers if data_type == "uint8" else lambda _, *shape: signed_weights(*shape)
    point = np.full(shape, 100 if data_type == "uint8" else 0, data_type)
    scales = [random.rng.uniform(0.004, 0.01, shape).astype(np.float32) for _ in range(2)]
    matrices = [made(data_type, directions, rows, 4 * HIDDEN) for rows in (SIZE, HIDDEN)]
    return *matrices, scales[0], point, scales[1], point


X = floats(STEPS, BATCH, SIZE)
STATES = floats(2, 8 * HIDDEN), None, floats(2, BATCH, HIDDEN), floats(2, BATCH, HIDDEN), None
PEEPHOLES = floats(1, 8 * HIDDEN), np.full(BATCH, STEPS, np.int32), None, None, floats(1, 3 * HIDDEN)
BACKWARDS = {"direction": "reverse", "activations": ["Sigmoid", "Tanh", "Tanh"], "known": (*KNOWN, 4)}


test_lstm = compared(
    lstm(X, *weights(1)),
    lstm(X, *weights(2, "uint8"), given=STATES, direction="bidirectional"),
    lstm(X, *weights(1, per_column=True), given=PEEPHOLES, **BACKWARDS),
    lstm(floats(1, 1, SIZE), *weights(1)),
)


def opposite():
    """Return a case of which both products are 133 million and cancel, so that the bias remains."""
    w, state = np.full([1, 1, 4], 127, np.int8), np.full([1, 1, 1], 255, np.float32)
    given = np.full([1, 8], 0.25, np.float32), None, state, np.zeros_like(state), None
    quantized = np.float32([2**12]), np.zeros(1, np.int8)
    return lstm(state, w, -w, *quantized, *quantized, given=given, hidden=1)


@each(opposite())
async def test_the_bias_of_an_lstm_is_added_last(context, backend, case):
    if backend == "wgpu":
        pytest.skip("a GPU's quotients may be a unit off, and products that it adds at once are not rounded")
    await check(context, case)


async def test_the_weights_are_turned_into_floats_once_for_all_steps(context):
    (case,) = lstm(floats(9, BATCH, SIZE), *weights(2), direction="bidirectional")
    builder = MLGraphBuilder(context)
    outputs = OnnxModel.load(case.model()).convert(builder)
    graph = spelled_out(drawing_of("a test", outputs))
    casts = [next(iter(item.inputs)) for item in graph.nodes if item.operator.name == "cast"]
    of_weights = [item.descriptor.shape for item in casts if isinstance(item, Constant) and item.descriptor.rank == 2]
    assert sorted(of_weights) == sorted([(SIZE, 4 * HIDDEN), (HIDDEN, 4 * HIDDEN)] * 2)


async def test_onnxruntimes_own_kernels_round_the_states_of_many_steps_as_its_network_does(ml):
    hidden = 24
    r, w = signed_weights(2, hidden, 4 * hidden), signed_weights(2, SIZE, 4 * hidden)
    quantized = np.float32([0.008, 0.005]), np.zeros(2, np.int8)
    given = floats(2, 8 * hidden), None, None, None, None
    (case,) = lstm(
        floats(40, 1, SIZE), w, r, *quantized, *quantized, given=given, hidden=hidden, direction="bidirectional"
    )
    context = await ml.create_context(backend="onnxruntime", threads=1)
    await check(context, attrs.evolve(case, relative=0, absolute=1e-6))  # a step of a state makes some 1e-3
