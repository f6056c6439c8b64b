"""Defects that random graphs found, on every device; ``python -m spec_tests.labs.oracles`` looks for more."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

MANY = 4000
"""More than kernels for few elements take."""


async def test_one_condition_chooses_for_many_elements(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[MANY])
    condition = builder.input("condition", data_type="uint8", shape=[])
    given = {"x": np.arange(MANY, dtype=np.float32), "condition": np.array(2, np.uint8)}
    outputs = {"y": builder.where(condition, x, builder.constant(np.float32(-1)))}
    np.testing.assert_array_equal((await compute(context, builder, given, outputs))["y"], given["x"])


async def test_a_quotient_is_rounded_to_float32_before_it_is_quantized(context):
    """To an odd number of 25 bits, or midway between two integers: float32 has none there."""
    builder = MLGraphBuilder(context)
    given = {"x": np.float32([2.4892652e7, 1843, -1843, 3.5])}
    x = builder.input("x", data_type="float32", shape=[4])
    scale = builder.constant(np.float16([0.1]).astype(np.float32))
    y = builder.quantize_linear(x, scale, builder.constant(np.int32([3])))
    quotients = given["x"] / np.float32(np.float16(0.1))
    expected = np.rint(quotients).astype(np.int32) + 3
    assert expected[1] == 18434 + 3
    np.testing.assert_array_equal((await compute(context, builder, given, {"y": y}))["y"], expected)


@pytest.mark.parametrize("is_constant", [True, False], ids=["a constant filter", "a given filter"])
@pytest.mark.parametrize("sizes", [("nhwc", 6, 2, 1), ("nchw", 4, 4, 3), ("nchw", 3, 1, 1)])
async def test_padding_is_multiplied_by_a_filter_that_is_not_finite(context, sizes, is_constant):
    """0 · Infinity is NaN, also in windows of which only such an element lies outside of the image.

    In small images compilers know some products with padding, and take them for 0 where they cannot know the filter.
    """
    builder = MLGraphBuilder(context)
    layout, channels, groups, window = sizes
    size = 3 if is_constant else 9
    given = {
        "x": np.ones((1, channels, size, size), np.float32),
        "filter": np.ones((channels, channels // groups, window, window), np.float32),
    }
    given["filter"][:, 0, 0, 0] = np.inf
    x = builder.input("x", data_type="float32", shape=given["x"].shape)
    if is_constant:
        filter_ = builder.constant(given.pop("filter"))
    else:
        filter_ = builder.input("filter", data_type="float32", shape=given["filter"].shape)
    x = x if layout == "nchw" else builder.transpose(x, permutation=[0, 2, 3, 1])
    y = builder.conv2d(x, filter_, padding=[1, 1, 1, 1], groups=groups, input_layout=layout)
    y = y if layout == "nchw" else builder.transpose(y, permutation=[0, 3, 1, 2])
    got = (await compute(context, builder, given, {"y": y}))["y"]
    expected = np.full_like(got, np.inf)
    expected[:, :, 0] = expected[:, :, :, 0] = np.nan
    if window == 1:
        expected[:, :, -1] = expected[:, :, :, -1] = np.nan
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "others"), [("alpha", {"beta": 1}), ("beta", {"alpha": 1})])
async def test_zero_times_what_is_not_finite_is_nan_in_gemm(context, name, others):
    builder = MLGraphBuilder(context)
    given = {"a": np.ones((2, 3), np.float32), "c": np.ones((2, 4), np.float32)}
    given["a" if name == "alpha" else "c"][0, 0] = np.inf
    a, c = (builder.input(key, data_type="float32", shape=array.shape) for key, array in given.items())
    y = builder.gemm(a, builder.constant(np.ones((3, 4), np.float32)), c=c, **{name: 0}, **others)
    got = (await compute(context, builder, given, {"y": y}))["y"]
    row = [np.nan] * 4 if name == "alpha" else [np.nan, 3, 3, 3]
    np.testing.assert_array_equal(got, [row, [1] * 4 if name == "alpha" else [3] * 4])


async def test_nothing_is_multiplied_where_a_transposed_convolution_spreads_nothing(context):
    builder = MLGraphBuilder(context)
    weights = np.ones((1, 1, 3, 3), np.float32)
    weights[0, 0, 0, 0] = np.inf
    given = {"x": np.ones((1, 1, 2, 2), np.float32)}
    x = builder.input("x", data_type="float32", shape=[1, 1, 2, 2])
    y = builder.conv_transpose2d(x, builder.constant(weights), strides=[2, 2])
    got = (await compute(context, builder, given, {"y": y}))["y"][0, 0]
    expected = np.outer([1, 1, 2, 1, 1], [1, 1, 2, 1, 1]).astype(np.float32)
    expected[:3:2, :3:2] = np.inf
    np.testing.assert_array_equal(got, expected)
