"""Which sigmoids are onnxruntime's own: those that only multiply what is quantized by its own range."""

import math

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import on_both
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

onnxruntime = pytest.importorskip("onnxruntime")

import onnx  # noqa: E402 - an extra

from webnn_py.device.on_onnxruntime import engine  # noqa: E402 - an extra
from webnn_py.onnx_models import OnnxModel  # noqa: E402 - an extra
from webnn_py.operators.composites import dynamically_quantized  # noqa: E402 - an extra

X = np.linspace(-9, 9, 48, dtype=np.float32).reshape(4, 12)


@pytest.fixture
def sigmoids(monkeypatch):
    """How many Sigmoid each model has that was written."""
    counts = []

    class Session(onnxruntime.InferenceSession):
        def __init__(self, model, *arguments, **options):
            nodes = onnx.load_model_from_string(model).graph.node
            counts.append(sum(node.op_type == "Sigmoid" for node in nodes))
            super().__init__(model, *arguments, **options)

    monkeypatch.setattr(engine.onnxruntime, "InferenceSession", Session)
    return counts


def quantized(b, x):
    """The integers of x as they are quantized by its range, as float32."""
    return b.cast(dynamically_quantized(b, x)[0], "float32")


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
async def test_only_gates_of_what_is_quantized_are_onnxruntimes_own(contexts, sigmoids, case):
    draw, count = CASES[case]
    ours, wanted = await on_both(contexts, draw, X)
    assert sigmoids == [count]
    np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)


async def test_a_gate_that_is_an_output_is_exact(contexts, sigmoids):
    context, _ = contexts
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    gate = builder.sigmoid(x)
    await compute(context, builder, {"x": X}, {"gate": gate, "y": quantized(builder, builder.mul(x, gate))})
    assert sigmoids == [0]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1e6])
async def test_gates_of_special_numbers_are_as_on_numpy(contexts, number):
    feed = X.copy()
    feed[1, 3] = number
    ours, wanted = await on_both(contexts, CASES["x · sigmoid"][0], feed)
    np.testing.assert_array_equal(ours, wanted)


def quantized_network():
    """A product whose halves gate each other, quantized dynamically and multiplied by integers."""
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.normal(size=(16, 64)).astype(np.float32),
        "v": rng.integers(-128, 128, (32, 8)).astype(np.int8),
    }
    nodes = [
        ("MatMul", ["x", "w"], ["h"]),
        ("Split", ["h"], ["a", "b"], {"axis": 1, "num_outputs": 2}),
        ("Sigmoid", ["a"], ["c"]),
        ("Sigmoid", ["b"], ["d"]),
        ("Mul", ["c", "d"], ["e"]),
        ("DynamicQuantizeLinear", ["e"], ["q", "scale", "zero"]),
        ("MatMulInteger", ["q", "v", "zero"], ["i"]),
        ("Cast", ["i"], ["f"], {"to": onnx.TensorProto.FLOAT}),
        ("Mul", ["f", "scale"], ["y"]),
    ]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(kind, *ends, **dict(*options)) for kind, *ends, options in map(_with_options, nodes)],
        "network",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 16])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 8])],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def _with_options(node):
    kind, inputs, outputs, *options = node
    return kind, inputs, outputs, options


async def test_gates_of_a_quantized_onnx_model_give_onnxruntimes_own_bits(contexts, sigmoids):
    context, _ = contexts
    data = quantized_network().SerializeToString()
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    sigmoids.clear()
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(data).convert(builder))
    assert sigmoids == [2]
    x = await context.create_buffer(data_type="float32", shape=[1, 16], writable=True)
    y = await context.create_buffer(data_type="float32", shape=[1, 8], readable=True)
    rng = np.random.default_rng(4)
    for number in range(500):
        feed = rng.normal(size=(1, 16)).astype(np.float32)
        context.write_buffer(x, feed)
        context.dispatch(graph, {"x": x}, {"y": y})
        expected = theirs.run(None, {"x": feed})[0]
        np.testing.assert_array_equal(await context.read_buffer(y), expected, f"run {number}")
