"""The product of a value and its sigmoid is three operators behind a convolution, four elsewhere, for five as drawn."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import on_both

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(11)
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0, 1e-40, -1e-40, 3e38, -3e38, -120, -88.7, -88, 88, 89, 120]
X = np.array([*RNG.normal(size=165) * 6, *SPECIAL], np.float32).reshape(2, 3, 5, 6)
FILTER = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)
FILTER.flags.writeable = False
BIAS = RNG.normal(size=4).astype(np.float32)
STEPS = ("Exp", "Min", "Add", "Sub", "Neg", "Mul", "Div")


LEFT = 4e-37
"""More than what is lost where exp overflows."""


def assert_near(got, expected, **tolerances):
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), **tolerances)


def silu(b, x):
    return b.mul(x, b.sigmoid(x))


def convolved(b, x, *, bias=True):
    return b.conv2d(x, b.constant(FILTER), bias=b.constant(BIAS) if bias else None, padding=[1, 1, 1, 1])


def normalized(b, x):
    """A convolution that a normalization is folded into."""
    mean, variance = (b.constant(np.array(values, np.float32)) for values in ([0, 1, 0, -1], [1, 2, 3, 4]))
    return b.batch_normalization(convolved(b, x), mean, variance)


def of_one_more_reader(b, x):
    y = convolved(b, x)
    return b.sub(silu(b, y), y)


def with_its_sigmoid(b, x):
    sigmoid = b.sigmoid(x)
    return b.sub(b.mul(x, sigmoid), sigmoid)


BEHIND_CONVOLUTIONS = {"Exp": 1, "Sub": 1, "Div": 1}
ALONE = {"Neg": 1, **BEHIND_CONVOLUTIONS}
AS_DRAWN = {"Min": 1, "Exp": 1, "Add": 1, "Div": 1, "Mul": 1}
DRAWINGS = {
    "by itself": (silu, ALONE),
    "turned": (lambda b, x: b.mul(b.sigmoid(x), x), ALONE),
    "behind a convolution": (lambda b, x: silu(b, convolved(b, x)), BEHIND_CONVOLUTIONS),
    "behind one without bias": (lambda b, x: silu(b, convolved(b, x, bias=False)), BEHIND_CONVOLUTIONS),
    "behind a normalized one": (lambda b, x: silu(b, normalized(b, x)), BEHIND_CONVOLUTIONS),
    "of one that is read once more": (of_one_more_reader, {"Neg": 1, "Exp": 1, "Sub": 2, "Div": 1}),
    "behind one of a filter that is given": (lambda b, x: silu(b, b.conv2d(x, x)), ALONE),
    "two behind each other": (lambda b, x: silu(b, silu(b, x)), dict.fromkeys(ALONE, 2)),
    "with its sigmoid": (with_its_sigmoid, {**AS_DRAWN, "Sub": 1}),
    "of another value": (lambda b, x: b.mul(b.abs(x), b.sigmoid(x)), AS_DRAWN),
}


@pytest.mark.parametrize("case", DRAWINGS)
async def test_products_of_values_and_their_sigmoids_are_fewer_operators(contexts, written, case):
    draw, steps = DRAWINGS[case]
    got, expected = await on_both(contexts, draw, X)
    by_convolutions = got.shape != X.shape  # whose sums are of another order
    assert_near(got, expected, rtol=2e-5 if by_convolutions else 2e-6, atol=1e-5 if by_convolutions else LEFT)
    assert {step: written[step] for step in STEPS if written[step]} == steps


async def test_small_and_special_numbers_are_as_they_are_on_numpy(contexts):
    numbers = np.array([np.nan, np.inf, -np.inf, 0, 3e38, -3e38, -20, -50, -80, -87, 20, 100], np.float32)
    got, expected = await on_both(contexts, silu, numbers)
    assert_near(got, expected, rtol=4e-7, atol=0)
    assert np.isnan(got[:3]).tolist() == [True, False, True]


async def test_one_of_float16_stays_as_it_is_rounded(contexts, written):
    got, expected = await on_both(contexts, silu, X.clip(-9, 9).round(2).astype(np.float16))
    assert_near(got, expected, rtol=2e-3, atol=1e-6)
    assert written["Neg"] == 0


async def test_two_convolutions_of_one_filter_are_negated_apart(contexts):
    """Constants that are negated are others than those that are not, though they have one key."""

    def draw(b, x):
        filter_ = b._constant_shared(FILTER, b"filter")
        return b.sub(silu(b, b.conv2d(x, filter_)), b.conv2d(x, filter_))

    got, expected = await on_both(contexts, draw, RNG.normal(size=(1, 3, 9, 9)).astype(np.float32))
    assert_near(got, expected, rtol=1e-5, atol=1e-5)


async def test_what_is_pooled_behind_is_not_looked_at(contexts, written):
    def draw(b, x):
        return b.max_pool2d(silu(b, convolved(b, x)), window_dimensions=[2, 2])

    got, expected = await on_both(contexts, draw, RNG.normal(size=(1, 3, 9, 9)).astype(np.float32))
    assert_near(got, expected, rtol=1e-5, atol=1e-5)
    assert (written["GlobalAveragePool"], written["ReduceSumSquare"], written["MaxPool"]) == (0, 1, 1)
