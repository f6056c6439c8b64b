"""Products get the tiles that were fastest for them on the GPU that was measured, and compute the same with them."""

import attrs
import pytest

from spec_tests.support.backends import needs_adapter
from spec_tests.support.both_devices import check_both, integers
from webnn_py.devices.wgpu.codegen.gemm import tile_store, tile_tables
from webnn_py.devices.wgpu.codegen.gemm.im2col_loader import Im2colLoader, WindowAxis
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.pixel_loader import PixelLoader
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.tile import GemmTile
from webnn_py.devices.wgpu.codegen.gemm.tile_search import Extent, choose_tile, choose_work, microseconds
from webnn_py.devices.wgpu.codegen.gemm.tile_tables import HOPPER, USUAL_TILES, RatedTile, SearchedTiles
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import element
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.layout import Layout

MEASURED_GPU = Features(max_workgroup_storage=49152, max_invocations=1024, gpu="hopper")
OTHER_GPU = Features(max_workgroup_storage=32768, max_invocations=1024, processors=30)
SMALL_LIMITS = Features(max_workgroup_storage=16384, max_invocations=256, gpu="hopper")


def product(rows, inner, columns, data_type="float32", batch=1):
    one = Layout((batch,), (0,))
    kind = element(data_type, shader_f16=True)
    left = MatrixLoader(Buffer("input", 2**20), kind, one, Layout((inner,), (1,)), rows, inner)
    right = MatrixLoader(Buffer("constant", 2**20), kind, one, Layout((inner,), (columns,)), columns, 1)
    return GemmProblem(batch, left, right, lambda *_: "0u", vec4s=True)


