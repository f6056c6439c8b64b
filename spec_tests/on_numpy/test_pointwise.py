"""Convolutions of single elements in float16: whole, and cut into blocks of rows and columns."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

BATCH, CHANNELS, OUTPUTS, SIZE = 2, 12, 20, 14


@pytest.fixture(params=[600, 5000, None], ids="{} bytes".format)
def context(request, tighten, numpy_context):
    """A context whose kernels have so many bytes of scratch; None for what they usually have."""
    tighten(request.param)
    return numpy_context


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("height", [1, SIZE])
async def test_blocks_are_the_product_rounded_once(context, layout, stride, height):
    rng = np.random.default_rng(7)
    x = rng.integers(-8, 9, (BATCH, CHANNELS, height, SIZE)).astype(np.float16) / np.float16(8)
    weights = rng.integers(-8, 9, (OUTPUTS, CHANNELS)).astype(np.float16)
    bias = rng.integers(-4, 5, OUTPUTS).astype(np.float16)
    sums = np.einsum("oc,bchw->bohw", weights.astype(float), x[:, :, ::stride, ::stride].astype(float))
    expected = (sums + bias.astype(float)[:, None, None]).astype(np.float16)
    given, filter_layout = x, "oihw"
    if layout == "nhwc":
        given, expected, filter_layout = x.transpose(0, 2, 3, 1), expected.transpose(0, 2, 3, 1), "ohwi"
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type="float16", shape=given.shape)
    filter_shape = (OUTPUTS, CHANNELS, 1, 1) if layout == "nchw" else (OUTPUTS, 1, 1, CHANNELS)
    drawn = builder.conv2d(
        operand,
        builder.constant(weights.reshape(filter_shape)),
        bias=builder.constant(bias),
        strides=[stride, stride],
        input_layout=layout,
        filter_layout=filter_layout,
    )
    result = await compute(context, builder, {"x": np.ascontiguousarray(given)}, {"y": drawn})
    np.testing.assert_array_equal(result["y"], expected)
