"""Convolutions whose dilation is large beside their images: in every layout, whole and cut into tiles."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device.on_numpy.routines.conv_sizes import Convolution

BATCH, CHANNELS, OUTPUTS = 2, 6, 12


def convolved(x, weights, dilations, padding):
    """The sums over the elements of each window, channels first: a term for each element."""
    groups = CHANNELS // weights.shape[1]
    top, bottom, left, right = padding
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    height, width = (
        size - (window - 1) * dilation
        for size, window, dilation in zip(x.shape[2:], weights.shape[2:], dilations, strict=True)
    )
    grouped = x.reshape(BATCH, groups, -1, *x.shape[2:])
    by_group = weights.reshape(groups, -1, *weights.shape[1:])
    return sum(
        np.einsum(
            "goc,bgchw->bgohw",
            by_group[..., i, j],
            grouped[..., i * dilations[0] : i * dilations[0] + height, j * dilations[1] : j * dilations[1] + width],
        )
        for i in range(weights.shape[2])
        for j in range(weights.shape[3])
    ).reshape(BATCH, OUTPUTS, height, width)


SHAPES = {
    "a long row": ((1, 70), (1, 3), (1, 20), (0, 0, 7, 30)),
    "both axes": ((14, 11), (3, 2), (6, 5), (9, 6, 3, 4)),
    "elements in the padding alone": ((4, 5), (3, 3), (4, 9), (6, 6, 11, 11)),
}


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("groups", [1, CHANNELS])
@pytest.mark.parametrize("layouts", [("nchw", "oihw"), ("nhwc", "ohwi"), ("nhwc", "oihw")], ids=" ".join)
@pytest.mark.parametrize("shape", SHAPES)
async def test_large_dilations_take_the_right_elements(tight_context, shape, layouts, groups, data_type):
    layout, filter_layout = layouts
    sizes, window, dilations, padding = SHAPES[shape]
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (BATCH, CHANNELS, *sizes)).astype(data_type)
    weights = rng.integers(-3, 4, (OUTPUTS, CHANNELS // groups, *window)).astype(data_type)
    bias = rng.integers(-4, 5, OUTPUTS).astype(data_type)
    expected = convolved(x.astype(float), weights.astype(float), dilations, padding) + bias.astype(float)[:, None, None]
    given = x
    if layout == "nhwc":
        given, expected = x.transpose(0, 2, 3, 1), expected.transpose(0, 2, 3, 1)
    builder = MLGraphBuilder(tight_context)
    drawn = builder.conv2d(
        builder.input("x", data_type=data_type, shape=given.shape),
        builder.constant(np.ascontiguousarray(weights.transpose(["oihw".index(axis) for axis in filter_layout]))),
        bias=builder.constant(bias),
        padding=padding,
        dilations=dilations,
        groups=groups,
        input_layout=layout,
        filter_layout=filter_layout,
    )
    result = await compute(tight_context, builder, {"x": np.ascontiguousarray(given)}, {"y": drawn})
    np.testing.assert_array_equal(result["y"], expected.astype(data_type))


async def test_a_tile_need_not_hold_what_its_windows_span(numpy_context, monkeypatch):
    made = []
    of = Convolution.of.__func__
    monkeypatch.setattr(Convolution, "of", classmethod(lambda cls, node: made.append(of(cls, node)) or made[-1]))
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[1, 16, 1, 9000])
    filter_ = builder.constant(np.ones((16, 16, 1, 3), np.float32))
    await builder.build({"y": builder.conv2d(x, filter_, dilations=[1, 4096])})
    assert all(conv.tile_elements(conv.output_sizes[0]) < conv.most_elements for conv in made), made
