"""Kernels that compute each element from any elements of their operands."""

import pytest

from spec_tests.support.both_devices import check_both, integers


@pytest.mark.sampled(7)
@pytest.mark.parametrize("channels", [3, 8])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("method", ["max_pool2d", "average_pool2d"])
async def test_pooling_with_large_windows(ml, method, layout, channels):
    shape = (2, channels, 20, 30) if layout == "nchw" else (2, 20, 30, channels)
    options = {"window_dimensions": [8, 9], "padding": [3, 4, 2, 1], "strides": [2, 3], "layout": layout}
    await check_both(ml, [integers(shape)], lambda b, x: getattr(b, method)(x, **options), rtol=1e-6)
