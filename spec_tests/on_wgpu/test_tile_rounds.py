"""Large products are cut so that all processors of a large GPU are busy to the end."""

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import check_both, integers
from webnn_py.device.on_wgpu.codegen.gemm import tile_rounds, tile_store
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


ENCODER = [(768, 768), (768, 2304), (768, 3072), (3072, 768)]
FASTEST = {
    "float32": [(128, 64, 4), (128, 64, 3), (128, 64, 1), (128, 64, 4)],
    "float16": [(128, 64, 4), (128, 144, 1), (128, 64, 1), (128, 64, 4)],
}


@pytest.mark.parametrize("data_type", FASTEST)
def test_the_products_of_an_encoder_get_the_tiles_that_were_fastest(data_type):
    got = [chosen(1024, *sizes, data_type=data_type) for sizes in ENCODER]
    assert got == FASTEST[data_type]


def test_a_processor_gets_one_large_tile_where_there_are_enough_for_all():
    assert chosen(1024, 1024, 1024) == (128, 128, 2)


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


def test_a_workgroup_takes_as_long_alone_as_two_and_three_as_long_as_four():
    way = MeasuredTile(GemmTile(64, 96, 8, 12), 1, 1, step=4)
    counts = [tile_rounds.PROCESSORS * rounds for rounds in (1, 2, 3, 4, 5)]
    times = [way.microseconds((64 * count, 96, 64), 1, is_float16=False) for count in counts]
    assert [time / times[0] for time in times] == [1, 1, 2, 2, 4]


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
async def test_a_long_last_step_of_a_large_product_has_a_kernel_of_its_own(ml, compiled, monkeypatch):
    for name in ("LEAST_SIDE", "LEAST_PRODUCTS"):
        monkeypatch.setattr(tile_rounds, name, 1)
    monkeypatch.setattr(tile_store, "LONG_END", 0)
    arrays = [integers((70, 64)), integers((64, 100))]
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    monkeypatch.setattr(tile_store, "LONG_END", 2**20)
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    assert [kernels for kernels, _ in compiled[-2:]] == [2, 1]


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
@pytest.mark.parametrize("highest", [40, 900], ids=["rounded", "overflowing"])
async def test_sums_of_float16_are_rounded_before_a_last_step_of_its_own(ml, compiled, monkeypatch, highest):
    for name in ("LEAST_SIDE", "LEAST_PRODUCTS"):
        monkeypatch.setattr(tile_rounds, name, 1)
    monkeypatch.setattr(tile_store, "LONG_END_IN_HALVES", 0)
    shapes = [(70, 64), (64, 100), (100,)]
    a, b, row = (integers(shape, "float16", -highest, highest + 1) for shape in shapes)

    def draw(builder, x, y, z):
        return builder.clamp(builder.add(builder.matmul(x, y), z), min_value=-60_000, max_value=60_000)

    await check_both(ml, [a, b, row], draw)
    assert compiled[-1][0] == 2


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
async def test_a_product_in_parts_is_what_it_is_as_a_whole(ml, compiled, monkeypatch):
    for name in ("LEAST_SIDE", "LEAST_PRODUCTS"):
        monkeypatch.setattr(tile_rounds, name, 1)
    arrays = [integers((70, 2051), low=-1, high=2), integers((2051, 100), low=-1, high=2)]
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    assert compiled[-1][0] == 2