def convolution(images, channels, outputs, size, *of_windows):
    """A convolution of ``size``² pixels, by windows of a size and with strides."""
    window, stride = (*of_windows, 1, 1)[:2]
    one, buffer, after = Layout((1,), (0,)), Buffer("input", 2**30), -(-size // stride)
    kind, inner = element("float32", shader_f16=True), channels * window**2
    filter_ = MatrixLoader(buffer, kind, one, Layout((inner,), (1,)), outputs, inner)
    strides = (channels * size**2, size**2)
    if window == stride == 1:
        pixels = PixelLoader(buffer, kind, one, images, strides[0], size**2, 1, channels, strides[1])
    else:
        axis = WindowAxis(size, after, stride, 1, (-(window // 2),), (window,))
        pixels = Im2colLoader(buffer, kind, one, images, strides[0], channels, strides[1], (axis, axis), (size, 1))
    return GemmProblem(1, filter_, pixels, lambda *_: "0u", vec4s=after % 4 == 0)


def chosen(of, features=MEASURED_GPU, accumulate="f32"):
    """Rows and columns of the tile, and the parts."""
    tile, parts = choose_work(of, features, accumulate)
    return tile.rows, tile.columns, parts


PRODUCTS = {
    # Large ones, of an encoder's layers for 1,024 tokens.
    (1024, 768, 768): (128, 64, 4),
    (1024, 768, 2304): (128, 64, 3),
    (1024, 768, 3072): (128, 64, 1),
    (1024, 3072, 768): (128, 64, 4),
    (1024, 768, 2304, "float16"): (128, 144, 1),
    (1024, 1024, 1024): (128, 128, 2),
    # Those for 128 tokens.
    (128, 768, 3072): (32, 96, 1),
    (128, 768, 2304): (32, 96, 1),
    (128, 3072, 768): (32, 96, 4),
    (256, 1024, 1024): (32, 96, 3),
}
CONVOLUTIONS = {
    (16, 3, 64, 224, 7, 2): (64, 128, 1),
    (16, 128, 128, 56, 3, 2): (128, 64, 2),
    (16, 256, 256, 28, 3, 2): (128, 64, 4),
    (16, 512, 2048, 7): (128, 64, 1),
    (16, 64, 256, 56): (128, 64, 1),
    (16, 256, 512, 56, 1, 2): (128, 128, 1),
    (1, 512, 512, 7, 3): (32, 32, 4),
    (1, 2048, 512, 7): (32, 32, 4),
    (1, 256, 64, 7): (16, 16, 1),
}


def test_products_and_convolutions_get_the_tiles_that_were_fastest():
    assert {sizes: chosen(product(*sizes)) for sizes in PRODUCTS} == PRODUCTS
    assert {sizes: chosen(convolution(*sizes)) for sizes in CONVOLUTIONS} == CONVOLUTIONS


@pytest.mark.parametrize("sizes", [(128, 768, 768), (63, 768, 4096), (128, 1536, 384)])
def test_products_below_what_was_measured_keep_the_usual_tile(sizes):
    rows, _, columns = sizes
    assert choose_work(product(*sizes), MEASURED_GPU, "f32")[0] == choose_tile(rows, columns, 1, MEASURED_GPU)


def test_tiles_measured_for_single_products_of_float32_sums_are_for_these_only():
    middle = chosen(product(128, 768, 3072))[:2]
    assert chosen(product(128, 768, 1024, batch=3))[:2] != middle
    assert chosen(product(128, 768, 3072, "float16"), accumulate="f16")[:2] != middle


@pytest.mark.parametrize("size", [33, 128, 700, 1024, 4096])
def test_no_tile_exceeds_the_limits_of_an_adapter(size):
    tile, _ = choose_work(product(size, size, size), SMALL_LIMITS, "f32")
    assert tile.threads <= 256
    assert tile.vec4s * 16 <= 16384


def test_a_gpu_that_was_not_measured_gets_usual_tiles_for_its_processors():
    tiles = [choose_work(product(size, 1024, size), OTHER_GPU, "f32") for size in (256, 1024, 4096)]
    assert all(tile in USUAL_TILES for tile, _ in tiles)
    assert tile_tables.table_of(OTHER_GPU).units == 16
    groups = [tile.groups(size, size) * parts for (tile, parts), size in zip(tiles, (256, 1024, 4096), strict=True)]
    assert groups[0] <= 16
    assert chosen(product(256, 1024, 256), attrs.evolve(OTHER_GPU, processors=1))[2] == 1


def test_parts_take_no_more_memory_than_they_may(monkeypatch):
    parts = chosen(product(1024, 3072, 768))[2]
    large, *others = HOPPER.rules
    tiles = attrs.evolve(large.tiles, most_bytes=4 * 1024 * 768 * parts - 1)
    fewer = attrs.evolve(HOPPER, rules=(attrs.evolve(large, tiles=tiles), *others))
    monkeypatch.setattr(tile_tables, "MEASURED", {"hopper": fewer})
    assert chosen(product(1024, 3072, 768))[2] < parts


def test_a_workgroup_takes_as_long_alone_as_two_and_three_as_long_as_four():
    rated = RatedTile(GemmTile(64, 96, 8, 12), 1, 1, step=4)
    counts = [HOPPER.processors * rounds for rounds in (1, 2, 3, 4, 5)]
    extents = [Extent.of(product(64 * count, 64, 96)) for count in counts]
    times = [microseconds(SearchedTiles(tiles=(rated,)), rated, 1, extent, HOPPER) for extent in extents]
    assert [time / times[0] for time in times] == [1, 1, 2, 2, 4]


def test_a_second_kernel_for_parts_takes_time():
    tiles = SearchedTiles(tiles=(RatedTile(GemmTile(64, 64, 8, 8), 1e9, 1e9),))
    extent = Extent.of(product(256, 1024, 256))
    whole, parts = (microseconds(tiles, tiles.tiles[0], number, extent, HOPPER) for number in (1, 2))
    assert parts - whole > tiles.starting


@needs_adapter
@pytest.mark.usefixtures("all_products_large")
@pytest.mark.sampled(3)
async def test_a_long_last_step_of_a_large_product_has_a_kernel_of_its_own(ml, compiled, monkeypatch):
    monkeypatch.setattr(tile_store, "LONG_END", 0)
    arrays = [integers((70, 64)), integers((64, 100))]
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    monkeypatch.setattr(tile_store, "LONG_END", 2**20)
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    assert [kernels for kernels, *_ in compiled[-2:]] == [2, 1]


@needs_adapter
@pytest.mark.usefixtures("all_products_large")
@pytest.mark.parametrize("highest", [40, 900], ids=["rounded", "overflowing"])
async def test_sums_of_float16_are_rounded_before_a_last_step_of_its_own(ml, compiled, monkeypatch, highest):
    monkeypatch.setattr(tile_store, "LONG_END_IN_HALVES", 0)
    shapes = [(70, 64), (64, 100), (100,)]
    a, b, row = (integers(shape, "float16", -highest, highest + 1) for shape in shapes)
    limits = {"min_value": -60_000, "max_value": 60_000}
    await check_both(ml, [a, b, row], lambda b, x, y, z: b.clamp(b.add(b.matmul(x, y), z), **limits))
    assert compiled[-1][0] == 2


@needs_adapter
@pytest.mark.usefixtures("all_products_large")
@pytest.mark.sampled(3)
async def test_a_product_in_parts_is_what_it_is_as_a_whole(ml, compiled):
    arrays = [integers((70, 2051), low=-1, high=2), integers((2051, 100), low=-1, high=2)]
    await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    assert compiled[-1][0] == 2


@needs_adapter
@pytest.mark.usefixtures("all_products_large")
@pytest.mark.sampled(3)
async def test_few_channels_of_many_windows_compute_the_same(ml):
    arrays = [integers((1, 3, 29, 31)), integers((35, 3, 7, 7))]
    await check_both(ml, arrays, lambda b, x, w: b.conv2d(x, w, strides=[2, 2], padding=[3, 3, 3, 3]))


@needs_adapter
@pytest.mark.usefixtures("measured_gpu")
@pytest.mark.sampled(3)
async def test_few_pixels_of_many_channels_compute_the_same(ml, compiled):
    arrays = [integers((1, 1030, 5, 7), low=-1, high=2), integers((33, 1030, 1, 1), low=-1, high=2)]
    await check_both(ml, arrays, lambda b, x, w: b.relu(b.conv2d(x, w)))
    assert compiled[-1][0] == 2
