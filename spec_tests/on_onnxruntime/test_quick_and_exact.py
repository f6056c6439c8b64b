"""Graphs run by rules for usual numbers, and again by those for all where a number is not usual."""

import math
from functools import partial

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, on_both
from spec_tests.support.buffers import filled, zeroed
from webnn_py import MLGraphBuilder

pytest.importorskip("onnxruntime")

from webnn_py.devices.rewriting.passes import PassManager

RNG = np.random.default_rng(11)
NAN, INF = math.nan, math.inf


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


IMAGES = numbers(1, 16, 6, 6)
FILTER = numbers(16, 16, 3, 3) / 8
PARAMETERS = {"mean": numbers(16), "variance": RNG.random(16, np.float32) + 0.5, "scale": numbers(16)}
BIAS = numbers(16)


def conv(b, x, filter=FILTER, **options):
    return b.conv2d(x, b.constant(filter), padding=[1, 1, 1, 1], **options)


def widened(b, x, filter=FILTER, **options):
    """A convolution with more windows than there are elements."""
    return b.conv2d(x, b.constant(filter), padding=[3, 3, 3, 3], **options)


def cut(b, x):
    """Two pieces, the first with what is not usual."""
    return b.split(b.exp(x), 2, axis=1)


def normalized(b, x, *, axis=1, **changed):
    constants = {name: b.constant(array) for name, array in {**PARAMETERS, **changed}.items()}
    return b.batch_normalization(x, constants.pop("mean"), constants.pop("variance"), axis=axis, **constants)


# --- folding -------------------------------------------------------------------------------------------------------

LAST = {"input_layout": "nhwc", "filter_layout": "ohwi"}
FOLDED = {
    "with biases": lambda b, x: normalized(b, conv(b, x, bias=b.constant(BIAS)), bias=BIAS[::-1].copy()),
    "whose channels are last": lambda b, x: normalized(
        b, conv(b, b.transpose(x, permutation=[0, 2, 3, 1]), FILTER.transpose(0, 2, 3, 1).copy(), **LAST), axis=3
    ),
    "with a factor of 0": lambda b, x: normalized(b, conv(b, x), scale=np.zeros(16, np.float32)),
}
APART = {
    "with elements too small for it": lambda b, x: normalized(
        b,
        conv(b, b.abs(b.mul(x, b.constant(np.float32(1e20)))), FILTER * np.float32(1e-30)),
        scale=np.full(16, 1e-9, "f4"),
    ),
    "with elements too large for it": lambda b, x: normalized(
        b,
        conv(b, b.abs(b.mul(x, b.constant(np.float32(1e-20)))), FILTER * np.float32(1e34)),
        scale=np.full(16, 1e6, "f4"),
    ),
}


@pytest.fixture
def node_counts(monkeypatch):
    """Collect the numbers of nodes before and after the folding of convolutions."""
    counts, run = [], PassManager.run

    def observed(passes, graph, context):
        made, reports = run(passes, graph, context)
        folding = [report for report in reports if report.names == ("convolution-folding",)]
        counts.extend((report.nodes_before, report.nodes_after) for report in folding)
        return made, reports

    monkeypatch.setattr(PassManager, "run", observed)
    return counts


@pytest.mark.parametrize("case", FOLDED)
async def test_a_scale_is_folded_into_a_convolution(contexts, node_counts, case):
    await assert_both(contexts, FOLDED[case], IMAGES, atol=1e-5)
    assert [before - after for before, after in node_counts] == [1, 1], "on onnxruntime and on numpy"


@pytest.mark.parametrize("case", APART)
async def test_a_convolution_stays_apart_from_its_normalization(contexts, node_counts, case):
    await assert_both(contexts, APART[case], IMAGES, rtol=1e-4, atol=1e-5)
    assert node_counts[0][0] == node_counts[0][1]


# --- guards --------------------------------------------------------------------------------------------------------


def spiked(*values):
    array = IMAGES.copy()
    array[0, range(len(values)), 3, 3] = values
    return array


