"""Copies of views: transposed in blocks, to the bit whatever the data type."""

import pytest

from spec_tests.support.both_devices import check_both, integers

OF_EACH_SIZE = ["uint8", "float16", "float32", "int64"]
"""A data type for each number of bytes: what moves elements does not look at more."""


@pytest.fixture
async def data_types(ml):
    context = await ml.create_context(backend="wgpu")
    types = context.op_support_limits()["input"]["data_types"]
    context.destroy()
    return types


TRANSPOSED = {
    "whole vec4s": [(128, 96), (1, 0), []],
    "no whole vec4s": [(131, 77), (1, 0), []],
    "rows not whole": [(130, 64), (1, 0), []],
    "columns not whole": [(64, 130), (1, 0), []],
    "batches": [(3, 60, 44), (0, 2, 1), []],
    "small batches": [(70, 12, 8), (0, 2, 1), []],
    "outer axes": [(20, 24, 36), (2, 1, 0), []],
    "first axis last": [(40, 6, 36), (1, 2, 0), []],
    "backwards": [(96, 128), (1, 0), [0, 1]],
    "rows backwards": [(128, 95), (1, 0), [0]],
    "large": [(300, 260), (1, 0), []],
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("data_type", OF_EACH_SIZE)
@pytest.mark.parametrize("case", TRANSPOSED.values(), ids=TRANSPOSED)
async def test_transposed(ml, data_types, data_type, case):
    if data_type not in data_types:
        pytest.skip(f"this adapter has no {data_type}")
    shape, permutation, reversed_axes = case

    def draw(b, x):
        x = b.reverse(x, axes=reversed_axes) if reversed_axes else x
        return b.transpose(x, permutation=permutation)

    await check_both(ml, [integers(shape, data_type, -100, 100)], draw)


@pytest.mark.sampled(7)
async def test_a_part_that_is_transposed_is_read_by_other_kernels(ml):
    def draw(b, x, y):
        part = b.transpose(b.slice(x, [1, 3], [300, 260]))
        return b.add(b.mul(part, part), b.matmul(y, part))

    await check_both(ml, [integers((305, 266)), integers((260, 260), low=0, high=2)], draw)
