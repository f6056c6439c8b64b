"""Neighbouring element-wise operators on large arrays run tile by tile; nobody can tell but by the clock."""

import numpy as np
import pytest

from spec_tests.support.buffers import filled, zeroed
from webnn_py import MLGraphBuilder, UnknownError
from webnn_py.device.on_numpy import table
from webnn_py.device.on_numpy.passes import fusion
from webnn_py.operators import arithmetic


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Tiles of 1024 elements, and arrays of any size worth them."""
    monkeypatch.setattr(fusion, "WORTH_TILING", 1)
    monkeypatch.setattr(fusion, "TILE_BYTES", 1)


async def run(context, shape, draw, data_type="float32"):
    """Draw on inputs x and y of the shape, dispatch twice, and return the inputs and what comes out."""
    builder = MLGraphBuilder(context)
    names = ("x", "y")
    operands = [builder.input(name, data_type=data_type, shape=shape) for name in names]
    graph = await builder.build(draw(builder, *operands))
    rng = np.random.default_rng(716)
    arrays = {name: rng.integers(-9, 9, shape).astype(data_type) for name in names}
    sources = {name: await filled(context, arrays[name], data_type) for name in graph.input_descriptors}
    targets = {name: await zeroed(context, d.shape, d.data_type) for name, d in graph.output_descriptors.items()}
    for _ in range(2):
        context.dispatch(graph, sources, targets)
    for name, source in sources.items():
        np.testing.assert_array_equal(await context.read_buffer(source), arrays[name], f"the input {name}")
    return arrays["x"], arrays["y"], {name: await context.read_buffer(target) for name, target in targets.items()}


@pytest.mark.parametrize("shape", [[1], [1023], [1024], [1025], [2048], [3, 1000], [2, 3, 1024]], ids=str)
async def test_every_element_is_computed_whatever_the_last_tile_holds(numpy_context, shape):
    def draw(b, x, y):
        total = b.add(x, y)
        return {"z": b.mul(b.sub(total, x), total)}

    x, y, results = await run(numpy_context, shape, draw)
    np.testing.assert_array_equal(results["z"], y * (x + y))


async def test_neighbours_are_one_step_without_memory_between_them(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2000])
    graph = await builder.build({"y": builder.mul(builder.add(builder.sub(x, x), x), x)})
    assert len(graph._handle.compiled._calls) == 1
    assert numpy_context.statistics().live_bytes < 2 * 8000, "two whole intermediates"


async def test_what_lies_between_may_be_an_output_and_be_read_by_others(numpy_context):
    def draw(b, x, y):
        total = b.add(x, y)
        product = b.mul(total, x)
        return {"total": total, "product": product, "z": b.sub(product, total), "rows": b.transpose(product)}

    x, y, results = await run(numpy_context, [50, 60], draw)
    np.testing.assert_array_equal(results["total"], x + y)
    np.testing.assert_array_equal(results["product"], (x + y) * x)
    np.testing.assert_array_equal(results["z"], (x + y) * x - (x + y))
    np.testing.assert_array_equal(results["rows"], ((x + y) * x).T)


async def test_scalars_and_operands_of_another_shape_take_part(numpy_context):
    def draw(b, x, y):
        two, row = b.constant(2, data_type="float32"), b.constant(np.arange(60, dtype=np.float32))
        doubled = b.mul(b.add(x, two), b.constant(np.full((1, 1), 2, np.float32)))
        return {"z": b.sub(b.add(doubled, row), b.mul(y, two))}

    x, y, results = await run(numpy_context, [50, 60], draw)
    np.testing.assert_array_equal(results["z"], (x + 2) * 2 + np.arange(60, dtype=np.float32) - 2 * y)


async def test_operands_that_are_views_in_another_order_are_read_in_that_order(numpy_context):
    def draw(b, x, y):
        turned = b.transpose(b.add(x, y))
        return {"z": b.mul(b.add(turned, turned), b.reverse(b.transpose(x)))}

    x, y, results = await run(numpy_context, [50, 60], draw)
    np.testing.assert_array_equal(results["z"], 2 * (x + y).T * x.T[::-1, ::-1])


async def test_a_kernel_that_raises_in_a_tile_is_named_with_its_label(numpy_context, monkeypatch):
    def make(_node):
        def fail(*_arrays):
            raise FloatingPointError("too much")

        return fail

    monkeypatch.setitem(table._TABLE, arithmetic.add, table.NumpyEntry(make, None, table.elements))
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2000])
    graph = await builder.build({"y": builder.mul(builder.add(x, x, label="sum of rows"), x)})
    source, target = await filled(numpy_context, np.ones(2000)), await zeroed(numpy_context, [2000])

    numpy_context.dispatch(graph, {"x": source}, {"y": target})

    with pytest.raises(UnknownError, match=r"add \[sum of rows\]\(float32 \[2000\], float32 \[2000\]\): too much"):
        await numpy_context.read_buffer(target)
