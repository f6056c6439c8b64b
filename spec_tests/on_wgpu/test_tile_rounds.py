"""Large products are cut so that all processors of a large GPU are busy to the end."""

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import check_both, integers
from webnn_py.device.on_wgpu.codegen.gemm import tile_rounds
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_rounds import MeasuredTile, fewest_rounds
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import GemmTile
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import element
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.layout import Layout

LARGE_GPU = Features(max_workgroup_storage=49152, max_invocations=1024)


def product(rows, inner, columns, data_type="float32", batch=1):
    one = Layout((batch,), (0,))
    kind = element(data_type, shader_f16=True)
    left = MatrixLoader(Buffer("input", 2**20), kind, one, Layout((inner,), (1,)), rows, inner)
    right = MatrixLoader(Buffer("constant", 2**20), kind, one, Layout((inner,), (columns,)), columns, 1)
    return GemmProblem(batch, left, right, lambda *_: "0u", vec4s=True)


def chosen(*sizes, **changes):
    tile, parts = fewest_rounds(product(*sizes, **changes), LARGE_GPU)
    return tile.rows, tile.columns, parts


@pytest.mark.parametrize(
    ("inner", "columns", "expected"),
    [(768, 768, (64, 96, 2)), (768, 2304, (64, 64, 1)), (768, 3072, (128, 96, 1)), (3072, 768, (128, 96, 4))],
)
def test_the_products_of_an_encoder_get_the_tiles_that_were_fastest(inner, columns, expected):
    assert chosen(1024, inner, columns) == expected


@pytest.mark.parametrize(
    ("inner", "columns", "expected"),
    [(768, 768, (128, 64, 4)), (768, 2304, (128, 64, 2)), (768, 3072, (128, 64, 1)), (3072, 768, (128, 64, 4))],
)
def test_likewise_in_float16(inner, columns, expected):
    assert chosen(1024, inner, columns, data_type="float16") == expected


@pytest.mark.parametrize("sizes", [(255, 4096, 4096), (4096, 4096, 255), (512, 1024, 1023)])
def test_small_products_are_left_to_what_was_measured_for_them(sizes):
    assert fewest_rounds(product(*sizes), LARGE_GPU) is None


def test_products_of_several_matrices_are_left_to_what_was_measured_for_them():
    assert fewest_rounds(product(1024, 1024, 1024, batch=2), LARGE_GPU) is None


def test_nothing_is_chosen_that_an_adapter_cannot_run():
    assert fewest_rounds(product(1024, 1024, 1024), Features(max_invocations=32)) is None


def test_parts_take_no_more_memory_than_they_may(monkeypatch):
    parts = chosen(1024, 3072, 768)[2]
    monkeypatch.setattr(tile_rounds, "MOST_SUMS", 4 * 1024 * 768 * parts - 1)
    assert chosen(1024, 3072, 768)[2] < parts


def test_a_workgroup_of_few_invocations_takes_as_long_alone_as_two():
    tile, sizes = GemmTile(64, 96, 8, 12), (64 * tile_rounds.PROCESSORS, 64, 96)
    alone, paired = (MeasuredTile(tile, 1, 1, is_paired=paired) for paired in (False, True))
    times = [way.microseconds((sizes[0], sizes[2], sizes[1]), 1, is_float16=False) for way in (alone, paired)]
    assert times[1] == 2 * times[0]


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
async def test_a_product_in_parts_is_what_it_is_as_a_whole(ml, compiled, monkeypatch):
    for name in ("LEAST_SIDE", "LEAST_PRODUCTS"):
        monkeypatch.setattr(tile_rounds, name, 1)
    arrays = [integers((70, 2051), low=-1, high=2), integers((2051, 100), low=-1, high=2)]
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    assert compiled[-1][0] == 2
