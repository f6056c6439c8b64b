"""Depthwise convolutions of nchw images: whole, and cut into tiles of channels and rows."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

BATCH = 2


def convolved(x, weights, options):
    """The sums over the elements of each window, in float64; ``weights`` are [channels, multiple, height, width]."""
    top, bottom, left, right = options["padding"]
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (top, bottom), (left, right)))
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(weights.shape[2:], options["dilations"], strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    down, right = options["strides"]
    windows = windows[:, :, ::down, ::right, :: options["dilations"][0], :: options["dilations"][1]]
    sums = np.einsum("bchwij,cmij->bcmhw", windows, weights.astype(float))
    return sums.reshape(len(x), -1, *sums.shape[3:])


CASES = {
    "3×3": ((13, 23), (3, 3), {"padding": [1, 1, 1, 1]}),
    "5×5 of small planes": ((7, 6), (5, 5), {"padding": [2, 2, 2, 2]}),
    "strides": ((15, 50), (3, 3), {"padding": [0, 2, 1, 0], "strides": [2, 2]}),
    "strides that skip rows": ((17, 30), (2, 3), {"strides": [3, 1]}),
    "dilated columns": ((9, 31), (4, 3), {"padding": [3, 0, 0, 4], "dilations": [1, 3]}),
    "short rows and strides": ((23, 17), (3, 5), {"padding": [1, 0, 2, 1], "strides": [2, 3]}),
    "short rows and dilations": ((14, 18), (3, 2), {"padding": [2, 1, 3, 2], "dilations": [2, 3]}),
    "windows higher than the images": ((2, 23), (5, 5), {"padding": [2, 2, 2, 2]}),
    "strides of such windows": ((3, 21), (6, 3), {"padding": [3, 2, 0, 1], "strides": [2, 2]}),
}


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("counts", [(10, 1), (10, 3), (70, 1), (70, 3)], ids="{0[0]} times {0[1]}".format)
@pytest.mark.parametrize("filter_layout", ["oihw", "hwio"])
@pytest.mark.parametrize("case", CASES)
async def test_every_window_has_its_elements(tight_context, case, filter_layout, counts, data_type):
    channels, multiple = counts
    sizes, window, given = CASES[case]
    options = {"padding": [0, 0, 0, 0], "strides": [1, 1], "dilations": [1, 1], **given}
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (BATCH, channels, *sizes)).astype(data_type)
    weights = rng.integers(-3, 4, (channels, multiple, *window)).astype(data_type)
    bias = rng.integers(-4, 5, channels * multiple).astype(data_type)
    by_output = weights.reshape(channels * multiple, 1, *window)
    builder = MLGraphBuilder(tight_context)
    drawn = builder.conv2d(
        builder.input("x", data_type=data_type, shape=x.shape),
        builder.constant(np.ascontiguousarray(by_output.transpose(["oihw".index(axis) for axis in filter_layout]))),
        bias=builder.constant(bias),
        groups=channels,
        filter_layout=filter_layout,
        **options,
    )
    result = await compute(tight_context, builder, {"x": x}, {"y": drawn})
    expected = convolved(x, weights, options) + bias.astype(float)[:, None, None]
    np.testing.assert_array_equal(result["y"], expected.astype(data_type))


async def test_infinity_stays_in_the_windows_that_have_it(numpy_context):
    x = np.ones((1, 2, 12, 24), np.float32)
    x[0, 1, 6, 10] = np.inf
    builder = MLGraphBuilder(numpy_context)
    filter_ = builder.constant(np.ones((2, 1, 3, 3), np.float32))
    drawn = builder.conv2d(builder.input("x", data_type="float32", shape=x.shape), filter_, groups=2)
    result = (await compute(numpy_context, builder, {"x": x}, {"y": drawn}))["y"]
    expected = np.full((1, 2, 10, 22), 9, np.float32)
    expected[0, 1, 4:7, 8:11] = np.inf
    np.testing.assert_array_equal(result, expected)


async def test_infinity_in_the_filter_counts_beyond_the_edges(numpy_context):
    x = np.ones((1, 2, 2, 24), np.float32)
    weights = np.ones((2, 1, 5, 3), np.float32)
    weights[1, 0, 4, 1] = np.inf
    builder = MLGraphBuilder(numpy_context)
    images = builder.input("x", data_type="float32", shape=x.shape)
    options = {"padding": [2, 2, 1, 1], "strides": [1, 1], "dilations": [1, 1]}
    drawn = builder.conv2d(images, builder.constant(weights), groups=2, **options)
    result = (await compute(numpy_context, builder, {"x": x}, {"y": drawn}))["y"]
    assert np.isnan(result[0, 1]).all()
    np.testing.assert_array_equal(result[0, 0], convolved(x, weights, options)[0, 0])
