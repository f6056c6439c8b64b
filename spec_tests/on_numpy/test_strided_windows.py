"""Convolutions of long strides: windows that overlap, but lie far apart."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

BATCH, CHANNELS, OUTPUTS = 2, 4, 10

CASES = {
    "a long row": ((1, 90), (1, 24), {"strides": [1, 12], "padding": [0, 0, 5, 9]}),
    "both axes": ((23, 31), (5, 4), {"strides": [3, 4], "padding": [2, 1, 0, 3]}),
    "dilated": ((1, 120), (1, 11), {"strides": [1, 9], "dilations": [1, 2]}),
}


def convolved(x, weights, groups, options):
    """The sums over the elements of each window, in float64."""
    top, bottom, left, right = options["padding"]
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (top, bottom), (left, right)))
    across, along = options["dilations"]
    reach = [(weights.shape[2] - 1) * across + 1, (weights.shape[3] - 1) * along + 1]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    windows = windows[:, :, :: options["strides"][0], :: options["strides"][1], ::across, ::along]
    by_group = windows.reshape(BATCH, groups, -1, *windows.shape[2:])
    sums = np.einsum("bgchwij,gocij->bgohw", by_group, weights.astype(float).reshape(groups, -1, *weights.shape[1:]))
    return sums.reshape(BATCH, OUTPUTS, *sums.shape[3:])


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("filter_layout", ["oihw", "ohwi"])
@pytest.mark.parametrize("case", CASES)
async def test_every_window_has_its_elements(tight_context, case, filter_layout, groups, data_type):
    sizes, window, given = CASES[case]
    options = {"padding": [0, 0, 0, 0], "strides": [1, 1], "dilations": [1, 1], **given}
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (BATCH, CHANNELS, *sizes)).astype(data_type)
    weights = rng.integers(-3, 4, (OUTPUTS, CHANNELS // groups, *window)).astype(data_type)
    builder = MLGraphBuilder(tight_context)
    drawn = builder.conv2d(
        builder.input("x", data_type=data_type, shape=x.shape),
        builder.constant(np.ascontiguousarray(weights.transpose(["oihw".index(axis) for axis in filter_layout]))),
        groups=groups,
        filter_layout=filter_layout,
        **options,
    )
    result = await compute(tight_context, builder, {"x": x}, {"y": drawn})
    np.testing.assert_array_equal(result["y"], convolved(x, weights, groups, options).astype(data_type))
