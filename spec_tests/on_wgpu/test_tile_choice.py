"""Products whose usual tiles would leave a large GPU half idle."""

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import check_both, integers
from webnn_py.device.on_wgpu.codegen.gemm import tile_choice
from webnn_py.device.on_wgpu.codegen.gemm.tile_choice import FEW_ROWS, SMALL, rebalanced
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import choose_split_k, choose_tile
from webnn_py.device.on_wgpu.records.features import Features

LARGE_GPU = Features(max_workgroup_storage=49152, max_invocations=1024)


def chosen(batch, rows, columns, inner):
    """The usual tile and parts, and those that are taken."""
    tile = choose_tile(rows, columns, batch, LARGE_GPU)
    usual = tile, choose_split_k(tile, tile.groups(rows, columns) * batch, inner)
    return usual, rebalanced(usual, (batch, rows, columns, inner), LARGE_GPU)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 64, 4096, 4096), (SMALL, 8)),
        ((1, 256, 3136, 1024), (SMALL, 4)),
        ((1, 1024, 3136, 256), (SMALL, 1)),
        ((1, 16, 4096, 4096), (FEW_ROWS, 8)),
    ],
)
def test_idle_processors_get_smaller_workgroups(shape, expected):
    assert chosen(*shape)[1] == expected


@pytest.mark.parametrize("size", [1024, 4096])
def test_busy_processors_keep_the_usual_tile(size):
    usual, taken = chosen(1, size, size, size)
    assert taken == usual


def test_small_products_keep_the_usual_tile():
    usual, taken = chosen(1, 128, 384, 1536)
    assert taken == usual


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [13, 70])
async def test_smaller_workgroups_compute_the_same(ml, compiled, monkeypatch, rows):
    monkeypatch.setattr(tile_choice, "UNITS", 8)
    arrays = [integers((rows, 2051), low=-1, high=2), integers((2051, 260), low=-1, high=2)]
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    assert compiled[-1][0] == 2
