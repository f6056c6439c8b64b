"""Products of what is dequantized, which are of integers where that means the same."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, on_both

pytest.importorskip("onnxruntime")

from spec_tests.onnx_models.single_node import Random

RANDOM = Random(29)
RNG, integers = RANDOM.rng, RANDOM.integers
LENGTH = 64


def floats(value, *shape):
    return np.full(shape, value, np.float32)


def dequantized(b, integers, scale, zero_point):
    x = b.constant(integers) if isinstance(integers, np.ndarray) else integers
    return b.dequantize_linear(x, b.constant(scale), b.constant(zero_point))


def product(b, x, *others):
    scale, zero_point, *second = others
    return b.matmul(dequantized(b, x, scale, zero_point), dequantized(b, *second))


def exactly(integers, scale, zero_point):
    return (integers.astype(np.float64) - zero_point) * scale.astype(np.float64)


UNSIGNED, SIGNED = integers("uint8", 2, 7, LENGTH), integers("int8", LENGTH, 5)
POINT = np.full((1, 1, 1), 131, np.uint8)
NONE = np.zeros((1, 5), np.int8)
STEP = floats(0.02, 1, 1, 1)
STEPS = RNG.uniform(0.001, 0.01, (1, 5)).astype(np.float32)
LONG = 33_026
EXTREMES = np.where(np.arange(5 * LENGTH).reshape(LENGTH, 5) % 2, 127, -128).astype(np.int8)

AS_INTEGERS = {
    "by one scale for each column": (UNSIGNED, STEP, POINT, SIGNED, STEPS, NONE),
    "by one scale": (UNSIGNED, STEP, POINT, SIGNED, floats(0.01, 1, 1), np.full((1, 1), -3, np.int8)),
    "by one zero point for each column": (UNSIGNED, STEP, POINT, SIGNED, STEPS, integers("int8", 1, 5)),
    "of uint8": (UNSIGNED, STEP, POINT, integers("uint8", LENGTH, 5), STEPS, integers("uint8", 1, 5)),
    "of extremes": (np.full((2, LENGTH), 255, np.uint8), STEP[0], np.zeros((1, 1), np.uint8), EXTREMES, STEPS, NONE),
    "of several matrices": (
        UNSIGNED,
        STEP,
        POINT,
        integers("int8", 2, LENGTH, 5),
        floats(0.01, 1, 1, 1),
        np.full((1, 1, 1), 9, np.int8),
    ),
    "by two negative scales": (UNSIGNED, -STEP, POINT, SIGNED, -STEPS, NONE),
    "whose sums are small as the matrix is": (
        np.full((2, LONG), 255, np.uint8),
        STEP[0],
        np.zeros((1, 1), np.uint8),
        np.where(np.arange(LONG * 5).reshape(LONG, 5) % 3, 1, -128).astype(np.int8),
        STEPS,
        NONE,
    ),
}


@pytest.mark.parametrize("case", AS_INTEGERS)
async def test_a_product_of_what_is_dequantized_is_one_of_integers(contexts, written, case):
    x, *others = AS_INTEGERS[case]
    got, _ = await on_both(contexts, lambda b, x: product(b, x, *others), x)
    scale, zero_point, *second = others
    factors = exactly(x, scale.reshape(()), zero_point.reshape(())), exactly(*second)
    # One rounding each of the sum, of the scales' product and of the result.
    np.testing.assert_allclose(got, factors[0] @ factors[1], rtol=3e-7, atol=0)
    assert (written["MatMulIntegerToFloat"], written["MatMul"]) == (1, 0)


FURTHER = {"a": UNSIGNED, "a_scale": STEP, "a_point": POINT, "b": SIGNED, "b_scale": STEPS, "b_point": NONE}
AS_FLOATS = {
    "with scales of rows": {"b_scale": RNG.uniform(0.001, 0.01, (LENGTH, 1)), "b_point": np.zeros((LENGTH, 1))},
    "with scales of blocks": {"b_scale": RNG.uniform(0.001, 0.01, (2, 5)), "b_point": np.zeros((2, 5))},
    "with a scale for each of x's rows": {"a_scale": floats(0.1, 1, 7, 1), "a_point": np.zeros((1, 7, 1))},
    "with an infinite scale": {"a_scale": floats(np.inf, 1, 1, 1)},
    "with a scale that is not a number": {"b_scale": np.where(np.arange(5) == 2, np.nan, STEPS)},
    "with a scale of 0": {"b_scale": np.where(np.arange(5) == 2, 0, STEPS)},
    "with scales of two signs": {"b_scale": -STEPS},
    "with steps that are too small": {"a_scale": floats(1e-20, 1, 1, 1), "b_scale": STEPS * 1e-20},
    "with elements that are too large": {"a_scale": floats(3e36, 1, 1, 1), "b_scale": STEPS * 1e-30},
    "with sums that may be too large": {"a_scale": floats(1e20, 1, 1, 1), "b_scale": STEPS * 1e15},
    "of rows that are too short": {"a": UNSIGNED[..., :63], "b": SIGNED[:63]},
    "whose sums may be too large": {
        "a": integers("uint8", 1, 2, LONG),
        "b": np.full((LONG, 1), 255, np.uint8),
        "b_scale": floats(0.01, 1, 1),
        "b_point": np.zeros((1, 1), np.uint8),
    },
    "of int8": {"a": UNSIGNED.view(np.int8)},
    "of int32": {"b": SIGNED.astype(np.int32)},
}


@pytest.mark.parametrize("case", AS_FLOATS)
async def test_a_product_that_might_mean_something_else_stays_one_of_floats(contexts, written, case):
    given = {**FURTHER, **AS_FLOATS[case]}
    for name, of in (("a_point", "a"), ("b_point", "b")):
        given[name] = given[name].astype(given[of].dtype)
    given = {name: array.astype(np.float32) if "scale" in name else array for name, array in given.items()}
    x, *others = given.values()
    got, expected = await on_both(contexts, lambda b, x: product(b, x, *others), x)
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6 * largest)
    assert (written["MatMulIntegerToFloat"], written["MatMul"]) == (0, 1)


async def test_scales_that_the_graph_computes_leave_a_product_one_of_floats(contexts, written):
    def draw(b, x, y):
        scaled = b.dequantize_linear(x, b.exp(y), b.constant(POINT))
        return b.matmul(scaled, dequantized(b, SIGNED, STEPS, NONE))

    await assert_both(contexts, draw, UNSIGNED, floats(-3, 1, 1, 1), rtol=1e-4, atol=1e-5)
    assert written["MatMulIntegerToFloat"] == 0


@pytest.mark.parametrize(("data_type", "is_integer"), [("uint8", True), ("int8", False)])
async def test_the_second_factor_may_be_computed_if_it_is_unsigned(contexts, written, data_type, is_integer):
    a, b = integers("uint8", 2, 3, LENGTH), integers(data_type, 2, LENGTH, 4)
    scale, point = floats(0.01, 1, 1, 1), np.full((1, 1, 1), 7, data_type)
    got, _ = await on_both(contexts, lambda builder, x, y: product(builder, x, STEP, POINT, y, scale, point), a, b)
    exact = exactly(a, STEP, POINT) @ exactly(b, scale, point)
    np.testing.assert_allclose(got, exact, rtol=1e-6 if is_integer else 1e-3, atol=0 if is_integer else 1e-4)
    assert written["MatMulIntegerToFloat"] == is_integer


async def test_what_is_dequantized_stays_for_others_that_read_it(contexts, written):
    def draw(b, x):
        y = dequantized(b, x, STEP, POINT)
        return b.concat([b.matmul(y, dequantized(b, SIGNED, STEPS, NONE)), b.neg(y)], 2)

    got, expected = await on_both(contexts, draw, UNSIGNED)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got[..., 5:], expected[..., 5:])
    assert (written["MatMulIntegerToFloat"], written["DequantizeLinear"]) == (1, 1)


async def test_products_may_share_a_matrix(contexts, written):
    def draw(b, x, y):
        matrix = dequantized(b, SIGNED, STEPS, NONE)
        return b.add(*(b.matmul(dequantized(b, operand, STEP, POINT), matrix) for operand in (x, y)))

    await assert_both(contexts, draw, UNSIGNED, UNSIGNED[::-1].copy(), rtol=1e-4, atol=1e-5)
    assert written["MatMulIntegerToFloat"] == 2
