"""Convolutions of every kind: products of windows, of places, and direct ones; and pooling with large windows."""

import pytest

from spec_tests.support.both_devices import check_both, integers

CONVOLUTIONS = {
    "many channels": [(1, 64, 28, 28), (64, 64, 3, 3), {"padding": [1, 1, 1, 1]}],
    "few pixels, many channels": [(1, 256, 7, 7), (128, 256, 3, 3), {"padding": [1, 1, 1, 1]}],
    "1×1": [(1, 130, 30, 30), (70, 130, 1, 1), {}],
    "strided": [(1, 3, 112, 112), (32, 3, 7, 7), {"padding": [3, 3, 3, 3], "strides": [2, 2]}],
    "depthwise": [(1, 96, 56, 56), (96, 1, 3, 3), {"padding": [1, 1, 1, 1], "groups": 96}],
    "groups": [(2, 64, 20, 20), (128, 16, 3, 3), {"groups": 4, "dilations": [2, 2]}],
    "pointwise, of uneven images in vec4s": [(2, 20, 6, 10), (12, 20, 1, 1), {}],
    "pointwise, of uneven images in single elements": [(3, 36, 7, 7), (24, 18, 1, 1), {"groups": 2}],
}

TRANSPOSED = {
    "strided": [(1, 24, 9, 7), (24, 20, 3, 3), {"strides": [2, 3]}],
    "whole phases": [(2, 12, 4, 6), (12, 10, 2, 2), {"strides": [2, 2]}],
    "groups, strided": [(2, 32, 9, 7), (32, 12, 3, 3), {"groups": 2, "strides": [2, 3]}],
    "groups, strided and dilated": [
        (1, 32, 6, 8),
        (32, 16, 3, 2),
        {"groups": 2, "strides": [3, 2], "dilations": [2, 3]},
    ],
    "groups, whole phases": [(1, 32, 8, 8), (32, 16, 2, 2), {"groups": 2, "strides": [2, 2]}],
    "groups, cut phases": [(1, 32, 8, 5), (32, 12, 4, 3), {"groups": 2, "strides": [2, 3], "padding": [1, 1, 0, 1]}],
}
"""With groups of so many channels that they are products of matrices, a batch of them for each group and phase."""

CASES = {
    **{name: ("conv2d", *case) for name, case in CONVOLUTIONS.items()},
    **{f"transposed, {name}": ("conv_transpose2d", *case) for name, case in TRANSPOSED.items()},
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_convolutions(ml, layout, case):
    method, image, filter_, options = case
    weights = integers(filter_, low=-2, high=3)
    image = image if layout == "nchw" else (image[0], *image[2:], image[1])

    def draw(b, x):
        y = getattr(b, method)(x, b.constant(weights), input_layout=layout, **options)
        return b.abs(y) if method == "conv2d" else y

    await check_both(ml, [integers(image)], draw)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("channels", [3, 8])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("method", ["max_pool2d", "average_pool2d"])
async def test_pooling_with_large_windows(ml, method, layout, channels):
    shape = (2, channels, 20, 30) if layout == "nchw" else (2, 20, 30, channels)
    options = {"window_dimensions": [8, 9], "padding": [3, 4, 2, 1], "strides": [2, 3], "layout": layout}
    await check_both(ml, [integers(shape)], lambda b, x: getattr(b, method)(x, **options), rtol=1e-6)
