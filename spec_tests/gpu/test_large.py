"""Large shapes, for which there are other kernels: the GPU gives what numpy gives, to the bit where nothing is rounded.

Data are small integers, so that sums and products are exact in any order.
"""

import attrs
import numpy as np
import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device.on_wgpu import backend as wgpu_backend
from webnn_py.device.on_wgpu.backend import features_of
from webnn_py.device.on_wgpu.codegen.gemm import tiled
from webnn_py.device.on_wgpu.codegen.gemm.tile_sizes import TILES, GemmTile

pytestmark = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)

OF_EACH_SIZE = ["uint8", "float16", "float32", "int64"]
"""A data type for each number of bytes: what moves elements does not look at more."""


@pytest.fixture(params=[{}, {"shader_f16": False, "subgroups": False}], ids=["", "no 16-bit floats and subgroups"])
def _features(request, monkeypatch):
    """What the adapter has, and what it may lack: then there are other kernels again."""
    monkeypatch.setattr(wgpu_backend, "features_of", lambda device: attrs.evolve(features_of(device), **request.param))


def integers(shape, data_type="float32", low=-4, high=5):
    low = 0 if data_type.startswith("u") else low
    return np.random.default_rng(list(shape)).integers(low, high, shape).astype(data_type)


async def check(ml, arrays, draw, *, rtol=0):
    """Compare the outputs of ``draw(builder, *operands)`` on both devices."""
    results = []
    for backend in ("numpy", "wgpu"):
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        inputs = {f"x{index}": array for index, array in enumerate(arrays)}
        operands = [
            builder.input(name, data_type=array.dtype.name, shape=array.shape) for name, array in inputs.items()
        ]
        results.append((await compute(context, builder, inputs, {"y": draw(builder, *operands)}))["y"])
        context.destroy()
    expected, got = results
    assert got.dtype == expected.dtype
    assert np.isfinite(expected).all()
    if rtol == 0:
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


def needs(context_types, data_type):
    if data_type not in context_types:
        pytest.skip(f"this adapter has no {data_type}")


@pytest.fixture
async def data_types(ml):
    context = await ml.create_context(backend="wgpu")
    types = context.op_support_limits()["input"]["data_types"]
    context.destroy()
    return types


TRANSPOSED = {
    "whole fours": [(128, 96), (1, 0), []],
    "no whole fours": [(131, 77), (1, 0), []],
    "rows not whole": [(130, 64), (1, 0), []],
    "columns not whole": [(64, 130), (1, 0), []],
    "batches": [(3, 60, 44), (0, 2, 1), []],
    "small batches": [(70, 12, 8), (0, 2, 1), []],
    "outer axes": [(20, 24, 36), (2, 1, 0), []],
    "first axis last": [(40, 6, 36), (1, 2, 0), []],
    "backwards": [(96, 128), (1, 0), [0, 1]],
    "rows backwards": [(128, 95), (1, 0), [0]],
    "large": [(300, 260), (1, 0), []],
}


@pytest.mark.parametrize("data_type", OF_EACH_SIZE)
@pytest.mark.parametrize("case", TRANSPOSED.values(), ids=TRANSPOSED)
async def test_transposed(ml, data_types, data_type, case):
    needs(data_types, data_type)
    shape, permutation, reversed_axes = case

    def draw(b, x):
        x = b.reverse(x, axes=reversed_axes) if reversed_axes else x
        return b.transpose(x, permutation=permutation)

    await check(ml, [integers(shape, data_type, -100, 100)], draw)


async def test_a_part_that_is_transposed_is_read_by_other_kernels(ml):
    def draw(b, x, y):
        part = b.transpose(b.slice(x, [1, 3], [300, 260]))
        return b.add(b.mul(part, part), b.matmul(y, part))

    await check(ml, [integers((305, 266)), integers((260, 260), low=0, high=2)], draw)


