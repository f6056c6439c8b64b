"""1-D convolutions are written between reshapes; operators between two of them are computed in the 2-D shape."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, assert_written, on_both

pytest.importorskip("onnxruntime")

from spec_tests.support.stand_ins import returned
from webnn_py.devices.onnxruntime import executable
from webnn_py.devices.rewriting.passes import passes_left_out

RNG = np.random.default_rng(31)
X = RNG.normal(size=(2, 4, 8)).astype(np.float32)
WEIGHTS = (RNG.normal(size=(4, 4, 3)) / 3).astype(np.float32)
COLUMN = RNG.normal(size=(4, 1)).astype(np.float32)


def line(b, x, weights=WEIGHTS, padding=1):
    """A convolution of lines, as one of images of one row."""
    batch, channels, length = x.shape
    filters = b.reshape(b.constant(weights), [len(weights), channels, 1, 3])
    y = b.conv2d(b.reshape(x, [batch, channels, 1, length]), filters, padding=[0, 0, padding, padding])
    return b.reshape(y, [batch, len(weights), length + 2 * padding - 2])


def around(step):
    """A step between two convolutions of lines."""
    return lambda b, x: line(b, step(b, line(b, x)))


def circular(b, y):
    ends = b.slice(y, [0, 0, 7], [2, 4, 1]), b.slice(y, [0, 0, 0], [2, 4, 1])
    return b.concat([ends[0], y, ends[1]], 2)


def gated(b, y):
    return b.mul(y, b.sigmoid(b.reduce_mean(y, axes=[2], keep_dimensions=True)))


def halves(b, y):
    a, c = b.split(y, 2, axis=1)
    return b.concat([b.tanh(c), a], 1)


def normalized(b, y):
    mean, variance, scale, bias = (b.constant(np.abs(column).reshape(4)) for column in np.stack([COLUMN] * 4) + 0.5)
    return b.batch_normalization(b.relu(y), mean, variance, axis=1, scale=scale, bias=bias)


def stacked(b, x):
    """Two convolutions, each stacked with the channels last."""
    columns = [b.reshape(b.transpose(line(b, y), permutation=[0, 2, 1]), [2, 8, 4, 1]) for y in (x, b.neg(x))]
    return b.concat(columns, 3)


def several(b, y):
    """Four readers, one behind the other."""
    padded = b.pad(y, [0, 0, 2], [0, 1, 0], mode="edge")
    return b.add(b.slice(padded, [0, 1, 2], [2, 4, 8]), b.mul(y, b.reduce_max(y, axes=[1], keep_dimensions=True)))


BETWEEN = {
    "a line that is added": around(lambda b, y: b.add(y, line(b, b.relu(y)))),
    "its ends": lambda b, x: line(b, circular(b, line(b, x)), padding=0),
    "a padding": lambda b, x: line(b, b.pad(line(b, x), [0, 0, 2], [0, 0, 1], mode="reflection"), padding=0),
    "a gate": around(gated),
    "halves": around(halves),
    "a normalization": around(normalized),
    "numbers of each channel": around(lambda b, y: b.add(b.mul(b.constant(COLUMN), y), b.constant(COLUMN))),
    "numbers of each element": around(lambda b, y: b.max(y, b.constant(X))),
    "several": around(several),
}


@pytest.mark.parametrize("case", BETWEEN)
async def test_between_convolutions_of_lines_no_reshape_is_written(contexts, written, case):
    await assert_both(contexts, BETWEEN[case], X, rtol=1e-5, atol=1e-5)
    assert (written["Conv"], written["Reshape"]) == (
        3 if case == "a line that is added" else 2,
        2,
    )


ROUNDED_ELSEWHERE = frozenset({"a line that is added", "numbers of each channel"})
"""The operators that become part of a convolution once no reshape is between."""


@pytest.mark.parametrize("case", sorted(BETWEEN.keys() - ROUNDED_ELSEWHERE))
async def test_what_is_computed_in_the_shape_of_images_is_the_same_to_the_last_bit(context, case):
    x = X.copy()
    x[0, 0, 0], x[1, 2, 3], x[1, 3, 7] = np.inf, np.nan, -np.inf
    moved = [await on_both([context], BETWEEN[case], fed) for fed in (X, x)]
    with passes_left_out("reshapes"):
        np.testing.assert_array_equal(moved, [await on_both([context], BETWEEN[case], fed) for fed in (X, x)])


OTHERS = {
    "a transpose between two reshapes is one": (stacked, {"Reshape": 2, "Transpose": 2}),
    "reshapes of one value to one shape are one": (
        lambda b, x: b.add(line(b, x), line(b, x, -WEIGHTS)),
        {"Reshape": 2},
    ),
    "a transpose that others read stays": (
        lambda b, x: b.add(b.softmax(y := b.transpose(b.reshape(line(b, x), [2, 32, 1])), 2), b.reshape(y, [1, 32, 2])),
        {"Transpose": 1, "Reshape": 2},
    ),
    "what is joined with another value stays": (
        lambda b, x: line(b, b.concat([line(b, x), x], 1), np.concatenate([WEIGHTS, WEIGHTS], 1)),
        {"Reshape": 4},
    ),
    "pieces that are read otherwise stay": (
        lambda b, x: b.concat([b.softmax(piece, 2) for piece in b.split(line(b, x), 2, axis=1)], 1),
        {"Reshape": 2, "Split": 1},
    ),
    "reductions of what was one axis stay": (
        lambda b, x: b.reduce_sum(b.reshape(b.exp(x), [2, 32]), axes=[1]),
        {"Reshape": 1, "ReduceSum": 1},
    ),
    "what is joined along what was one axis stays": (
        lambda b, x: b.concat([b.reshape(b.exp(x), [8, 8]), b.reshape(b.neg(x), [8, 8])], 0),
        {"Reshape": 2},
    ),
    "numbers that are no constants stay": (
        lambda b, x: b.add(line(b, x), b.slice(b.softmax(x, 2), [0, 0, 0], [1, 4, 1])),
        {"Reshape": 2},
    ),
}


@pytest.mark.parametrize("case", OTHERS)
async def test_reshapes_go_where_what_reads_them_takes_both_shapes(contexts, written, case):
    draw, counts = OTHERS[case]
    await assert_both(contexts, draw, X, rtol=1e-5, atol=1e-5)
    assert_written(written, **counts)


async def test_a_normalization_behind_a_convolution_of_lines_is_folded_into_it(contexts, written):
    def draw(b, x):
        numbers = [b.constant(np.abs(column).reshape(4) + 0.5) for column in (COLUMN, COLUMN + 1)]
        return b.relu(b.batch_normalization(line(b, x), *numbers, axis=1))

    await assert_both(contexts, draw, X, rtol=1e-5, atol=1e-5)
    assert_written(written, Conv=1, Sub=0, Reshape=2)


async def test_the_factors_of_a_normalization_are_computed_once(contexts, written):
    await assert_both(contexts, normalized, X, rtol=1e-6, atol=1e-6)
    assert_written(written, Sqrt=0, Div=0, Mul=1)


async def test_reshaped_filters_are_nothing_that_a_build_computes_at_length(contexts, monkeypatch):
    seconds = returned(monkeypatch, executable.OnnxruntimeGraph, "compile_seconds")
    await on_both(contexts[:1], line, X)
    await on_both(contexts[:1], lambda b, x: b.add(x, b.neg(b.constant(X))), X)
    assert [np.isfinite(each) for each in seconds] == [True, False]


# --- stacks --------------------------------------------------------------------------------------------------------


def stack(b, x, count=2, axis=3):
    return b.concat([b.reshape(b.mul(x, b.constant(np.float32(n + 1))), [2, 4, 8, 1]) for n in range(count)], axis)


def extreme(b, x, *, name="reduce_max", count=3, axis=3, of=(3,), **options):
    """The greatest of some values, stacked along an axis more."""
    return getattr(b, name)(stack(b, x, count, axis), axes=of, **options)


STACKS = {
    "of three values": (extreme, True),
    "of two, the least": (lambda b, x: extreme(b, x, name="reduce_min", count=2), True),
    "with the axis kept": (lambda b, x: extreme(b, x, keep_dimensions=True), True),
    "of many": (lambda b, x: extreme(b, x, count=9), False),
    "of several elements each": (lambda b, x: extreme(b, x, axis=2, of=[2]), False),
    "along another axis": (lambda b, x: extreme(b, x, of=[2]), False),
    "along two axes": (lambda b, x: extreme(b, x, of=[2, 3]), False),
    "that others read": (lambda b, x: b.sub(y := stack(b, x), b.reduce_max(y, axes=[3], keep_dimensions=True)), False),
}


@pytest.mark.parametrize("case", STACKS)
async def test_the_extreme_of_a_few_stacked_values_is_found_without_the_stack(contexts, written, case):
    draw, is_found = STACKS[case]
    x = X.copy()
    x[0, 0, 0], x[1, 2, 3], x[1, 3, 7] = np.inf, np.nan, -np.inf
    for fed in (X, x):
        await assert_both(contexts, draw, fed)
    assert (written["Concat"] == 0) == is_found
