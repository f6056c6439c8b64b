"""A hard swish drawn in four operators is written as two, which onnxruntime makes a part of a convolution."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import on_both

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(5)
SPECIAL = [np.inf, -np.inf, np.nan, 0, -0.0, 3, -3, -2.9999998, 1e30, -1e30, 1e-30]
X = np.concatenate([RNG.normal(size=500) * 3, SPECIAL]).reshape(7, -1, 1).astype(np.float32)
FILTER = (RNG.normal(size=(16, 16, 3, 3)) / 12).astype(np.float32)


def number(b, value, shape=()):
    return b.constant(np.full(shape, value, np.float32))


def hard_swish(b, x, *, offset=3.0, low=0.0, high=6.0, divisor=6.0, shape=(), early=False, turned=False, times=False):
    """The function as importers draw it, or almost so."""

    def both(operator, *operands):
        return operator(*(operands[::-1] if turned else operands))

    def divided(y):
        return both(b.mul, y, number(b, 1 / divisor, shape)) if times else b.div(y, number(b, divisor, shape))

    gate = b.clamp(both(b.add, x, number(b, offset, shape)), min_value=low, max_value=high)
    return both(b.mul, x, divided(gate)) if early else divided(both(b.mul, x, gate))


def of_more(b, x, place):
    """One of which a part is read once more."""
    sum_ = b.add(x, number(b, 3))
    gate = b.clamp(sum_, min_value=0, max_value=6)
    product = b.mul(x, gate)
    parts = [sum_, gate, product]
    return b.add(b.div(product, number(b, 6)), parts[place])


def of_another(b, x):
    """One whose product is of another value."""
    return b.div(b.mul(b.neg(x), b.clamp(b.add(x, number(b, 3)), min_value=0, max_value=6)), number(b, 6))


def of_itself(b, x):
    """One whose gate is squared."""
    gate = b.div(b.clamp(b.add(x, number(b, 3)), min_value=0, max_value=6), number(b, 6))
    return b.mul(gate, gate)


def turned_over(b, x):
    """What six is divided by."""
    return b.div(number(b, 6), b.mul(x, b.clamp(b.add(x, number(b, 3)), min_value=0, max_value=6)))


DRAWINGS = {
    "divided last": (hard_swish, 1),
    "divided last, turned": (lambda b, x: hard_swish(b, x, turned=True), 1),
    "multiplied last": (lambda b, x: hard_swish(b, x, times=True), 1),
    "multiplied last, turned": (lambda b, x: hard_swish(b, x, times=True, turned=True), 1),
    "divided first": (lambda b, x: hard_swish(b, x, early=True), 1),
    "multiplied first, turned": (lambda b, x: hard_swish(b, x, early=True, times=True, turned=True), 1),
    "of one of another": (lambda b, x: hard_swish(b, hard_swish(b, x)), 2),
    "by numbers of one axis": (lambda b, x: hard_swish(b, x, shape=(1,)), 1),
    "between reshapes": (lambda b, x: b.reshape(hard_swish(b, b.reshape(x, [x.shape[1], 7])), x.shape), 1),
    "of another offset": (lambda b, x: hard_swish(b, x, offset=2.0), 0),
    "of another range": (lambda b, x: hard_swish(b, x, high=5.0), 0),
    "of another lower bound": (lambda b, x: hard_swish(b, x, low=-1.0), 0),
    "of another divisor": (lambda b, x: hard_swish(b, x, divisor=5.0), 0),
    "of another divisor, first": (lambda b, x: hard_swish(b, x, divisor=5.0, early=True), 0),
    "whose sum is read otherwise": (lambda b, x: of_more(b, x, 0), 0),
    "whose gate is read otherwise": (lambda b, x: of_more(b, x, 1), 0),
    "whose product is read otherwise": (lambda b, x: of_more(b, x, 2), 0),
    "of two values": (of_another, 0),
    "of itself": (of_itself, 0),
    "turned over": (turned_over, 0),
}


@pytest.mark.parametrize("case", DRAWINGS)
async def test_a_hard_swish_as_it_is_drawn_is_a_product_with_a_hard_sigmoid(contexts, written, case):
    draw, count = DRAWINGS[case]
    got, expected = await on_both(contexts, draw, X)
    np.testing.assert_allclose(got, expected, rtol=5e-7, atol=5e-7)
    assert (written["HardSigmoid"], written["Clip"] > 0) == (count, count == 0)


async def test_a_hard_swish_of_another_shape_stays(contexts, written):
    got, expected = await on_both(contexts, lambda b, x: hard_swish(b, b.reshape(x, []), shape=(1,)), X[:1, 0])
    np.testing.assert_allclose(got, expected, rtol=5e-7, atol=5e-7)
    assert (got.shape, written["HardSigmoid"]) == ((1,), 0)


async def test_a_hard_swish_drawn_in_float16_stays_as_it_is_rounded(contexts, written):
    def draw(b, x):
        three, six = (b.constant(np.float16(value)) for value in (3, 6))
        return b.div(b.mul(x, b.clamp(b.add(x, three), min_value=0, max_value=6)), six)

    got, expected = await on_both(contexts, draw, X.clip(-9, 9).round(2).astype(np.float16))
    np.testing.assert_array_equal(got, expected)
    assert written["HardSigmoid"] == 0


async def test_behind_convolutions_it_is_what_was_drawn_of_any_number(contexts, written):
    def draw(b, x):
        for _ in range(2):
            x = hard_swish(b, b.conv2d(x, b.constant(FILTER), padding=[1, 1, 1, 1]))
        return x

    images = RNG.normal(size=(1, 16, 24, 24)).astype(np.float32) * 3
    images[0, 3, 2, 2], images[0, 4, 2, 20], images[0, 5, 20, 3], images[0, 6, 20, 20] = np.nan, np.inf, -np.inf, 1e30
    got, expected = await on_both(contexts, draw, images)
    assert np.isnan(expected).any()
    assert np.isfinite(expected).sum() > 1000
    is_reached = np.abs(expected) > 1e10  # by the large number, of which sums may leave next to nothing
    largest = np.abs(expected[is_reached & np.isfinite(expected)]).max()
    np.testing.assert_allclose(got[~is_reached], expected[~is_reached], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[is_reached], expected[is_reached], rtol=1e-4, atol=1e-6 * largest)
    assert (written["HardSigmoid"], written["Clip"]) == (2, 0)
