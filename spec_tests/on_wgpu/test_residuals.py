"""What is added to a product lies in the memory that its sums are stored in: it is read before any is stored."""

import pytest

from spec_tests.support.both_devices import check_both, integers
from webnn_py.device.on_wgpu.codegen.gemm import tile_store, tiled
from webnn_py.device.on_wgpu.codegen.gemm.tile import GemmTile


def with_residual(weight):
    """relu(x · weight + |x · 1|), both of which lie where the graph's intermediates do."""

    def draw(b, x):
        residual = b.abs(b.matmul(x, b.constant(integers(weight.shape, low=0, high=2))))
        y = b.relu(b.add(b.matmul(x, b.constant(weight)), residual))
        return b.reduce_sum(y, axes=[1])

    return draw


@pytest.mark.sampled(2)
@pytest.mark.parametrize("columns", [68, 67])
async def test_residuals_of_tiles_that_overhang(ml, columns, monkeypatch):
    rows, inner = 37, 30
    written = []
    store = tile_store.TileStore.write
    monkeypatch.setattr(tiled, "_MAINS", tiled.RecentlyUsed(tiled.Room(count=9, byte_length=2**20)))
    monkeypatch.setattr(tiled, "choose_work", lambda *_: (GemmTile(32, 32, 8, 8), 1))
    monkeypatch.setattr(tile_store.TileStore, "write", lambda self: written.append(store(self)) or written[-1])
    await check_both(ml, [integers((rows, inner))], with_residual(integers((inner, columns))))
    for lines in written:
        steps = ["put" if "put" in line else "end" for line in lines if "put" in line or "= ended" in line]
        runs = [step for step, following in zip(steps, [*steps[1:], "end"], strict=True) if step != following]
        at_once = tile_store.AT_ONCE * (4 if any("put_one(" in line for line in lines) else 1)
        assert runs.count("put") == -(-steps.count("put") // at_once) > 0
