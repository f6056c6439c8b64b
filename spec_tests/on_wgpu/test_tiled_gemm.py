"""Products in tiles: every tile computes the same, and cached texts are those that would be written again."""

import attrs
import numpy as np
import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.choosing import Choice
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Computed
from spec_tests.support.both_devices import check_both, integers
from webnn_py import MLGraphBuilder
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.devices.wgpu.backend import features_of
from webnn_py.devices.wgpu.codegen.gemm import tiled
from webnn_py.devices.wgpu.codegen.gemm.measured_tiles import HOPPER, USUAL_TILES, SearchedTiles
from webnn_py.devices.wgpu.codegen.gemm.tile_choice import choose_tile
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.recently_used import RecentlyUsed, Room

OF_RULES = [rule.tiles for rule in HOPPER.rules]
RATED = [rated.tile for tiles in OF_RULES if isinstance(tiles, SearchedTiles) for rated in tiles.tiles]
FILLED = [tiles.tile for tiles in OF_RULES if not isinstance(tiles, SearchedTiles)]
TILES = list(dict.fromkeys([*USUAL_TILES, *RATED, *FILLED]))

FILES = {file.operator: file for file in load_all()}


class Rewritten(dict):
    """Texts that are never found, and so are written each time; the same key must give the same text."""

    repeats = 0

    def get(self, _key):
        return None

    def put(self, key, text, _byte_length):
        self.repeats += key in self
        assert self.setdefault(key, text) == text


@pytest.fixture
def keep_texts_in(monkeypatch):
    """A function that sets where the texts of tiled products are kept, and returns that."""

    def keep(texts):
        monkeypatch.setattr(tiled, "_MAINS", texts)
        return texts

    return keep


@pytest.mark.usefixtures("in_tiles")
@pytest.mark.sampled(61, full=12)
@pytest.mark.parametrize("operator", ["matmul", "gemm", "conv2d", "conv_transpose2d"])
def test_products_with_the_same_key_have_the_same_text(pytestconfig, shared_gpu, keep_texts_in, operator):
    texts = keep_texts_in(Rewritten())
    cases = Choice(pytestconfig).cases("wgpu", FILES[operator], "as_written", parts_of_chosen=1)
    file = attrs.evolve(FILES[operator], cases=cases * 2)  # not every one is computed in tiles
    computed = Computed.of("wgpu", file, gpu_device=shared_gpu)
    checked = [case for case in file.cases if ("wgpu", operator, case.name) not in EXCEPTIONS]
    wrong = {case.name: computed.what_is_wrong(case) for case in checked}
    assert not any(wrong.values()), {name: words for name, words in wrong.items() if words}
    assert texts.repeats
    assert len(texts) > 1


async def test_a_kept_text_is_not_used_by_a_build_without_a_variant(ml, keep_texts_in):
    texts = keep_texts_in(RecentlyUsed(Room(count=8, byte_length=2**20)))
    context = await ml.create_context(backend="wgpu")
    counts = []
    for left_out in ((), (), ("gemm-shared-loads",)):
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[128, 384])
        weights = builder.constant(np.ones((384, 384), np.float32))
        with passes_left_out(*left_out):
            await builder.build({"y": builder.matmul(x, weights)})
        counts.append(len(texts))
    assert counts == [1, 1, 2]


def test_a_large_product_takes_larger_tiles_than_a_small_one():
    large, small = (choose_tile(size, size, 1, Features()) for size in (4096, 32))
    assert large.rows * large.columns > small.rows * small.columns


PRODUCTS = {
    "a large tile": [(512, 64), (64, 512)],
    "a large tile with an odd inner axis": [(512, 67), (67, 512)],
    "a large tile, nothing whole": [(515, 33), (33, 517)],
    "a long inner axis": [(40, 5_000), (5_000, 36)],
    "a long odd inner axis, odd columns": [(33, 4_099), (4_099, 35)],
    "a short inner axis": [(300, 3), (3, 300)],
    "one row": [(1, 3_000), (3_000, 600)],
    "one column": [(600, 3_000), (3_000, 1)],
    "many batches": [(60, 33, 20), (60, 20, 37)],
    "one matrix for all batches": [(12, 40, 64), (64, 96)],
}


@pytest.mark.sampled(23)
@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("a", "b"), PRODUCTS.values(), ids=PRODUCTS)
async def test_products(ml, data_type, a, b):
    arrays = [integers(shape, data_type, -1, 2) for shape in (a, b)]
    await check_both(ml, arrays, lambda builder, x, y: builder.matmul(x, y))


@pytest.mark.sampled(21)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("tile", TILES, ids=str)
async def test_every_tile_computes_the_same(ml, take_tile, tile, data_type):
    context = await ml.create_context(backend="wgpu")
    if not tile.fits(features_of(context.device.backend.device)):
        pytest.skip("this adapter cannot run it")
    context.destroy()
    take_tile(tile)
    arrays = [integers((tile.rows + 9, 37), data_type), integers((37, tile.columns + 13), data_type)]
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    arrays = [integers((2, tile.rows, 64), data_type), integers((2, 64, 2 * tile.columns), data_type)]
    await check_both(ml, arrays, lambda b, x, y: b.matmul(x, y))


@pytest.mark.sampled(23)
@pytest.mark.parametrize("transposes", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("size", [(256, 128, 260), (131, 67, 129)])
async def test_transposed_products(ml, transposes, size):
    rows, inner, columns = size
    a, b = (inner, rows) if transposes[0] else (rows, inner), (columns, inner) if transposes[1] else (inner, columns)
    await check_both(
        ml,
        [integers(a), integers(b), integers((columns,))],
        lambda builder, x, y, c: builder.gemm(x, y, c=c, a_transpose=transposes[0], b_transpose=transposes[1]),
    )
