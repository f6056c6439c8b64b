"""Products get the tiles that were fastest for them on the GPU that was measured, and compute the same with them."""

import pytest

from spec_tests.support.backends import needs_adapter
from spec_tests.support.both_devices import check_both, integers
from webnn_py.devices.wgpu.codegen.gemm import tile_store
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.devices.wgpu.codegen.gemm.tile_choice import choose_work
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import element
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.layout import Layout

SMALL_LIMITS = Features(max_workgroup_storage=16384, max_invocations=256, gpu="hopper")


def product(rows, inner, columns, data_type="float32", batch=1):
    one = Layout((batch,), (0,))
    kind = element(data_type, shader_f16=True)
    left = MatrixLoader(Buffer("input", 2**20), kind, one, Layout((inner,), (1,)), rows, inner)
    right = MatrixLoader(Buffer("constant", 2**20), kind, one, Layout((inner,), (columns,)), columns, 1)
    return GemmProblem(batch, left, right, lambda *_: "0u", vec4s=True)


@pytest.mark.parametrize("size", [33, 128, 700, 1024, 4096])
def test_no_tile_exceeds_the_limits_of_an_adapter(size):
    tile, _ = choose_work(product(size, size, size), SMALL_LIMITS, "f32")
    assert tile.threads <= 256
    assert tile.vec4s * 16 <= 16384


@pytest.fixture
def long_from(monkeypatch):
    """A function that sets the characters from which on a last step is long."""

    def set_limits(characters):
        for name in ("LONG_END", "LONG_END_IN_HALVES"):
            monkeypatch.setattr(tile_store, name, characters)

    return set_limits


@needs_adapter
@pytest.mark.usefixtures("all_products_large")
@pytest.mark.sampled(3)
async def test_a_long_last_step_of_a_large_product_has_a_kernel_of_its_own(ml, compiled, long_from):
    arrays = [integers((70, 64)), integers((64, 100))]
    for characters in (0, 2**20):
        long_from(characters)
        await check_both(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    assert [kernels for kernels, *_ in compiled[-2:]] == [2, 1]


@needs_adapter
@pytest.mark.usefixtures("all_products_large")
@pytest.mark.parametrize("highest", [40, 900], ids=["rounded", "overflowing"])
async def test_sums_of_float16_are_rounded_before_a_last_step_of_its_own(ml, compiled, long_from, highest):
    long_from(0)
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
