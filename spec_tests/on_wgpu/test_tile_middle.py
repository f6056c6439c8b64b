"""Products of a hundred rows or some more have a tile whose inner axis invocations share."""

import pytest

from spec_tests.on_wgpu.test_tile_rounds import LARGE_GPU, product
from webnn_py.device.on_wgpu.codegen.gemm.tile_middle import MIDDLE
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import choose_tile
from webnn_py.device.on_wgpu.codegen.gemm.tiled import choose_work
from webnn_py.device.on_wgpu.records.features import Features


def chosen(rows, inner, columns, features=LARGE_GPU, accumulate="f32", **changes):
    return choose_work(product(rows, inner, columns, **changes), features, None, accumulate)


@pytest.mark.parametrize(
    ("sizes", "parts"), [((128, 768, 3072), 1), ((128, 768, 2304), 1), ((128, 3072, 768), 4), ((256, 1024, 1024), 3)]
)
def test_the_products_of_an_encoder_get_the_parts_that_were_fastest(sizes, parts):
    assert chosen(*sizes) == (MIDDLE, parts)


@pytest.mark.parametrize("sizes", [(128, 768, 768), (63, 768, 4096), (1024, 768, 2304), (64, 4096, 4096)])
def test_other_products_keep_theirs(sizes):
    assert chosen(*sizes)[0] != MIDDLE


def test_so_do_several_products_at_once_and_sums_in_float16():
    assert chosen(128, 768, 1024, batch=3)[0] != MIDDLE
    assert chosen(128, 768, 3072, data_type="float16", accumulate="f16")[0] != MIDDLE


def test_an_adapter_that_cannot_run_it_gets_what_it_can():
    few = Features(max_workgroup_storage=16384, max_invocations=256)
    tile, _ = chosen(128, 768, 3072, few)
    assert tile == choose_tile(128, 3072, 1, few)
