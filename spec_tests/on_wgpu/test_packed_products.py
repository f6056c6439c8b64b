"""Large float16 products: both sides are read as words, and widened as they enter the workgroup's memory."""

import numpy as np
import pytest

from spec_tests.on_wgpu.test_tile_search import product
from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import check_both, integers
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device.on_wgpu.codegen.gemm import tiled
from webnn_py.device.on_wgpu.codegen.gemm.packed_loader import PackedMatrixLoader, packed

needs_adapter = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


def kinds(of):
    return [type(side) for side in (of.left, of.right)]


def test_both_sides_of_float16_are_read_as_words():
    assert kinds(packed(product(64, 64, 64, data_type="float16"))) == [PackedMatrixLoader] * 2


@pytest.mark.parametrize("sizes", [(64, 63, 64), (64, 64, 63)], ids=["left", "right"])
def test_sides_whose_rows_are_no_vec4s_are_not(sizes):
    of = product(*sizes, data_type="float16")
    assert packed(of) is of


def test_float32_is_not():
    of = product(64, 64, 64)
    assert packed(of) is of


@pytest.fixture
def packings(all_products_large, monkeypatch):
    """The products that were packed; all count as large."""
    taken = []

    def counted(of):
        taken.append(packed(of))
        return taken[-1]

    monkeypatch.setattr(tiled, "packed", counted)
    return taken


@needs_adapter
@pytest.mark.parametrize("inner", [64, 68])
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
async def test_words_give_the_same_products(ml, packings, transposes, inner):
    rows, columns = 140, 100
    a = integers((inner, rows) if transposes[0] else (rows, inner), "float16", -4, 5)
    b = integers((columns, inner) if transposes[1] else (inner, columns), "float16", -4, 5)
    await check_both(
        ml,
        [a, b],
        lambda builder, x, y: builder.gemm(x, y, a_transpose=transposes[0], b_transpose=transposes[1]),
    )
    assert PackedMatrixLoader in kinds(packings[-1])


@needs_adapter
async def test_a_matrix_times_itself_is_read_as_words_once(ml, packings):
    await check_both(ml, [integers((128, 128), "float16", -2, 3)], lambda b, x: b.add(b.matmul(b.abs(x), x), x))
    assert packings


@needs_adapter
async def test_infinities_nans_and_subnormal_numbers_come_through(ml, packings):
    numbers = np.eye(128, dtype=np.float16)
    numbers[0, 0], numbers[1, 1], numbers[2, 2] = np.inf, np.nan, 6e-8
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    x, y = (builder.input(name, data_type="float16", shape=(128, 128)) for name in "xy")
    ones = np.ones((128, 128), np.float16)
    got = (await compute(context, builder, {"x": numbers, "y": ones}, {"z": builder.matmul(x, y)}))["z"]
    expected = numbers.astype(np.float64).sum(axis=1, keepdims=True).astype(np.float16)
    np.testing.assert_array_equal(got, np.broadcast_to(expected, got.shape))
    assert packings
