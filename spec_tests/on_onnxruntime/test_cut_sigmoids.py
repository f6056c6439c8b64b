"""Sigmoids of pieces of one value, or of the sums of pieces of two, are pieces of one sigmoid, to the same bits."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import on_both

pytest.importorskip("onnxruntime")
from webnn_py.operators.composites import dynamically_quantized
from webnn_py.rewriting.passes import passes_left_out

RNG = np.random.default_rng(17)
X, Y = (RNG.normal(size=(3, 12)).astype(np.float32) * 9 for _ in range(2))
X.reshape(-1)[:8] = [np.nan, np.inf, -np.inf, -0.0, 1e-40, 120, -120, 3e38]


def piece(b, x, start, size, *, axis=1, strides=None):
    starts, sizes = [0] * len(x.shape), list(x.shape)
    starts[axis], sizes[axis] = start, size
    return b.slice(x, starts, sizes, strides=strides)


def gates(b, pieces, chosen=(0, 1, 3)):
    """What a long short-term memory makes of its four gates, or of others."""
    return b.concat([b.sigmoid(pieces[place]) if place in chosen else b.tanh(pieces[place]) for place in range(4)], 1)


def of_a_split(b, x, _y, **options):
    return gates(b, b.split(x, 4, axis=1), **options)


def of_slices(b, x, _y):
    return b.concat([b.sigmoid(piece(b, x, start, size)) for start, size in ((8, 3), (1, 4), (5, 2))], 1)


def of_sums(b, x, y, starts=(0, 3, 6), shift=0):
    pairs = [(piece(b, x, start, 3), piece(b, y, start + shift, 3)) for start in starts]
    return b.concat([b.sigmoid(b.add(*pair)) for pair in pairs], 1)


def of_steps(b, x, y):
    """Gates that are made of gates."""
    state = gates(b, b.split(x, 4, axis=1))
    return gates(b, b.split(b.add(state, y), 4, axis=1))


def along_two_axes(b, x, _y):
    rows = [b.sigmoid(piece(b, x, row, 1, axis=0)) for row in (0, 2)]
    columns = [b.sigmoid(piece(b, x, column, 2)) for column in (0, 4)]
    return b.add(b.concat(columns, 1), b.reduce_sum(b.concat(rows, 0)))


def of_one_output(b, x, _y):
    """A sigmoid that is added to what its piece is, too."""
    first, second = b.split(x, 2, axis=1)
    return b.add(b.mul(b.sigmoid(first), b.sigmoid(second)), first)


def of_large_ones(b, x, _y):
    """Pieces of a value of which most is none of them."""
    wide = b.expand(b.reshape(x, [3, 12, 1]), [3, 12, 100])
    return b.concat([b.sigmoid(piece(b, wide, start, 2)) for start in (0, 7)], 1)


def of_halves(b, x, _y, times):
    wide = b.expand(b.reshape(x, [3, 12, 1]), [3, 12, times])
    return b.concat([b.sigmoid(half) for half in b.split(wide, 2, axis=1)], 1)


def of_a_corner(b, x, _y):
    return b.concat([b.sigmoid(b.slice(x, [0, start], [2, 3])) for start in (0, 6)], 1)


CUT = {
    "gates": (of_a_split, 1),
    "slices": (of_slices, 1),
    "sums of slices": (of_sums, 1),
    "gates of gates": (of_steps, 2),
    "pieces along two axes": (along_two_axes, 1),
    "pieces that others read": (of_one_output, 1),
    "one gate": (lambda b, x, y: of_a_split(b, x, y, chosen=(1,)), 1),
    "pieces that overlap": (lambda b, x, y: of_sums(b, x, y, (0, 2)), 2),
    "sums of other places": (lambda b, x, y: of_sums(b, x, y, (0, 3), shift=3), 2),
    "every other element": (
        lambda b, x, _y: b.concat([b.sigmoid(piece(b, x, start, 6, strides=[1, 2])) for start in (0, 6)], 1),
        2,
    ),
    "corners": (of_a_corner, 2),
    "pieces of much": (of_large_ones, 2),
    "halves of what is small": (lambda b, x, y: of_halves(b, x, y, 455), 1),
    "halves of what is large": (lambda b, x, y: of_halves(b, x, y, 456), 2),
    "differences": (
        lambda b, x, y: b.concat([b.sigmoid(b.sub(piece(b, x, at, 3), piece(b, y, at, 3))) for at in (0, 3)], 1),
        2,
    ),
}


@pytest.mark.parametrize("case", CUT)
async def test_sigmoids_of_pieces_are_pieces_of_one_to_the_same_bits(contexts, written, case):
    draw, count = CUT[case]
    got, expected = await on_both(contexts, draw, X, Y)
    assert written["Exp"] == count
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=4e-6, atol=0)
    with passes_left_out("sigmoids-of-slices"):
        before, _ = await on_both(contexts, draw, X, Y)
    np.testing.assert_array_equal(got, before)


async def test_sigmoids_that_are_gates_of_quantized_networks_stay(contexts, written):
    def draw(b, x):
        gated = b.mul(*(b.sigmoid(half) for half in b.split(x, 2, axis=1)))
        return b.cast(dynamically_quantized(b, gated)[0], "float32")

    await on_both(contexts, draw, Y)
    assert (written["Sigmoid"], written["Exp"]) == (2, 0)
