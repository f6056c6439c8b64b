"""A normalization by the root mean square, drawn in six operators or seven, is written as onnxruntime's one."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import on_both

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(7)
X = (RNG.normal(size=(2, 5, 24)) * 3).astype(np.float32)
SCALE = np.linspace(-0.5, 1.5, 24, dtype=np.float32)
NORM = "SimplifiedLayerNormalization"


def number(b, value, shape=()):
    return b.constant(np.full(shape, value, np.float32))


def norm(
    b,
    x,
    *,
    by="reciprocal",
    epsilon=1e-6,
    power=2.0,
    squared=False,
    turned=False,
    axes=(2,),
    kept=True,
    shape=(),
    scale=SCALE,
    of=None,
):
    """The function as exporters draw it, or almost so."""

    def both(operator, *operands):
        return operator(*(operands[::-1] if turned else operands))

    squares = b.mul(x, x) if squared else b.pow(x, number(b, power, shape))
    mean = b.reduce_mean(squares, axes=[*axes], keep_dimensions=kept)
    root = b.sqrt(both(b.add, mean, number(b, epsilon, shape)))
    x = x if of is None else of(x)
    if by == "root":
        normalized = b.div(x, root)
    else:
        inverse = b.reciprocal(root) if by == "reciprocal" else b.div(number(b, 1 if by == "one" else 2, shape), root)
        normalized = both(b.mul, x, inverse)
    return both(b.mul, normalized, b.constant(scale))


def of_more(b, x, place):
    """One of which a part is read once more."""
    squares = b.pow(x, number(b, 2))
    mean = b.reduce_mean(squares, axes=[2], keep_dimensions=True)
    sum_ = b.add(mean, number(b, 1e-6))
    root = b.sqrt(sum_)
    inverse = b.reciprocal(root)
    normalized = b.mul(x, inverse)
    parts = [squares, mean, sum_, root, inverse, normalized]
    return b.add(b.mul(normalized, b.constant(SCALE)), parts[place])


def by_itself(b, x):
    """One that is multiplied by what it has made, not by a scale."""
    root = b.sqrt(b.add(b.reduce_mean(b.mul(x, x), axes=[2], keep_dimensions=True), number(b, 1e-6)))
    normalized = b.div(x, root)
    return b.mul(normalized, normalized)


DRAWINGS = {
    "by a reciprocal": (norm, 1),
    "by a quotient of 1": (lambda b, x: norm(b, x, by="one"), 1),
    "by the root": (lambda b, x: norm(b, x, by="root"), 1),
    "of a product": (lambda b, x: norm(b, x, squared=True), 1),
    "turned": (lambda b, x: norm(b, x, by="one", turned=True), 1),
    "with numbers of one axis": (lambda b, x: norm(b, x, shape=(1,)), 1),
    "of a large epsilon": (lambda b, x: norm(b, x, epsilon=2.5), 1),
    "of one of another": (lambda b, x: norm(b, norm(b, x)), 2),
    "of no epsilon": (lambda b, x: norm(b, x, epsilon=0.0), 0),
    "of the third power": (lambda b, x: norm(b, b.abs(x), power=3.0), 0),
    "of another quotient": (lambda b, x: norm(b, x, by="two"), 0),
    "along another axis": (lambda b, x: norm(b, x, axes=(1,)), 0),
    "along two axes": (lambda b, x: norm(b, x, axes=(1, 2)), 0),
    "along no axis of its own": (lambda b, x: norm(b, b.slice(x, [0, 0, 0], [1, 1, 24]), axes=(2,), kept=False), 0),
    "of a scale for each number": (lambda b, x: norm(b, x, scale=np.tile(SCALE, (5, 1))), 0),
    "of a scale for all": (lambda b, x: norm(b, x, scale=np.full(1, 3, np.float32)), 0),
    "of two values": (lambda b, x: norm(b, x, of=b.neg), 0),
    "of two values by the root": (lambda b, x: norm(b, x, of=b.neg, by="root"), 0),
    "by itself": (by_itself, 0),
    **{
        f"whose {part} is read otherwise": (lambda b, x, place=place: of_more(b, x, place), 0)
        for place, part in enumerate(("square", "mean", "sum", "root", "reciprocal", "product"))
    },
}


@pytest.mark.parametrize("case", DRAWINGS)
async def test_a_normalization_as_it_is_drawn_is_one_node(contexts, written, case):
    draw, count = DRAWINGS[case]
    got, expected = await on_both(contexts, draw, X)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)
    assert written[NORM] == count


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e19, 1e20, 3e38, 1e-30, 1e-45])
async def test_any_number_is_normalized_as_it_was_drawn(contexts, special):
    x = X.copy()
    x[1, 2, 3:5] = special
    got, expected = await on_both(contexts, norm, x)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)


async def test_a_mean_of_squares_whose_sum_is_too_large_is_a_number(contexts, written):
    x = np.full((1, 2, 24), 1e19, np.float32)
    got, expected = await on_both(contexts, norm, x)
    assert written[NORM] == 1
    np.testing.assert_allclose(expected[0, 0], SCALE, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)


async def test_one_behind_another_tells_of_its_own_sums(contexts, written):
    huge = np.full(24, 1e19, np.float32)
    got, expected = await on_both(contexts, lambda b, x: norm(b, norm(b, x, scale=huge)), np.ones_like(X))
    assert written[NORM] == 2
    np.testing.assert_allclose(expected[0, 0], SCALE, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)


async def test_rows_of_zeros_stay(contexts):
    got, _ = await on_both(contexts, norm, np.zeros_like(X))
    np.testing.assert_array_equal(got, 0)


async def test_one_drawn_in_float16_stays_as_it_is_rounded(contexts, written):
    def draw(b, x):
        two, epsilon = (b.constant(np.float16(value)) for value in (2, 1e-3))
        root = b.sqrt(b.add(b.reduce_mean(b.pow(x, two), axes=[2], keep_dimensions=True), epsilon))
        return b.mul(b.div(x, root), b.constant(SCALE.astype(np.float16)))

    got, expected = await on_both(contexts, draw, X.astype(np.float16))
    np.testing.assert_allclose(*(each.astype(np.float32) for each in (got, expected)), rtol=2e-3, atol=1e-3)
    assert written[NORM] == 0
