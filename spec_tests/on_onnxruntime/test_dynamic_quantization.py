"""Dynamic quantization as one node: of every number the same bits as the operators that it is drawn in."""

import math

import numpy as np
import pytest

from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel

pytest.importorskip("onnxruntime")

from spec_tests.onnx_models.single_node import parsed
from spec_tests.support.computing import run_graph

RNG = np.random.default_rng(29)
NAN, INF, TINY = math.nan, math.inf, float(np.finfo(np.float32).smallest_subnormal)
SHAPE = (4, 32)
CONSTANTS = {
    "matrix": RNG.integers(-127, 128, (32, 5)).astype(np.int8),
    "points": RNG.integers(-5, 6, 5).astype(np.int8),
    "steps": RNG.random(5, np.float32) / 8,
    "bias": RNG.normal(size=5).astype(np.float32),
}


def count(model, operator):
    return sum(node.op_type == operator for node in model.node)


def quantized_product():
    """A dynamically quantized product with a bias, as converters of models write it."""
    text = """(uint8[4,32] quantized, float scale, uint8 point, float[4,5] y) {
      quantized, scale, point = DynamicQuantizeLinear (x)
      sums = MatMulInteger (quantized, matrix, point, points)
      floats = Cast <to = 1> (sums)
      scales = Mul (scale, steps)
      scaled = Mul (floats, scales)
      y = Add (scaled, bias)
    }"""
    return OnnxModel.load(parsed(text, inputs="float[4,32] x", opset=20, **CONSTANTS))


def filled(*values, rest=0.0):
    array = np.full(SHAPE, rest, np.float32)
    array.reshape(-1)[: len(values)] = values
    return array


def ties():
    """Draw multiples of 1 / 8, and values between two of them."""
    steps = np.arange(-100, 156, 2, dtype=np.float32)
    steps[-1] = 155
    return ((steps + np.float32(0.5) * (np.abs(steps) < 90)) / 8).reshape(SHAPE)


USUAL = {
    **{f"normal · {size:g}": (RNG.normal(size=SHAPE) * size).astype(np.float32) for size in (1, 1e-30, 1e30, 0.37, 77)},
    **{f"random {number}": RNG.uniform(-number, number + 1, SHAPE).astype(np.float32) for number in range(8)},
    "all above zero": RNG.uniform(3, 4, SHAPE).astype(np.float32),
    "all below zero": RNG.uniform(-4, -3, SHAPE).astype(np.float32),
    "zeros": filled(),
    "zeros below zero": filled(rest=-0.0),
    "one number": filled(rest=7.0),
    "ties": ties(),
    "a zero point of two halves": filled(-0.5, 254.5, 1.5, 2.5),
    "a zero point of three halves": filled(-1.5, 253.5, 0.5, 1),
    "a range that is rounded": filled(-1e-3, 16777215.0, 1, -1e-4),
    "small": filled(*(number * 2.0**-126 for number in (1, -2, 3.5, 200, 250))),
}
OTHERS = {
    "NaN": filled(1, NAN, -2),
    "NaN first": filled(NAN, 5, -2),
    "NaN alone": filled(rest=NAN),
    "infinity": filled(1, INF, -2),
    "infinity below": filled(1, -INF, -2),
    "both infinities": filled(INF, -INF, 1),
    "a range that is no number": filled(3e38, -3e38, 1e38),
    "all so small that a step is 0": filled(TINY, -TINY, 60 * TINY),
    "all above zero, and so small that a step is 0": filled(TINY, 5 * TINY),
    "all below zero, and so small that a step is 0": filled(-TINY, -5 * TINY),
    "a step that is subnormal": filled(600 * TINY, -300 * TINY),
}


async def test_a_dynamically_quantized_product_is_one_of_every_number(contexts, models, exact_runs):
    builders = [MLGraphBuilder(context) for context in contexts]
    graphs = [await builder.build(quantized_product().convert(builder)) for builder in builders]
    operators = ("DynamicQuantizeLinear", "MatMulInteger", "QuantizeLinear")
    assert [count(model, name) for model in models for name in operators] == [1, 1, 0]
    for case, feed in {**USUAL, **OTHERS}.items():
        got, expected = [
            await run_graph(context, graph, {"x": feed}) for context, graph in zip(contexts, graphs, strict=True)
        ]
        for name, array in expected.items():
            np.testing.assert_array_equal(got[name], array, f"{name} of {case}")
        assert case in OTHERS or not exact_runs, case
    assert len(models) == 2
    assert count(models[1], "DynamicQuantizeLinear") == 0
