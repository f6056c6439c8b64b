"""The parts of a product are added up by the kernel that reads what element-wise nodes make of it, where it can."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both, integers
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile


@pytest.fixture(autouse=True)
def _in_three_parts(in_tiles, take_tile):
    take_tile(GemmTile(16, 16, 4, 4, slices=4), 3)


def operands(data_type, rows=18, columns=40):
    """A product's sides, a bias, and what is added besides; sums and squares of sums are exact."""
    shapes = [(rows, 195), (195, columns), (columns,), (rows, columns)]
    return [integers(shape, data_type, -1, 2) for shape in shapes]


def linear(b, x, weight, bias, skipped):
    return b.add(b.add(b.matmul(x, weight), bias), skipped)


def normalized(b, *given):
    y = linear(b, *given)
    scale, bias = (b.constant(np.full(y.shape[1], value, y.data_type)) for value in (2, 1))
    return b.layer_normalization(y, axes=[1], scale=scale, bias=bias)


@pytest.mark.parametrize("columns", [40, 39])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.usefixtures("adapter_features")
async def test_layer_normalization_adds_up_what_it_reads(ml, compiled, data_type, columns):
    rtol = {"float32": 1e-5, "float16": 4e-3}[data_type]
    given = operands(data_type, columns=columns)
    await check_both(ml, given, lambda b, *given: b.cast(normalized(b, *given), "float32"), rtol=rtol)
    if columns % 4 == 0 or data_type == "float32":
        assert compiled[-1][0] == 2


@pytest.mark.parametrize("reader", ["reduce_sum", "softmax", "arg_max"])
async def test_so_do_reductions(ml, compiled, reader):
    options = {"reduce_sum": {"axes": [0]}, "softmax": {"axis": 1}, "arg_max": {"axis": 1}}[reader]
    await check_both(
        ml,
        operands("float32"),
        lambda b, *given: getattr(b, reader)(linear(b, *given), **options),
        rtol=1e-5 if reader == "softmax" else 0,
    )
    assert compiled[-1][0] == 2


READ_OTHERWISE = {
    "by two": (lambda b, y: b.add(b.softmax(y, 1), y), 1),
    "by a product": (lambda b, y: b.matmul(y, b.constant(np.ones((40, 4), "float32"))), 2),
    "as a view": (lambda b, y: b.reduce_sum(b.reshape(y, [6, 120]), axes=[1]), 1),
    "by nothing": (lambda _, y: y, 0),
}
"""Readers, and the number of kernels that they take."""


@pytest.mark.parametrize(("read", "kernels"), READ_OTHERWISE.values(), ids=READ_OTHERWISE)
async def test_what_is_read_otherwise_is_added_up_by_a_kernel_of_its_own(ml, compiled, read, kernels):
    await check_both(ml, operands("float32"), lambda b, *given: read(b, linear(b, *given)), rtol=1e-5)
    assert compiled[-1][0] == 2 + kernels


@pytest.mark.sampled(3)
async def test_rows_that_one_kernel_cannot_keep_are_added_up_first(ml, compiled):
    given = operands("float32", rows=2, columns=40_000)
    await check_both(ml, given, normalized, rtol=1e-4)
    assert compiled[-1][0] == 5


@pytest.mark.sampled(3)
async def test_more_operands_than_a_kernel_binds_are_added_before_it(ml, compiled, change_features):
    change_features(max_storage_buffers=5)
    await check_both(ml, operands("float32"), normalized, rtol=1e-5)
    assert compiled[-1][0] == 3
