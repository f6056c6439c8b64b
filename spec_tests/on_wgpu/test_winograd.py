"""Convolutions of 3 × 3 by Winograd's way: when it is taken, and how exact it is."""

import numpy as np
import pytest

from spec_tests.support.both_devices import computed
from webnn_py.devices.wgpu.codegen.convolution import winograd

BOUND = 2**-20
"""The most that a result may be off, of the largest sum of products' absolute values."""


@pytest.fixture
def small_ones_too(monkeypatch):
    """A function that sets limits; small convolutions are computed so from the start."""
    set_limit = lambda name, limit: monkeypatch.setattr(winograd, name, limit)  # noqa: E731
    set_limit("LEAST_PRODUCTS", 1)
    return set_limit


def random_case(shape, outputs, padding):
    """Images, a filter and a bias."""
    rng = np.random.default_rng(4)
    images, filter_ = rng.standard_normal(shape), rng.standard_normal((outputs, shape[1], 3, 3)) / 24
    return images.astype("float32"), filter_.astype("float32"), rng.standard_normal(outputs).astype("float32"), padding


async def convolved(ml, images, filter_, bias, padding):
    return await computed(
        ml, [images], lambda b, x: b.relu(b.conv2d(x, b.constant(filter_), bias=b.constant(bias), padding=padding))
    )


async def check(ml, images, filter_, bias, padding):
    """Compare with the convolution and relu in float64, by the sums of the products' absolute values."""
    result = await convolved(ml, images, filter_, bias, padding)
    top, bottom, left, right = padding
    padded = np.pad(images.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    total = np.einsum("nchwij,ocij->nohw", windows, filter_.astype("float64")) + bias[:, None, None]
    scale = np.einsum("nchwij,ocij->nohw", np.abs(windows), np.abs(filter_)).max()
    assert (np.abs(result - np.maximum(total, 0)) / scale).max() < BOUND


CASES = {
    "whole tiles": ((1, 64, 12, 16), 64, [1, 1, 1, 1]),
    "cut tiles, one-sided padding": ((3, 68, 7, 5), 64, [0, 2, 1, 0]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_winograd_is_as_exact_as_it_says(ml, compiled, small_ones_too, case):
    await check(ml, *random_case(*case))
    assert compiled[-1][0] == 3


@pytest.mark.sampled(1)
async def test_images_that_have_no_room_together_are_computed_one_after_the_other(ml, compiled, small_ones_too):
    small_ones_too("MOST_BYTES", 36 * 64 * 4 * 64)
    await check(ml, *random_case((3, 64, 12, 32), 64, [1, 1, 1, 1]))
    assert compiled[-1][0] == 2 * 3


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
