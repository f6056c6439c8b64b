"""Equal computations of positions and masks are one."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.pictures import picture


@pytest.fixture
async def gpu_context(ml):
    return await ml.create_context(backend="wgpu")


def masked(builder, x, length):
    """Return x with zeros behind a length, by constants of its own."""
    places = builder.constant(np.arange(8, dtype=np.int32))
    return builder.where(builder.lesser(places, length), x, builder.constant(0, data_type="float32"))


async def test_masks_of_two_layers_are_computed_once(gpu_context):
    builder = MLGraphBuilder(gpu_context)
    x = builder.input("x", data_type="float32", shape=[8])
    length = builder.input("length", data_type="int32", shape=[1])
    outputs = {"y": masked(builder, builder.neg(x), length), "z": masked(builder, builder.exp(x), length)}
    feeds = {"x": np.linspace(-1, 1, 8, dtype=np.float32), "length": np.int32([5])}
    graph = await builder.build(outputs, keep_source=True)
    text = picture(graph).describe(passes=True)
    assert "equal-nodes: 6 → 5 nodes" in text
    assert "equal-nodes: lesser" in text
    graph.destroy()
    again = MLGraphBuilder(gpu_context)
    x = again.input("x", data_type="float32", shape=[8])
    length = again.input("length", data_type="int32", shape=[1])
    outputs = {"y": masked(again, again.neg(x), length), "z": masked(again, again.exp(x), length)}
    results = await compute(gpu_context, again, feeds, outputs)
    is_there = np.arange(8) < 5
    np.testing.assert_allclose(results["y"], np.where(is_there, -feeds["x"], 0), rtol=1e-6)
    np.testing.assert_allclose(results["z"], np.where(is_there, np.exp(feeds["x"]), 0), rtol=1e-6)


async def test_floats_are_computed_by_each_reader(gpu_context):
    builder = MLGraphBuilder(gpu_context)
    x = builder.input("x", data_type="float32", shape=[32])
    graph = await builder.build({"y": builder.neg(builder.exp(x)), "z": builder.abs(builder.exp(x))}, keep_source=True)
    assert "equal-nodes: 4 → 4 nodes" in picture(graph).describe(passes=True)
    graph.destroy()
