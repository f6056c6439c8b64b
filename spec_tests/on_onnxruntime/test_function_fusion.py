"""Functions drawn in several operators: which drawings are fused, and that their values stay."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, on_both
from spec_tests.support.rules import assert_becomes, assert_stays

pytest.importorskip("onnxruntime")

from webnn_py.devices.onnxruntime.passes.function_fusion import HARD_SWISH

RNG = np.random.default_rng(5)
SHAPE = (3, 5, 24)
SPECIAL = [np.inf, -np.inf, np.nan, 0, -0.0, 3, -3, -2.9999998, 1e30, -1e30, 1e-30, 1]
X = (RNG.normal(size=SHAPE) * 3).astype(np.float32)
X[0, 0, :12] = SPECIAL
SCALE = np.linspace(-0.5, 1.5, 24, dtype=np.float32)
FILTER = (RNG.normal(size=(16, 16, 3, 3)) / 12).astype(np.float32)


def number(b, value, shape=()):
    return b.constant(np.full(shape, value, np.float32))


def turn(turned, operator, *operands):
    return operator(*(operands[::-1] if turned else operands))


def hard_swish(
    b, x, *, offset=3.0, low=0.0, high=6.0, divisor=6.0, shape=(), early=False, turned=False, times=False, of=None,
    more=None,
):  # fmt: skip
    """The function as importers draw it, or almost so."""

    def divided(y):
        if times:
            return turn(turned, b.mul, y, number(b, 1 / divisor, shape))
        return b.div(y, number(b, divisor, shape))

    parts = [sum_ := turn(turned, b.add, x, number(b, offset, shape))]
    parts.append(gate := b.clamp(sum_, min_value=low, max_value=high))
    x = x if of is None else of(x)
    parts.append(product := divided(gate) if early else turn(turned, b.mul, x, gate))
    y = turn(turned, b.mul, x, product) if early else divided(product)
    return y if more is None else b.add(y, parts[more])


def rms(b, x, scale=SCALE):
    """The normalization by the root mean square as exporters draw it."""
    mean = b.reduce_mean(b.pow(x, number(b, 2)), axes=[2], keep_dimensions=True)
    inverse = b.reciprocal(b.sqrt(b.add(mean, number(b, 1e-6))))
    return b.mul(b.mul(x, inverse), b.constant(scale))


def drawing(function, **options):
    return lambda b, x: function(b, x, **options)


def gated(b, x):
    return b.mul(x, b.hard_sigmoid(x, alpha=1 / 6, beta=0.5))


BECOMES = {
    "divided last": (hard_swish, gated),
    "divided last, operands exchanged": (drawing(hard_swish, turned=True), gated),
    "multiplied last": (drawing(hard_swish, times=True), gated),
    "multiplied last, operands exchanged": (drawing(hard_swish, times=True, turned=True), gated),
    "divided first": (drawing(hard_swish, early=True), gated),
    "multiplied first, operands exchanged": (drawing(hard_swish, early=True, times=True, turned=True), gated),
    "of another": (lambda b, x: hard_swish(b, hard_swish(b, x)), lambda b, x: gated(b, gated(b, x))),
    "by numbers of one axis": (drawing(hard_swish, shape=(1,)), gated),
}
STAYS = {
    "of another offset": (drawing(hard_swish, offset=2.0), ""),
    "of another upper bound": (drawing(hard_swish, high=5.0), ""),
    "of another lower bound": (drawing(hard_swish, low=-1.0), ""),
    "of another divisor": (drawing(hard_swish, divisor=5.0), ""),
    "of another divisor, first": (drawing(hard_swish, divisor=5.0, early=True), ""),
    "of two values": (lambda b, x: hard_swish(b, x, of=b.neg), ""),
    "of another shape": (drawing(hard_swish, shape=(1, 1, 1, 1)), "the replacement has"),
    **{f"part {part} read elsewhere": (drawing(hard_swish, more=part), "is read elsewhere") for part in range(3)},
}


def test_drawings_of_a_hard_swish_are_fused():
    assert_becomes(HARD_SWISH, SHAPE, "float32", BECOMES)


def test_what_differs_from_the_drawings_stays():
    assert_stays(HARD_SWISH, SHAPE, STAYS)


def test_hard_swishes_of_float16_stay_as_they_are_rounded():
    def in_float16(b, x):
        gate = b.clamp(b.add(x, b.constant(np.float16(3))), min_value=0, max_value=6)
        return b.div(b.mul(x, gate), b.constant(np.float16(6)))

    assert_stays(HARD_SWISH, SHAPE, {"float16": (in_float16, "it is of float16")}, "float16")


async def test_fused_hard_swishes_have_the_values_of_what_was_drawn(contexts):
    with np.errstate(all="ignore"):
        for name, (draw, _) in BECOMES.items():
            got, expected = await on_both(contexts, draw, X)
            tolerance = HARD_SWISH.tolerance
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e19, 1e20, 3e38, 1e-30, 1e-45])
async def test_any_number_is_normalized_as_it_was_drawn(contexts, special):
    x = np.nan_to_num(X, posinf=1, neginf=-1)
    x[1, 2, 3:5] = special
    await assert_both(contexts, rms, x, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("draw", [rms, lambda b, x: rms(b, rms(b, x, scale=np.full(24, 1e19, np.float32)))])
async def test_a_mean_of_squares_whose_sum_is_too_large_is_a_number(contexts, draw):
    got, expected = await on_both(contexts, draw, np.full((1, 2, 24), 1e19, np.float32))
    np.testing.assert_allclose(expected[0, 0], SCALE, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)


async def test_hard_swishes_behind_convolutions_are_what_was_drawn_of_any_number(contexts, written):
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
