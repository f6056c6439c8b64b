"""Convolutions along one axis with few windows."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device.on_numpy.kernels import convolution

CASES = {
    "padded": (6, 3, {"padding": [0, 0, 1, 1]}),
    "one window": (7, 7, {}),
    "one window over both edges": (2, 5, {"padding": [0, 0, 1, 2]}),
    "windows beside the image": (3, 2, {"padding": [0, 0, 4, 3]}),
    "strides that leave something": (9, 3, {"strides": [1, 2], "padding": [0, 0, 0, 1]}),
    "long strides": (40, 16, {"strides": [1, 8]}),
    "dilated": (9, 3, {"dilations": [1, 3], "padding": [0, 0, 1, 0]}),
    "one dilated window": (5, 3, {"dilations": [1, 2]}),
}

CHANNELS, OUTPUTS = 4, 10


@pytest.fixture(autouse=True)
def taken(monkeypatch):
    """See that a convolution was taken for such."""
    found = []
    make = convolution.few_windows
    monkeypatch.setattr(convolution, "few_windows", lambda conv: found.append(conv) or make(conv))
    yield
    assert found


def convolved(x, weights, groups, options):
    """The sums over the elements of each window, in float64."""
    *_, left, right = options["padding"]
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (0, 0), (left, right)))
    along, step = options["dilations"][1], options["strides"][1]
    reach = (weights.shape[3] - 1) * along + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded[0, :, 0], reach, axis=1)[:, ::step, ::along]
    by_group = windows.reshape(groups, -1, *windows.shape[1:])
    sums = np.einsum("gcwj,gocj->gow", by_group, weights.astype(float).reshape(groups, -1, *weights.shape[1::2]))
    return sums.reshape(1, OUTPUTS, 1, -1)


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("case", CASES)
async def test_every_window_has_its_elements(numpy_context, case, between, groups, upright):
    """Where an image comes with the dispatch, and where it is computed before."""
    length, window, given = CASES[case]
    options = {"padding": [0, 0, 0, 0], "strides": [1, 1], "dilations": [1, 1], **given}
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (1, CHANNELS, 1, length)).astype(np.float32)
    weights = rng.integers(-3, 4, (OUTPUTS, CHANNELS // groups, 1, window)).astype(np.float32)
    bias = rng.integers(-9, 9, OUTPUTS).astype(np.float32)
    expected = np.maximum(convolved(x, weights, groups, options) + bias[:, None, None], 0)
    if upright:
        x, weights, expected = (array.swapaxes(2, 3).copy() for array in (x, weights, expected))
        options = {name: [*value[-len(value) // 2 :], *value[: len(value) // 2]] for name, value in options.items()}
    builder = MLGraphBuilder(numpy_context)
    image = builder.input("x", data_type="float32", shape=x.shape)
    drawn = builder.conv2d(
        builder.neg(image) if between else image,
        builder.constant(weights),
        bias=builder.constant(bias),
        groups=groups,
        **options,
    )
    result = await compute(numpy_context, builder, {"x": -x if between else x}, {"y": builder.relu(drawn)})
    np.testing.assert_array_equal(result["y"], expected)


async def test_a_filter_that_is_computed_may_lie_in_any_order(numpy_context):
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (1, CHANNELS, 1, 6)).astype(np.float32)
    weights = rng.integers(-3, 4, (3, 1, CHANNELS, OUTPUTS)).astype(np.float32)
    builder = MLGraphBuilder(numpy_context)
    computed = builder.neg(builder.input("w", data_type="float32", shape=weights.shape))
    drawn = builder.conv2d(
        builder.input("x", data_type="float32", shape=x.shape), builder.transpose(computed, permutation=[3, 2, 1, 0])
    )
    result = await compute(numpy_context, builder, {"x": x, "w": -weights}, {"y": drawn})
    options = {"padding": [0, 0, 0, 0], "strides": [1, 1], "dilations": [1, 1]}
    np.testing.assert_array_equal(result["y"], convolved(x, weights.transpose(3, 2, 1, 0), 1, options))