SCANNED = {
    "a long row": [(1, 70_001), 1],
    "a few long rows": [(3, 20_000), 1],
    "many rows": [(700, 300), 1],
    "a long column": [(40_003, 1), 0],
    "a few long columns": [(9_001, 5), 0],
    "columns in fours": [(5_000, 8), 0],
    "columns side by side": [(700, 64), 0],
    "long columns side by side": [(5_000, 33), 0],
    "in the middle": [(3, 4_100, 4), 1],
    "in the middle, side by side": [(2, 1_100, 48), 1],
}


@pytest.mark.usefixtures("_features")
@pytest.mark.parametrize("data_type", ["float32", "float16", "int32"])
@pytest.mark.parametrize("options", [{}, {"exclusive": True, "reversed": True}], ids=["", "exclusive and reversed"])
@pytest.mark.parametrize(("shape", "axis"), SCANNED.values(), ids=SCANNED)
async def test_cumulative_sum(ml, data_type, options, shape, axis):
    array = np.where(integers(shape) > 0, 1, integers(shape, low=-1, high=1)).astype(data_type)
    if data_type == "float16":  # sums stay below 2,048, where they are exact
        array = (np.arange(array.size).reshape(shape) % 97 == 0).astype(data_type)
    await check(ml, [array], lambda b, x: b.cumulative_sum(x, axis, **options))


REDUCED = {
    "one long row": [(300_000,), [0]],
    "a few long rows": [(3, 100_001), [1]],
    "long rows in fours": [(4, 65_536), [1]],
    "many rows": [(5_000, 70), [1]],
    "long columns": [(30_000, 7), [0]],
    "long columns in fours": [(20_000, 16), [0]],
    "long columns side by side": [(9_000, 70), [0]],
    "both ends": [(90, 40, 100), [0, 2]],
    "the middle": [(30, 2_000, 6), [1]],
}

REDUCTIONS = ["reduce_sum", "reduce_max", "reduce_min", "reduce_l1", "reduce_sum_square", "reduce_mean", "reduce_l2"]


@pytest.mark.usefixtures("_features")
@pytest.mark.parametrize("method", REDUCTIONS)
@pytest.mark.parametrize(("shape", "axes"), REDUCED.values(), ids=REDUCED)
async def test_reductions(ml, method, shape, axes):
    rounds = method in ("reduce_mean", "reduce_l2")
    await check(ml, [integers(shape)], lambda b, x: getattr(b, method)(x, axes=axes), rtol=1e-6 if rounds else 0)


@pytest.mark.parametrize("data_type", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("method", ["arg_max", "arg_min"])
@pytest.mark.parametrize(("shape", "axes"), [row for row in REDUCED.values() if len(row[1]) == 1])
async def test_the_first_of_the_greatest_and_least(ml, data_type, method, shape, axes):
    await check(ml, [integers(shape, data_type)], lambda b, x: getattr(b, method)(x, axes[0]))


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


@pytest.mark.usefixtures("_features")
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("a", "b"), PRODUCTS.values(), ids=PRODUCTS)
async def test_products(ml, data_type, a, b):
    arrays = [integers(shape, data_type, -1, 2) for shape in (a, b)]
    await check(ml, arrays, lambda builder, x, y: builder.matmul(x, y))


@pytest.mark.parametrize("vectors", [1, 2])
async def test_a_few_vectors_times_a_matrix_of_very_many_rows(ml, vectors):
    arrays = [integers((vectors, 68)), integers((20_003, 68))]
    await check(ml, arrays, lambda b, x, y: b.gemm(x, y, b_transpose=True))


