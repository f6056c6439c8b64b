"""Pooling of windows side by side, in several tiles."""

import numpy as np
import pytest

from spec_tests.support.computing import result_of

POOLS = {
    "max_pool2d": lambda windows: windows.max((3, 5)),
    "average_pool2d": lambda windows: windows.mean((3, 5)),
}


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize("window", [(2, 2), (3, 4), (1, 2)], ids=str)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("operator", POOLS)
async def test_windows_side_by_side_are_combined_in_tiles(numpy_context, operator, layout, window, rounding):
    height, width = 61, 402
    planes = np.random.default_rng(55).uniform(-9, 9, (1, 8, height, width)).astype(np.float32)
    axes = (0, 1, 2, 3) if layout == "nchw" else (0, 2, 3, 1)
    images = np.ascontiguousarray(planes.transpose(axes))
    options = {"window_dimensions": window, "strides": window, "layout": layout, "output_shape_rounding": rounding}
    result = await result_of(numpy_context, lambda builder, x: getattr(builder, operator)(x, **options), x=images)
    rows, columns = height // window[0], width // window[1]
    inside = planes[:, :, : rows * window[0], : columns * window[1]]
    expected = POOLS[operator](inside.reshape(1, 8, rows, window[0], columns, window[1]))
    whole = result.transpose(np.argsort(axes))[:, :, :rows, :columns]
    np.testing.assert_allclose(whole, expected, rtol=1e-5, atol=1e-5)
