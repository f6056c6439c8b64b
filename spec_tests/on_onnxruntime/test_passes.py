"""The passes for onnxruntime: their order, their reports, and that graphs do without any that is optional."""

import random

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import computed
from webnn_py import MLGraphBuilder

pytest.importorskip("onnxruntime")

from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE
from webnn_py.devices.onnxruntime.passes.pipeline import NODE_PASSES, PASSES
from webnn_py.devices.rewriting.passes import GraphPass, PassManager, passes_left_out
from webnn_py.pictures import picture

RNG = np.random.default_rng(23)
X = RNG.normal(size=(1, 8, 12, 12)).astype(np.float32)
FILTER = (RNG.normal(size=(16, 8, 3, 3)) / 9).astype(np.float32)
MATRIX = (RNG.normal(size=(16, 16)) / 4).astype(np.float32)
ROW = RNG.normal(size=16).astype(np.float32)
SUBSETS = 24
OPTIONAL = (*PASSES.optional, *NODE_PASSES.optional)


def number(b, value):
    return b.constant(np.float32(value))


def draw(b, x):
    """Something for nearly every pass."""
    y = b.conv2d(x, b.constant(FILTER), padding=[1, 1, 1, 1])
    y = b.batch_normalization(y, b.constant(ROW), b.constant(ROW**2 + np.float32(0.5)), bias=b.constant(ROW))
    y = b.div(b.mul(y, b.clamp(b.add(y, number(b, 3)), min_value=0, max_value=6)), number(b, 6))
    y = b.mul(y, b.sigmoid(y))
    rows = b.reshape(b.transpose(y, permutation=[0, 2, 3, 1]), [1, 144, 16])
    rows = b.add(b.matmul(rows, b.constant(MATRIX)), b.constant(ROW))
    rows = b.mul(b.mul(rows, b.add(b.erf(b.div(rows, number(b, 2**0.5))), number(b, 1))), number(b, 0.5))
    mean = b.reduce_mean(b.mul(rows, rows), axes=[2], keep_dimensions=True)
    rows = b.mul(b.div(rows, b.sqrt(b.add(mean, number(b, 1e-6)))), b.constant(ROW))
    halves = [b.slice(rows, [0, 0, start], [1, 144, 8]) for start in (0, 8)]
    gates = [b.sigmoid(half) for half in halves]
    apart = [b.sigmoid(b.neg(b.reshape(half, [144, 8]))) for half in gates] + [
        b.sigmoid(b.reshape(halves[0], [144, 8]))
    ]
    stack = b.concat([b.reshape(one, [1, 144, 8]) for one in apart], 0)
    integers, scale, _ = b.append(DYNAMIC_QUANTIZE, b.reduce_max(stack, axes=[0]))
    return {"y": b.concat(gates, 2), "z": b.mul(b.cast(integers, "float32"), scale)}


async def built(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    return await builder.build(draw(builder, x), keep_source=True)


async def test_graphs_give_the_same_without_any_of_the_optional_passes(contexts):
    context, numpy_context = contexts
    expected = await computed(numpy_context, draw, X)
    chooser = random.Random(31)  # noqa: S311 - for tests
    subsets = [(), OPTIONAL, *((name,) for name in OPTIONAL)]
    subsets += [tuple(chooser.sample(OPTIONAL, chooser.randrange(2, len(OPTIONAL)))) for _ in range(SUBSETS)]
    for names in subsets:
        with passes_left_out(*names):
            got = await computed(context, draw, X)
        for name, array in expected.items():
            # One step of the quantization at most, where a number lies between two.
            tolerance = np.ptp(array) / 200 if name == "z" else 2e-4
            np.testing.assert_allclose(got[name], array, rtol=2e-4, atol=tolerance, err_msg=f"{name} without {names}")


async def test_a_graph_describes_what_each_pass_did(contexts):
    pictured = picture(await built(contexts[0]))
    text = pictured.describe(passes=True)
    assert text.startswith(pictured.describe())
    lines = text.splitlines()
    passes = lines[lines.index("passes") + 1 :]
    assert any(line.startswith("  hard-swish: ") for line in passes)
    assert "    hard-swish: div" in passes


async def test_a_pass_that_is_left_out_does_nothing(contexts):
    with passes_left_out("hard-swish"):
        text = picture(await built(contexts[0])).describe(passes=True)
    assert "hard-swish" not in text


async def test_a_rule_that_nearly_applies_says_why_not(contexts):
    builder = MLGraphBuilder(contexts[0])
    x = builder.input("x", data_type="float32", shape=[4])
    gate = builder.clamp(builder.add(x, number(builder, 3)), min_value=0, max_value=6, label="gate")
    swish = builder.div(builder.mul(x, gate), number(builder, 6), label="swish")
    text = picture(await builder.build({"y": builder.add(swish, gate)}, keep_source=True)).describe(passes=True)
    assert "    not hard-swish: div [swish]: the result of clamp [gate] is read elsewhere" in text


async def test_passes_are_printed_where_the_environment_says_so(contexts, monkeypatch, capfd):
    monkeypatch.setenv("WEBNN_PY_PASSES", "1")
    await built(contexts[0])
    assert "  convolution-folding: " in capfd.readouterr().err


async def test_a_required_pass_cannot_be_left_out(contexts):
    with passes_left_out("int8-lstm"), pytest.raises(Exception, match="'int8-lstm' are required"):
        await built(contexts[0])


def test_a_pass_before_one_that_it_comes_after_is_refused():
    first, second = (
        GraphPass(name=name, run=lambda graph, _context: graph, after=after)
        for name, after in (("first", ("second",)), ("second", ()))
    )
    with pytest.raises(ValueError, match="pass 'first' must come after 'second'"):
        PassManager(first, second)
    PassManager(second, first)
    with pytest.raises(ValueError, match="two passes have the name 'second'"):
        PassManager(second, second)