@pytest.mark.parametrize(("data_type", "buffers"), [("float32", 1), ("float16", 1), ("float32", 2)])
@pytest.mark.parametrize("tile", [*TILES, GemmTile(128, 128, 8, 8, interleaved=True)], ids=str)
async def test_every_tile_computes_the_same(ml, monkeypatch, tile, buffers, data_type):
    tile = attrs.evolve(tile, buffers=buffers)
    context = await ml.create_context(backend="wgpu")
    if not tile.fits(features_of(context._device.backend.device)):
        pytest.skip("this adapter cannot run it")
    context.destroy()
    monkeypatch.setattr(tiled, "choose_tile", lambda *_: tile)
    arrays = [integers((tile.rows + 9, 37), data_type), integers((37, tile.columns + 13), data_type)]
    await check(ml, arrays, lambda b, x, y: b.relu(b.matmul(x, y)))
    arrays = [integers((2, tile.rows, 64), data_type), integers((2, 64, 2 * tile.columns), data_type)]
    await check(ml, arrays, lambda b, x, y: b.matmul(x, y))


@pytest.mark.parametrize("transposes", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("size", [(256, 128, 260), (131, 67, 129)])
async def test_transposed_products(ml, transposes, size):
    rows, inner, columns = size
    a, b = (inner, rows) if transposes[0] else (rows, inner), (columns, inner) if transposes[1] else (inner, columns)
    await check(
        ml,
        [integers(a), integers(b), integers((columns,))],
        lambda builder, x, y, c: builder.gemm(x, y, c=c, a_transpose=transposes[0], b_transpose=transposes[1]),
    )


CONVOLUTIONS = {
    "many channels": [(1, 64, 28, 28), (64, 64, 3, 3), {"padding": [1, 1, 1, 1]}],
    "few pixels, many channels": [(1, 256, 7, 7), (128, 256, 3, 3), {"padding": [1, 1, 1, 1]}],
    "1×1": [(1, 130, 30, 30), (70, 130, 1, 1), {}],
    "strided": [(1, 3, 112, 112), (32, 3, 7, 7), {"padding": [3, 3, 3, 3], "strides": [2, 2]}],
    "depthwise": [(1, 96, 56, 56), (96, 1, 3, 3), {"padding": [1, 1, 1, 1], "groups": 96}],
    "groups": [(2, 64, 20, 20), (128, 16, 3, 3), {"groups": 4, "dilations": [2, 2]}],
}


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(("image", "filter_", "options"), CONVOLUTIONS.values(), ids=CONVOLUTIONS)
async def test_convolutions(ml, layout, image, filter_, options):
    weights = integers(filter_, low=-2, high=3)
    image = image if layout == "nchw" else (image[0], *image[2:], image[1])
    await check(
        ml,
        [integers(image)],
        lambda b, x: b.relu(b.conv2d(x, b.constant(weights), input_layout=layout, **options)),
    )


@pytest.mark.parametrize("channels", [3, 8])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("method", ["max_pool2d", "average_pool2d"])
async def test_pooling_with_large_windows(ml, method, layout, channels):
    shape = (2, channels, 20, 30) if layout == "nchw" else (2, 20, 30, channels)
    options = {"window_dimensions": [8, 9], "padding": [3, 4, 2, 1], "strides": [2, 3], "layout": layout}
    await check(ml, [integers(shape)], lambda b, x: getattr(b, method)(x, **options), rtol=1e-6)


@pytest.mark.usefixtures("_features")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 5_000, 2), (2, 3, 40_001), (1_030, 4, 130)])
async def test_softmax_and_layer_normalization(ml, axis, shape):
    def draw(b, x):
        return b.add(b.softmax(x, axis), b.layer_normalization(x, axes=[axis]))

    await check(ml, [integers(shape)], draw, rtol=2e-5)


async def test_more_workgroups_than_a_dimension_has(ml):
    count = 4 * 256 * 65_535 + 5  # four elements for each of 256 invocations
    array = (np.arange(count, dtype=np.uint32) % 251).astype(np.uint8)
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="uint8", shape=[count])
    drawn = {"y": builder.add(x, builder.constant(1, data_type="uint8"))}
    got = (await compute(context, builder, {"x": array}, drawn))["y"]
    assert (got == array + np.uint8(1)).all()
