"""Constant tensors (constant buffers): weights that several graphs share lie on a device once."""

import numpy as np
import pytest

from spec_tests.support.backends import BACKENDS, on_each
from spec_tests.support.computing import compute_graph
from webnn_py import MLGraphBuilder

WEIGHTS = np.random.default_rng(0).uniform(-1, 1, (256, 256)).astype(np.float32)
LENGTHS = (1, 3)
"""Of a step and of a prompt."""

backend = on_each(BACKENDS)


async def constant_buffer(context):
    return await context.create_constant_buffer(WEIGHTS, data_type="float32", shape=WEIGHTS.shape)


async def built(context, length, weights):
    """Build a graph of one product, by weights as an array or as a constant buffer."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[length, len(WEIGHTS)])
    return await builder.build({"y": builder.matmul(x, builder.constant(weights))})


async def live_bytes(context):
    await context.drain()
    return context.statistics().live_bytes


async def test_graphs_share_a_constant_tensor_and_copy_constants(context):
    before = await live_bytes(context)
    copies = [await built(context, length, WEIGHTS) for length in LENGTHS]
    of_copies = await live_bytes(context) - before
    for graph in copies:
        graph.destroy()
    assert await live_bytes(context) == before
    buffer = await constant_buffer(context)
    [await built(context, length, buffer) for length in LENGTHS]
    of_tensor = await live_bytes(context) - before
    assert WEIGHTS.nbytes <= of_tensor < 1.5 * WEIGHTS.nbytes
    assert of_copies >= 2 * WEIGHTS.nbytes


async def test_the_last_graph_frees_a_constant_tensor_that_is_destroyed(context):
    before = await live_bytes(context)
    buffer = await constant_buffer(context)
    graphs = [await built(context, length, buffer) for length in LENGTHS]
    buffer.destroy()
    for length, graph in zip(LENGTHS, graphs, strict=True):
        assert await live_bytes(context) >= before + WEIGHTS.nbytes
        x = np.linspace(-1, 1, length * len(WEIGHTS), dtype=np.float32).reshape(length, -1)
        found = (await compute_graph(context, graph, {"x": x}))["y"]  # which destroys the graph
        np.testing.assert_allclose(found, x @ WEIGHTS, rtol=0, atol=1e-4)
    assert await live_bytes(context) == before


async def test_the_script_may_change_its_array_afterwards(context):
    array = WEIGHTS.copy()
    promise = context.create_constant_buffer(array, data_type="float32", shape=array.shape)
    array[:] = 0
    graph = await built(context, 1, await promise)
    x = np.ones((1, len(WEIGHTS)), np.float32)
    found = (await compute_graph(context, graph, {"x": x}))["y"]
    np.testing.assert_allclose(found, x @ WEIGHTS, rtol=0, atol=1e-4)


@pytest.mark.parametrize("length", LENGTHS)
async def test_what_is_given_crosses_to_the_device_once(context, length):
    counted = context.statistics().host_copies
    buffer = await constant_buffer(context)
    await built(context, length, buffer)
    await built(context, length, buffer)
    assert context.statistics().host_copies == counted + 1
