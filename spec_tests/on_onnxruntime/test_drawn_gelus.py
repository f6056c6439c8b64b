"""A gelu that is drawn in five operators is written as one, and is NaN of -Infinity as those are."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import on_both

pytest.importorskip("onnxruntime")

ROOT = 2**0.5
X = np.concatenate([np.random.default_rng(5).normal(size=500) * 3, [np.inf, -np.inf, np.nan, 0, 1e30, -1e30, 1]])
X = X.reshape(3, -1, 1).astype(np.float32)


def number(b, value, shape=()):
    return b.constant(np.full(shape, value, np.float32))


def gelu(b, x, *, root=ROOT, one=1.0, half=0.5, shape=(), late=True, turned=False):
    """Gelu as importers draw it, or almost so."""

    def both(operator, *operands):
        return operator(*(operands[::-1] if turned else operands))

    sum_ = both(b.add, b.erf(b.div(x, number(b, root, shape))), number(b, one, shape))
    factor = number(b, half, shape)
    if late:
        return both(b.mul, both(b.mul, x, sum_), factor)
    return both(b.mul, both(b.mul, x, factor), sum_)


def of_one_more(b, x):
    """One whose error function is read once more."""
    function = b.erf(b.div(x, number(b, ROOT)))
    return b.add(b.mul(b.mul(x, b.add(function, number(b, 1))), number(b, 0.5)), function)


def of_another(b, x):
    """One whose product is of another value."""
    return b.mul(b.mul(b.neg(x), b.add(b.erf(b.div(x, number(b, ROOT))), number(b, 1))), number(b, 0.5))


DRAWINGS = {
    "halved last": (gelu, 1),
    "halved last, turned": (lambda b, x: gelu(b, x, turned=True), 1),
    "halved first": (lambda b, x: gelu(b, x, late=False), 1),
    "halved first, turned": (lambda b, x: gelu(b, x, late=False, turned=True), 1),
    "of one of another": (lambda b, x: gelu(b, gelu(b, x)), 2),
    "by numbers of one axis": (lambda b, x: gelu(b, x, shape=(1,)), 1),
    "between reshapes": (lambda b, x: b.reshape(gelu(b, b.reshape(x, [x.shape[1], 3])), x.shape), 1),
    "of a half": (lambda b, x: gelu(b, x, half=0.25), 0),
    "of another root": (lambda b, x: gelu(b, x, root=1.5), 0),
    "of another sum": (lambda b, x: gelu(b, x, one=2.0), 0),
    "that is read otherwise": (of_one_more, 0),
    "of two values": (of_another, 0),
    "of another shape": (lambda b, x: gelu(b, x, shape=(1, 1, 1, 1)), 0),
}


@pytest.mark.parametrize("case", DRAWINGS)
async def test_a_gelu_as_it_is_drawn_is_one_operator(contexts, written, case):
    draw, count = DRAWINGS[case]
    got, expected = await on_both(contexts, draw, X)
    # onnxruntime makes 0 of the lowest numbers, and so it did of the five operators.
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)
    assert count == 0 or np.isnan(got.ravel()[-6])
    assert (written["Gelu"], written["Erf"] > 0) == (count, count == 0)


async def test_a_gelu_drawn_in_float16_stays_as_it_is_rounded(contexts, written):
    def draw(b, x):
        half, one, root = (b.constant(np.float16(value)) for value in (0.5, 1, ROOT))
        return b.mul(b.mul(x, b.add(b.erf(b.div(x, root)), one)), half)

    got, expected = await on_both(contexts, draw, X.clip(-9, 9).round(2).astype(np.float16))
    np.testing.assert_allclose(got.astype(np.float32), expected.astype(np.float32), rtol=2e-3, atol=1e-6)
    assert written["Gelu"] == 0
