"""Indices that the graph computes, and that cannot be out of range, are not cut to it; all others are."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both

pytest.importorskip("onnxruntime")

X = np.random.default_rng(5).normal(size=(3, 5)).astype(np.float32)
PLACES = np.array([[0, -5], [4, 2], [1, 3]])


def table(b, values=PLACES, data_type="int32"):
    return b.constant(np.asarray(values).astype(data_type))


def row(b, x):
    """An index of which nothing is known until the graph runs."""
    return b.cast(b.reduce_sum(b.relu(x), axes=[1]), "int32")


def taken(b, x, values=PLACES, data_type="int32"):
    """Some rows of a table."""
    return b.gather(table(b, values, data_type), row(b, x))


def elements(b, x, indices):
    return b.gather_elements(x, indices, axis=1)


def number(b, value):
    return b.constant(np.int32(value))


WITHIN = {
    "of a table": lambda b, x: elements(b, x, taken(b, x)),
    "of a table of int64": lambda b, x: elements(b, x, taken(b, x, data_type="int64")),
    "of a table of uint32": lambda b, x: elements(b, x, taken(b, x, abs(PLACES) % 5, "uint32")),
    "of a table of bytes": lambda b, x: elements(b, x, b.cast(taken(b, x, abs(PLACES) % 5, "uint8"), "int32")),
    "of comparisons": lambda b, x: elements(b, x, b.cast(b.greater(x, b.constant(np.float32(0))), "int32")),
    "of sums and products": lambda b, x: elements(
        b, x, b.sub(b.mul(taken(b, x, [[0, 1], [2, 1], [0, 2]]), number(b, -2)), number(b, 1))
    ),
    "of one of two": lambda b, x: elements(
        b, x, b.where(b.greater(x, b.constant(np.float32(0))), number(b, 4), number(b, -5))
    ),
    "of arg_max": lambda b, x: elements(b, x, b.arg_max(x, 1, keep_dimensions=True)),
    "moved": lambda b, x: elements(
        b, x, b.reshape(b.concat([b.slice(taken(b, x), [0, 1], [3, 1]), number_of_rows(b)], 1), [3, 2])
    ),
    "of several axes": lambda b, x: b.gather_nd(x, taken(b, x, [[0, -3], [2, 1], [1, 0]])),
}
BEYOND = {
    "of a table": lambda b, x: elements(b, x, taken(b, x, PLACES + 1)),
    "below": lambda b, x: elements(b, x, taken(b, x, PLACES - 1)),
    "of a given one": lambda b, x: elements(b, x, b.reshape(row(b, x), [3, 1])),
    "of products": lambda b, x: elements(b, x, b.mul(taken(b, x), number(b, 2))),
    "of differences": lambda b, x: elements(b, x, b.sub(taken(b, x), taken(b, x, PLACES[::-1]))),
    "of products that wrap around": lambda b, x: elements(
        b, x, b.mul(b.mul(taken(b, x), number(b, 2**30)), number(b, 4))
    ),
    "of sums that wrap around before they are widened": lambda b, x: elements(
        b, x, b.sub(b.cast(b.add(taken(b, x), number(b, 2**31 - 1)), "int64"), b.constant(np.int64(2**31 - 1)))
    ),
    "of one of two": lambda b, x: elements(
        b, x, b.where(b.greater(x, b.constant(np.float32(0))), number(b, 5), number(b, -5))
    ),
    "of several axes": lambda b, x: b.gather_nd(x, taken(b, x, [[0, -3], [2, 3], [1, 0]])),
}


def number_of_rows(b):
    return table(b, [[2], [2], [2]])


@pytest.mark.parametrize("case", WITHIN)
async def test_indices_that_are_known_to_be_in_range_are_not_cut_to_it(contexts, written, exact_runs, case):
    x = np.clip(X, 0, 1) / 4  # whose rows add up to 0, 1 or 2
    await assert_both(contexts, WITHIN[case], x)
    assert (written["Less"], len(exact_runs)) == (0, 0)


@pytest.mark.parametrize("case", BEYOND)
async def test_indices_that_may_be_out_of_range_are_cut_to_it(contexts, written, case):
    await assert_both(contexts, BEYOND[case], np.clip(X, 0, 1) / 4)
    assert written["Less"] == 1
