"""Convolutions get the tiles that were fastest for them on a large GPU, and compute the same with them."""

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.both_devices import check_both, integers
from webnn_py.device.on_wgpu.codegen.gemm import tile_images, tiled
from webnn_py.device.on_wgpu.codegen.gemm.im2col_loader import Im2colLoader, WindowAxis
from webnn_py.device.on_wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.device.on_wgpu.codegen.gemm.pixel_loader import PixelLoader
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import GemmTile
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import element
from webnn_py.device.on_wgpu.records.features import Features
from webnn_py.device.on_wgpu.records.layout import Layout

LARGE_GPU = Features(max_workgroup_storage=49152, max_invocations=1024)
FLOAT32 = element("float32", shader_f16=True)


def chosen(images, channels, outputs, size, *of_windows):
    """Rows and columns of the tile, and the parts, for a convolution of ``size``² pixels."""
    inputs, (window, stride) = channels, (*of_windows, 1, 1)[:2]
    one, buffer, after = Layout((1,), (0,)), Buffer("input", 2**30), -(-size // stride)
    filter_ = MatrixLoader(buffer, FLOAT32, one, Layout((inputs * window**2,), (1,)), outputs, inputs * window**2)
    strides = (inputs * size**2, size**2)
    if window == stride == 1:
        pixels = PixelLoader(buffer, FLOAT32, one, images, strides[0], size**2, 1, inputs, strides[1])
    else:
        axis = WindowAxis(size, after, stride, 1, (-(window // 2),), (window,))
        pixels = Im2colLoader(buffer, FLOAT32, one, images, strides[0], inputs, strides[1], (axis, axis), (size, 1))
    product = GemmProblem(1, filter_, pixels, lambda *_: "0u", vec4s=after % 4 == 0)
    tile, parts = tiled.choose_work(product, LARGE_GPU, None, "f32")
    return tile.rows, tile.columns, parts


CHOSEN = {
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


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_the_convolutions_of_a_network_get_the_tiles_that_were_fastest(case):
    assert chosen(*case) == CHOSEN[case]


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
async def test_few_channels_of_many_windows_compute_the_same(ml, monkeypatch):
    monkeypatch.setattr(tile_images, "PROCESSORS", 1)
    monkeypatch.setattr(tile_images, "LEAST_PRODUCTS", 0)
    arrays = [integers((1, 3, 29, 31)), integers((35, 3, 7, 7))]
    await check_both(ml, arrays, lambda b, x, w: b.conv2d(x, w, strides=[2, 2], padding=[3, 3, 3, 3]))


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
async def test_few_pixels_of_many_channels_compute_the_same(ml, compiled):
    arrays = [integers((1, 1030, 5, 7), low=-1, high=2), integers((33, 1030, 1, 1), low=-1, high=2)]
    await check_both(ml, arrays, lambda b, x, w: b.relu(b.conv2d(x, w)))
    assert compiled[-1][0] == 2


@pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
@pytest.mark.parametrize("parts", [1, 3])
async def test_sums_of_images_whose_pixels_are_no_vec4s_are_laid_in_vec4s(ml, monkeypatch, compiled, parts):
    monkeypatch.setattr(tiled, "choose_work", lambda *_: (GemmTile(32, 32, 8, 8), parts))
    monkeypatch.setattr(tiled, "LEAST_PRODUCTS", 0)
    arrays = [integers((4, 80, 5, 5)), integers((82, 40, 1, 1)), integers((82,)), integers((4, 82, 5, 5))]

    def draw(b, x, w, bias, residual):
        return b.relu(b.add(b.conv2d(x, w, bias=bias, groups=2), residual))

    await check_both(ml, arrays, draw)
    assert compiled[-1][0] == 2
