"""``create_context(float16_accumulation=True)``: products of float16 may be summed in it, no others."""

import numpy as np
import pytest

from spec_tests.support.backends import BACKENDS, needs_adapter
from spec_tests.support.both_devices import computed
from spec_tests.support.stand_ins import noted
from webnn_py.devices.wgpu.lowering import GraphLowering

INNER = 256
TERMS = np.tile([1024, 0.25, -1024, 0.25], INNER // 4)
"""Summed in order, float16 loses every second 0.25: neighbours of 1024 are 1 apart."""

EXACT = INNER / 8


async def product(ml, data_type, backend, **options):
    """A matrix whose every row is ``TERMS``, times ones."""
    arrays = [np.tile(TERMS, (64, 1)).astype(data_type), np.ones((INNER, 64), data_type)]
    return await computed(ml, arrays, lambda b, x, y: b.matmul(x, y), backend, **options)


async def convolution(ml, data_type, backend, **options):
    """Images whose channels are ``TERMS``, summed by a filter of ones."""
    image = np.tile(TERMS.reshape(1, -1, 1, 1), (1, 1, 8, 8)).astype(data_type)
    ones = np.ones((64, INNER, 1, 1), data_type)
    return await computed(ml, [image], lambda b, x: b.conv2d(x, b.constant(ones)), backend, **options)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("compute_sums", [product, convolution])
async def test_unless_allowed_float16_is_summed_in_float32(ml, backend, compute_sums):
    sums = await compute_sums(ml, "float16", backend)
    assert np.unique(sums).tolist() == [EXACT]


@needs_adapter
@pytest.mark.parametrize("compute_sums", [product, convolution])
async def test_where_allowed_an_adapter_with_float16_sums_in_it(ml, monkeypatch, compute_sums):
    kernels = noted(monkeypatch, GraphLowering, "emit", lambda _self, kernel: kernel)
    context = await ml.create_context(backend="wgpu", float16_accumulation=True)
    sums = await compute_sums(ml, "float16", "wgpu", float16_accumulation=True)
    # Not by its results: drivers may compute float16 in float32.
    sums_in_float16 = any("var c0_0 = vec4<f16>();" in kernel.source for kernel in kernels)
    assert sums_in_float16 == ("shader-f16" in context.backend.features)
    assert np.abs(sums - EXACT).max() <= INNER / 4  # half a unit for every other 1024


@needs_adapter
async def test_allowed_or_not_float32_is_summed_in_float32(ml):
    assert np.unique(await product(ml, "float32", "wgpu", float16_accumulation=True)).tolist() == [EXACT]


@needs_adapter
@pytest.mark.parametrize("size", [(1, 64), (64, 1), (7, 33), (130, 70)])
async def test_products_of_any_shape_stay_within_what_rounding_every_sum_can_cost(ml, rng, size):
    rows, columns = size
    a, b = ((rng.integers(-512, 512, shape) / 512).astype(np.float16) for shape in ((rows, INNER), (INNER, columns)))
    y = await computed(ml, [a, b], lambda builder, a, b: builder.matmul(a, b), float16_accumulation=True)
    wide_a, wide_b = a.astype(float), b.astype(float)
    bound = np.abs(wide_a) @ np.abs(wide_b) * INNER * 2.0**-11
    off = np.abs(y - wide_a @ wide_b)
    assert (off <= bound).all(), f"off by {off.max()}, {(off / bound).max()} of what is allowed"
