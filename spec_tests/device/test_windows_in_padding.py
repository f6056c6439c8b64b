"""Convolutions whose windows are all in the padding along one axis give the bias, or zeros."""

import numpy as np
import pytest

from spec_tests.support.cells import cells
from spec_tests.support.computing import result_of

BIAS = np.array([0.5, -2, 3, 7], np.float32)


@pytest.mark.sampled(7)
@cells("groups", [1, 2, 4])
@cells("height", [1, 2, 40])
@cells("layout", ["nchw", "nhwc"])
@cells("has_bias", [False, True], ids=["zeros", "bias"])
@cells("is_upright", [False, True], ids=["lying", "upright"])
async def test_windows_beside_an_image_give_the_bias_alone(context, groups, *, height, layout, is_upright, has_bias):
    """The image has one column, and the stride passes over it."""
    shape, window = (1, 4, height, 1), (1 if height == 1 else 2, 1)
    options = {"padding": [0, 1, 1, 0], "strides": [1, 2]}
    if not is_upright:
        shape, window = (*shape[:2], *shape[:1:-1]), window[::-1]
        options = {"padding": [1, 0, 0, 1], "strides": [2, 1]}
    if layout == "nhwc":
        shape = (shape[0], *shape[2:], shape[1])
    weights = np.full((4, 4 // groups, *window), 2, np.float32)

    def draw(b, x):
        bias = b.constant(BIAS) if has_bias else None
        return b.conv2d(x, b.constant(weights), bias=bias, groups=groups, input_layout=layout, **options)

    result = await result_of(context, draw, x=np.ones(shape, np.float32))
    in_channels = result if layout == "nhwc" else result.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(in_channels, np.broadcast_to(BIAS * has_bias, in_channels.shape))
