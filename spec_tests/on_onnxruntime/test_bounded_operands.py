"""Operators that read nothing but what was dequantized, or is made of that: they need no guard."""

import math
from functools import partial

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, on_both

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(31)
BYTES = RNG.integers(0, 256, (2, 4, 6, 6)).astype(np.uint8)
FLOATS = RNG.normal(size=(2, 4, 6, 6)).astype(np.float32)


def number(b, value):
    return b.constant(np.float32(value))


def one(b, value, data_type="float32"):
    return b.constant(np.full([1] * 4, value, data_type))


def dequantized(b, x, scale=0.1):
    return b.dequantize_linear(x, one(b, scale), one(b, 128, "uint8"))


def quantized(b, x, scale=0.3):
    return b.quantize_linear(x, one(b, scale), one(b, 100, "uint8"))


def requantized(function, b, x):
    return b.cast(quantized(b, function(b, dequantized(b, x))), "int32")


def normal(b, *shape):
    return b.constant(np.random.default_rng(5).normal(size=shape).astype(np.float32))


SETTLED = {
    "by itself": lambda _b, x: x,
    "added": lambda b, x: b.add(x, b.sub(b.transpose(x, permutation=[0, 1, 3, 2]), number(b, 3))),
    "multiplied": lambda b, x: b.mul(x, b.mul(x, number(b, -7))),
    "divided": lambda b, x: b.div(x, number(b, -0.25)),
    "gelu": lambda b, x: b.gelu(x),
    "gelu as it is drawn": lambda b, x: b.mul(
        b.mul(x, b.add(b.erf(b.div(x, number(b, math.sqrt(2)))), number(b, 1))), number(b, 0.5)
    ),
    "hard swish": lambda b, x: b.hard_swish(x),
    "between -1 and 1": lambda b, x: b.add(b.tanh(x), b.add(b.erf(x), b.softmax(x, 3))),
    "conv2d": lambda b, x: b.conv2d(x, normal(b, 4, 4, 3, 3), bias=normal(b, 4), padding=[1, 1, 1, 1]),
    "matmul": lambda b, x: b.matmul(x, normal(b, 6, 6)),
    "gemm": lambda b, x: b.reshape(
        b.gemm(b.reshape(x, [48, 6]), normal(b, 6, 6), c=normal(b, 6), alpha=2.0), [2, 4, 6, 6]
    ),
    "the greatest": lambda b, x: b.sub(x, b.reduce_max(x, axes=[2, 3], keep_dimensions=True)),
    "the mean": lambda b, x: b.sub(x, b.reduce_mean(x, axes=[2, 3], keep_dimensions=True)),
    "pooled": lambda b, x: b.max_pool2d(x, window_dimensions=[2, 2]),
}
GUARDED = {
    "too large": lambda b, x: b.mul(x, number(b, 2.0**60)),
    "of a product that is too large": lambda b, x: b.mul(y := b.mul(x, number(b, 2.0**30)), y),
    "of an infinite number": lambda b, x: b.add(x, number(b, math.inf)),
    "of no number": lambda b, x: b.min(x, number(b, math.nan)),
    "divided by 0": lambda b, x: b.div(x, number(b, 0)),
    "divided by what is computed": lambda b, x: b.div(x, x),
    "of a root": lambda b, x: b.sqrt(x),
    "normalized": lambda b, x: b.layer_normalization(x, axes=[3]),
    "of a large filter": lambda b, x: b.conv2d(x, b.constant(np.full((4, 4, 3, 3), 2.0**56, np.float32))),
}


@pytest.mark.parametrize("case", SETTLED)
async def test_what_is_finite_anyway_is_not_looked_at(contexts, written, exact_runs, case):
    got, expected = await on_both(contexts, partial(requantized, SETTLED[case]), BYTES)
    assert np.abs(got - expected).max() <= 1  # what lies between two steps may be rounded to either
    assert np.mean(got != expected) < 0.01
    assert not exact_runs
    assert {"ReduceSum", "Sum", "Max"}.isdisjoint(written)


@pytest.mark.parametrize("case", GUARDED)
async def test_what_may_not_be_finite_is_looked_at(contexts, written, case):
    await assert_both(contexts, partial(requantized, GUARDED[case]), BYTES, atol=1)
    assert written["ReduceSum"]


@pytest.mark.parametrize("scale", [0, math.inf, math.nan])
async def test_scales_that_divide_nothing_are_looked_at(contexts, exact_runs, scale):
    draws = (lambda b, x: quantized(b, dequantized(b, x), scale), lambda b, x: quantized(b, dequantized(b, x, scale)))
    for draw in draws:
        await assert_both(contexts, draw, BYTES)
    assert len(exact_runs) == 1 + (scale != 0)


async def test_what_a_graph_is_given_is_looked_at(contexts, exact_runs):
    x = FLOATS.copy()
    x[1, 2, 3, 4] = math.nan
    for array, runs in ((FLOATS, 0), (x, 1)):
        await assert_both(contexts, lambda b, x: b.add(quantized(b, x), one(b, 0, "uint8")), array)
        assert len(exact_runs) == runs