def as_integers(data_type, b, x):
    return b.cast(b.mul(x, b.constant(np.float32(100))), data_type)


CHAIN = {
    "hard swish": lambda b, x: b.softmax(b.reshape(conv(b, b.hard_swish(x)), [1, 576]), 1),
    "hard swish, behind it what passes over NaN": lambda b, x: b.is_nan(b.hard_swish(x)),
    "hard swish, behind it windows that pass over elements": lambda b, x: b.add(
        b.conv2d(y := b.hard_swish(x), b.constant(FILTER[:, :, :1, :1].copy()), strides=[5, 5]),
        b.cast(b.is_nan(b.slice(y, [0, 0, 3, 3], [1, 16, 1, 1])), "float32"),
    ),
    "hard swish, behind it a mean": lambda b, x: b.cast(b.reduce_mean(b.hard_swish(x), axes=[2, 3]), "int32"),
    "hard swish, behind it a maximum along no axis": lambda b, x: b.is_nan(b.reduce_max(b.hard_swish(x), axes=[])),
    "hard swish, behind it all that is cut": lambda b, x: b.mul(*cut(b, b.hard_swish(x))),
    "hard swish, behind it a piece of what is cut": lambda b, x: cut(b, b.hard_swish(x))[1],
    "gelu": lambda b, x: conv(b, b.gelu(x)),
    "max pool": lambda b, x: conv(b, b.max_pool2d(x, window_dimensions=[2, 2])),
    "max pool behind convolutions": lambda b, x: b.max_pool2d(
        b.relu(widened(b, widened(b, x), bias=b.constant(BIAS))), window_dimensions=[2, 2]
    ),
    "max pool behind a leak": lambda b, x: b.max_pool2d(
        b.leaky_relu(widened(b, x), alpha=0.1), window_dimensions=[2, 2]
    ),
    "max pool behind what joins": lambda b, x: b.max_pool2d(b.concat([x, x], 1), window_dimensions=[2, 2]),
    "max pool of single elements": lambda b, x: b.max_pool2d(x, window_dimensions=[1, 1]),
    "mean": lambda b, x: b.reduce_mean(x, axes=[2, 3], keep_dimensions=True),
    "mean of rows": lambda b, x: b.reduce_mean(x, axes=[3]),
    "max": lambda b, x: b.reduce_max(x, axes=[1]),
    "max of rows": lambda b, x: b.reduce_max(x, axes=[3], keep_dimensions=True),
    **{f"cast to {data_type}": partial(as_integers, data_type) for data_type in ("int8", "uint8", "int32", "int64")},
    "quantized": lambda b, x: b.quantize_linear(
        x, b.constant(np.full([1] * 4, 0.1, "f4")), b.constant(np.full([1] * 4, 5, np.int8))
    ),
    "quantized by what is computed": lambda b, x: b.quantize_linear(
        x, b.relu(b.slice(x, [0] * 4, [1] * 4)), b.constant(np.full([1] * 4, 5, np.uint8))
    ),
    "max of all": lambda b, x: b.reduce_max(x),
    "min of all": lambda b, x: b.reduce_min(x),
    "log of the sum of exp of rows": lambda b, x: b.reduce_log_sum_exp(x, axes=[3]),
}


@pytest.mark.parametrize("case", CHAIN)
async def test_usual_and_other_numbers_mean_the_same_as_on_numpy(contexts, exact_runs, case):
    others = (spiked(NAN), spiked(-INF, INF), spiked(1e8, -1e8), spiked(3e38), np.full_like(IMAGES, -INF))
    for feed, is_usual in ((IMAGES, True), *((feed, False) for feed in others)):
        await assert_both(contexts, CHAIN[case], feed, rtol=1e-4, atol=1e-4)
        assert not (is_usual and exact_runs)


