"""Defects that random graphs found, on every device; ``python -m spec_tests.labs.oracles`` looks for more."""

import numpy as np
import pytest

from spec_tests.support.computing import result_of

MANY = 4000
"""More than kernels for few elements take."""


async def test_one_condition_chooses_for_many_elements(context):
    x = np.arange(MANY, dtype=np.float32)
    given = {"x": x, "condition": np.array(2, np.uint8)}
    got = await result_of(context, lambda b, x, condition: b.where(condition, x, b.constant(np.float32(-1))), **given)
    np.testing.assert_array_equal(got, x)


async def test_a_quotient_is_rounded_to_float32_before_it_is_quantized(context):
    """The quotients are an odd number of 25 bits, and midway between two integers: float32 has neither."""
    x, scale = np.float32([2.4892652e7, 1843, -1843, 3.5]), np.float16([0.1]).astype(np.float32)
    expected = np.rint(x / scale).astype(np.int32) + 3
    assert expected[1] == 18434 + 3
    got = await result_of(context, lambda b, x: b.quantize_linear(x, b.constant(scale), b.constant(np.int32([3]))), x=x)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_constant", [True, False], ids=["a constant filter", "a given filter"])
@pytest.mark.parametrize("sizes", [("nhwc", 6, 2, 1), ("nchw", 4, 4, 3), ("nchw", 3, 1, 1)])
async def test_padding_is_multiplied_by_a_filter_that_is_not_finite(context, sizes, is_constant):
    """0 · Infinity is NaN, also in windows where only such an element is outside the image.

    In small images compilers know some products with padding, and take them for 0 where they cannot know the filter.
    """
    layout, channels, groups, window = sizes
    size = 3 if is_constant else 9
    filters = np.ones((channels, channels // groups, window, window), np.float32)
    filters[:, 0, 0, 0] = np.inf

    def draw(b, x, weights=None):
        weights = b.constant(filters) if is_constant else weights
        if layout == "nchw":
            return b.conv2d(x, weights, padding=[1] * 4, groups=groups)
        x = b.transpose(x, permutation=[0, 2, 3, 1])
        y = b.conv2d(x, weights, padding=[1] * 4, groups=groups, input_layout="nhwc")
        return b.transpose(y, permutation=[0, 3, 1, 2])

    given = {} if is_constant else {"weights": filters}
    got = await result_of(context, draw, x=np.ones((1, channels, size, size), np.float32), **given)
    expected = np.full_like(got, np.inf)
    expected[:, :, 0] = expected[:, :, :, 0] = np.nan
    if window == 1:
        expected[:, :, -1] = expected[:, :, :, -1] = np.nan
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "others"), [("alpha", {"beta": 1}), ("beta", {"alpha": 1})])
async def test_zero_times_infinity_is_nan_in_gemm(context, name, others):
    given = {"a": np.ones((2, 3), np.float32), "c": np.ones((2, 4), np.float32)}
    given["a" if name == "alpha" else "c"][0, 0] = np.inf

    def draw(b, a, c):
        return b.gemm(a, b.constant(np.ones((3, 4), np.float32)), c=c, **{name: 0}, **others)

    row = [np.nan] * 4 if name == "alpha" else [np.nan, 3, 3, 3]
    rest = [1] * 4 if name == "alpha" else [3] * 4
    np.testing.assert_array_equal(await result_of(context, draw, **given), [row, rest])


async def test_a_transposed_convolution_multiplies_nothing_between_its_windows(context):
    weights = np.ones((1, 1, 3, 3), np.float32)
    weights[0, 0, 0, 0] = np.inf
    image = np.ones((1, 1, 2, 2), np.float32)
    got = await result_of(context, lambda b, x: b.conv_transpose2d(x, b.constant(weights), strides=[2, 2]), x=image)
    expected = np.outer([1, 1, 2, 1, 1], [1, 1, 2, 1, 1]).astype(np.float32)
    expected[:3:2, :3:2] = np.inf
    np.testing.assert_array_equal(got[0, 0], expected)
