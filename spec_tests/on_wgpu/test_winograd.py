"""Convolutions of 3 × 3 by Winograd's way: when it is taken, and how exact it is."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device.on_wgpu.codegen.convolution import winograd

BOUND = 2**-20
"""The most that a result may be off, of the largest sum of products' absolute values."""


@pytest.fixture
def small_ones_too(monkeypatch):
    monkeypatch.setattr(winograd, "LEAST_PRODUCTS", 1)


def random_case(shape, outputs, padding):
    """Images, a filter and a bias."""
    rng = np.random.default_rng(4)
    images, filter_ = rng.standard_normal(shape), rng.standard_normal((outputs, shape[1], 3, 3)) / 24
    return images.astype("float32"), filter_.astype("float32"), rng.standard_normal(outputs).astype("float32"), padding


async def convolved(ml, images, filter_, bias, padding):
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=images.shape)
    y = builder.conv2d(x, builder.constant(filter_), bias=builder.constant(bias), padding=padding)
    return (await compute(context, builder, {"x": images}, {"y": builder.relu(y)}))["y"]


def exactly(images, filter_, bias, padding):
    """The convolution and relu in float64, and the sums of the products' absolute values."""
    top, bottom, left, right = padding
    padded = np.pad(images.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    total = np.einsum("nchwij,ocij->nohw", windows, filter_.astype("float64")) + bias[:, None, None]
    return np.maximum(total, 0), np.einsum("nchwij,ocij->nohw", np.abs(windows), np.abs(filter_))


CASES = {
    "whole tiles": ((1, 64, 12, 16), 64, [1, 1, 1, 1]),
    "cut tiles, one-sided padding": ((3, 68, 7, 5), 64, [0, 2, 1, 0]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_winograd_is_as_exact_as_it_says(ml, compiled, small_ones_too, case):
    case = random_case(*case)
    result = await convolved(ml, *case)
    assert compiled[-1][0] == 3
    expected, scale = exactly(*case)
    off = np.abs(result - expected) / scale.max()
    assert off.max() < BOUND


@pytest.mark.sampled(1)
async def test_images_that_have_no_room_together_are_computed_one_after_the_other(
    ml, compiled, monkeypatch, small_ones_too
):
    monkeypatch.setattr(winograd, "MOST_BYTES", 36 * 64 * 4 * 64)
    case = random_case((3, 64, 12, 32), 64, [1, 1, 1, 1])
    result = await convolved(ml, *case)
    assert compiled[-1][0] == 2 * 3
    expected, scale = exactly(*case)
    assert (np.abs(result - expected) / scale.max()).max() < BOUND


async def test_small_convolutions_are_computed_plainly(ml, compiled):
    await convolved(ml, *random_case((1, 64, 6, 6), 64, [1, 1, 1, 1]))
    assert compiled[-1][0] < 3


@pytest.mark.sampled(1)
async def test_what_is_no_number_stays_in_its_tile(ml, small_ones_too):
    case = random_case((1, 64, 16, 16), 64, [1, 1, 1, 1])
    case[0][0, 5, 0, 0] = np.inf
    result = await convolved(ml, *case)
    assert np.isnan(result[0, 3, 0, 0])
    rest = result[0].copy()
    rest[:, :4, :4] = 0
    assert np.isfinite(rest).all()
