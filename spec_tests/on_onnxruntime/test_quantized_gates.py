"""Which sigmoids are onnxruntime's own: those that only multiply what is quantized by its own range."""

import math

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, computed
from spec_tests.support.computing import run_graph
from webnn_py import MLGraphBuilder

onnxruntime = pytest.importorskip("onnxruntime")

from spec_tests.onnx_models.single_node import parsed, seven_bits  # noqa: E402 - an extra
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE  # noqa: E402 - an extra
from webnn_py.onnx_models import OnnxModel  # noqa: E402 - an extra

X = np.linspace(-9, 9, 48, dtype=np.float32).reshape(4, 12)


def sigmoids(models):
    """Return how many Sigmoid each model has."""
    return [sum(node.op_type == "Sigmoid" for node in model.node) for model in models]


def quantized(b, x):
    """The integers of x as they are quantized by its range, as float32."""
    return b.cast(b.append(DYNAMIC_QUANTIZE, x)[0], "float32")


def step(b, x):
    """Three gates of a network with a state."""
    kept = b.add(b.mul(b.sigmoid(x), x), b.mul(b.tanh(x), b.sigmoid(b.neg(x))))
    hidden = b.mul(b.sigmoid(b.mul(x, x)), b.tanh(kept))
    return b.mul(quantized(b, b.reshape(hidden, [48])), b.reshape(kept, [48]))


CASES = {
    "x · sigmoid": (lambda b, x: quantized(b, b.mul(x, b.sigmoid(x))), 1),
    "gates of a state": (step, 3),
    "nothing is quantized": (lambda b, x: b.mul(x, b.sigmoid(x)), 0),
    "added": (lambda b, x: quantized(b, b.add(x, b.sigmoid(x))), 0),
    "quantized itself": (lambda b, x: quantized(b, b.sigmoid(x)), 0),
    "multiplied and added": (lambda b, x: quantized(b, b.mul(b.add(x, s := b.sigmoid(x)), s)), 0),
    "quantized as a logarithm": (lambda b, x: quantized(b, b.log(b.mul(b.abs(x), b.sigmoid(x)))), 0),
    "quantized before": (lambda b, x: b.mul(y := quantized(b, x), b.sigmoid(y)), 0),
}


@pytest.mark.parametrize("case", CASES)
async def test_only_gates_of_what_is_quantized_are_onnxruntimes_own(contexts, models, case):
    draw, count = CASES[case]
    await assert_both(contexts, draw, X, rtol=1e-5, atol=1e-5)
    assert sigmoids(models) == [count]


async def test_a_gate_that_is_an_output_is_exact(contexts, models):
    def draw(b, x):
        gate = b.sigmoid(x)
        return {"gate": gate, "y": quantized(b, b.mul(x, gate))}

    await computed(contexts[0], draw, X)
    assert sigmoids(models) == [0]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1e6])
async def test_gates_of_special_numbers_are_as_on_numpy(contexts, number):
    feed = X.copy()
    feed[1, 3] = number
    await assert_both(contexts, CASES["x · sigmoid"][0], feed)


def quantized_network():
    """A product whose halves gate each other, quantized dynamically and multiplied by integers."""
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.normal(size=(16, 64)).astype(np.float32),
        "v": seven_bits(rng.integers(-128, 128, (32, 8)).astype(np.int8)),
    }
    text = """(float[1,8] y) {
      h = MatMul (x, w)
      a, b = Split <axis = 1, num_outputs = 2> (h)
      c = Sigmoid (a)
      d = Sigmoid (b)
      e = Mul (c, d)
      q, scale, zero = DynamicQuantizeLinear (e)
      i = MatMulInteger (q, v, zero)
      f = Cast <to = 1> (i)
      y = Mul (f, scale)
    }"""
    return parsed(text, inputs="float[1,16] x", opset=18, **weights)


async def test_gates_of_a_quantized_onnx_model_give_onnxruntimes_own_bits(contexts, models):
    context, _ = contexts
    data = quantized_network()
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    models.clear()
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(data).convert(builder))
    assert sigmoids(models) == [2]
    rng = np.random.default_rng(4)
    for number in range(500):
        feeds = {"x": rng.normal(size=(1, 16)).astype(np.float32)}
        got = await run_graph(context, graph, feeds)
        np.testing.assert_array_equal(got["y"], theirs.run(None, feeds)[0], f"run {number}")