async def test_what_is_noticed_is_run_again_and_what_is_not_is_not(contexts, exact_runs):
    for case, feed, count in (
        ("max pool", spiked(NAN), 1),
        ("max pool behind convolutions", spiked(NAN), 1),
        ("max pool behind what joins", spiked(-INF), 1),
        ("max of rows", spiked(INF, -3), 1),
        ("max of all", spiked(INF, -3), 0),
        ("max", spiked(INF, -3), 0),
        ("mean", np.full_like(IMAGES, 3e38), 1),
        ("hard swish", spiked(-INF), 1),
        ("hard swish, behind it what passes over NaN", spiked(-INF), 0),
        ("hard swish, behind it all that is cut", spiked(-INF), 1),
        ("hard swish, behind it a piece of what is cut", spiked(-INF), 0),
    ):
        exact_runs.clear()
        await on_both(contexts, CHAIN[case], feed)
        assert len(exact_runs) == count, case


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("options", [{"axes": [1]}, {"axes": [1], "keep_dimensions": True}, {"axes": []}, {}])
async def test_nan_is_kept_where_exp_is_summed_up_beside_infinite_numbers(contexts, data_type, options):
    rows = [[1, NAN, INF], [INF, NAN, 1], [-INF, NAN, -INF], [NAN, 1, -INF], [1, 2, 3], [INF, 1, 2], [-INF] * 3]
    x = np.array(rows, data_type)
    for feed in (x, x[4:]):
        await assert_both(contexts, lambda b, x: b.reduce_log_sum_exp(x, **options), feed, rtol=1e-3)


@pytest.mark.parametrize("place", [0, 1, 2], ids=["no mean", "the second mean", "a mean of another shape"])
async def test_each_of_several_means_is_noticed(contexts, exact_runs, place):
    def draw(b, x):
        parts = [b.slice(x, [0, begin, 0, 0], [1, size, 6, 6]) for begin, size in ((0, 2), (2, 3), (5, 4))]
        first, second = [b.reduce_mean(part, axes=[2, 3], keep_dimensions=True) for part in parts[:2]]
        return b.add(b.concat([first, second], 1), b.reduce_mean(parts[2]))

    feed = IMAGES.copy()
    if place:
        feed[0, (None, 4, 5)[place], :2, :3] = 1e38
    await assert_both(contexts, draw, feed, rtol=1e-4, atol=1e-4)
    assert len(exact_runs) == bool(place)


async def test_a_graph_is_run_quickly_again_and_again(contexts, exact_runs):
    """Also once it has been run otherwise, with buffers that come and go, inline and in a thread."""
    context = contexts[0]
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[1, 1, 1, 2])
    graph = await builder.build({"y": builder.max_pool2d(x)})
    for thread in (True, False):
        graph.handle.compiled.expected_seconds = float(thread)
        for value, count in ((5, 0), (NAN, 1), (7, 0), (NAN, 1)):
            exact_runs.clear()
            given, target = await filled(context, [[[[value, 2]]]]), await zeroed(context, [1, 1, 1, 1])
            context.dispatch(graph, {"x": given}, {"y": target})
            np.testing.assert_array_equal(await context.read_buffer(target), [[[[value]]]])
            assert len(exact_runs) == count
            for buffer in (given, target):
                buffer.destroy()
    graph.destroy()
    await context.drain()
    assert context.statistics().live_bytes == 0


async def test_what_is_run_again_reads_constants_of_buffers_that_are_gone(contexts, exact_runs):
    context = contexts[0]
    buffer = await context.create_constant_buffer(FILTER, data_type="float32", shape=FILTER.shape)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=IMAGES.shape)
    y = normalized(builder, builder.conv2d(x, builder.constant(buffer)))
    graph = await builder.build({"y": builder.reduce_max(y)})
    buffer.destroy()
    del buffer, builder, x, y
    given, target = await filled(context, spiked(NAN)), await zeroed(context, [])
    context.dispatch(graph, {"x": given}, {"y": target})
    assert math.isnan(await context.read_buffer(target))
    assert len(exact_runs) == 1
