"""Memory of buffers, graphs and constants is released in its turn on the device timeline, as ``statistics()`` shows."""

import gc
import weakref

import numpy as np
import trio

from spec_tests.support.buffers import constant, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number
from webnn_py import MLGraphBuilder
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Node
from webnn_py.core.operators.registry import OPERATORS

DESCRIPTOR = MLOperandDescriptor("float32", (2,))


def live(context):
    """Return the live buffers and the live bytes."""
    statistics = context.statistics()
    return statistics.live_buffers, statistics.live_bytes


async def test_every_step_changes_live_memory_when_it_runs_and_not_when_it_is_called(context):
    timeline = context.device_timeline
    timeline.pause()
    first = context.create_buffer(data_type="float32", shape=[25])
    second = context.create_constant_buffer(bytes(10), data_type="uint8", shape=[10])
    assert live(context) == (0, 0)
    await timeline.step()
    assert live(context) == (1, 100)
    await timeline.step()
    assert live(context) == (2, 110)
    (await first).destroy()
    (await second).destroy()
    assert live(context) == (2, 110)
    await timeline.step()
    assert live(context) == (1, 10)
    await timeline.step()
    assert live(context) == (0, 0)


async def test_a_constant_buffer_stays_as_long_as_a_graph_that_reads_it(device, context):
    weights = await constant(context, np.arange(25))
    promises = [build_add_buffer(context, weights) for _ in range(2)]
    weights.destroy()
    first, second = [await promise for promise in promises]
    await context.drain()
    assert live(context) == (0, 100), "the buffer is gone, its memory is the graphs'"

    first.destroy()
    await context.drain()
    assert live(context) == (0, 100)
    assert "free" not in device.log
    source, target = await zeroed(context, [25]), await zeroed(context, [25])
    context.dispatch(second, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await context.read_buffer(target), np.arange(25))

    second.destroy()
    await context.drain()
    assert live(context) == (2, 200)
    assert device.log.count("free") == 1
    weights = await constant(context, np.arange(25))
    (await build_add_buffer(context, weights)).destroy()
    await context.drain()
    assert live(context) == (3, 300), "the buffer outlives a graph that is destroyed first"


async def test_a_graph_counts_the_constants_it_keeps_and_its_intermediates(context, backend):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[100])
    weights = builder.constant(np.ones(100, np.float32))
    folded = builder.add(weights, builder.constant(np.ones((1, 1), np.float32)))
    y = builder.mul(builder.add(x, folded), builder.constant(2, data_type="float32"))

    graph = await builder.build({"y": y})

    folded_bytes, scalar_bytes, intermediate_bytes = 400, 4, 448
    if backend == "wgpu":  # memory in units of 32 bytes; one kernel, with the number in its text and nothing between
        folded_bytes, scalar_bytes, intermediate_bytes = 416, 0, 0
    if backend == "onnxruntime":  # what it folds, and what lies between, it does not tell
        folded_bytes, intermediate_bytes = 404, 0
    assert live(context) == (0, folded_bytes + scalar_bytes + intermediate_bytes)
    graph.destroy()
    await context.drain()
    assert live(context) == (0, 0)


async def test_a_graph_takes_the_same_memory_before_and_after_it_is_dispatched(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[3, 4])
    weights = builder.constant(np.arange(20, dtype=np.float32).reshape(4, 5))
    bias = builder.constant(np.arange(5, dtype=np.float32))
    graph = await builder.build({"y": builder.softmax(builder.gemm(x, weights, c=bias), 1)})
    _, graph_bytes = live(context)
    assert graph_bytes >= 100, "the constants"
    source, target = await zeroed(context, [3, 4]), await zeroed(context, [3, 5])
    for _ in range(2):
        context.dispatch(graph, {"x": source}, {"y": target})
        await context.drain()
        assert live(context) == (2, 48 + 60 + graph_bytes)
    graph.destroy()
    await context.drain()
    assert live(context) == (2, 48 + 60)


async def test_a_destroyed_graph_is_freed_without_the_garbage_collector(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[3, 4])
    weights = builder.constant(np.arange(20, dtype=np.float32).reshape(4, 5))
    values, gates = builder.split(builder.matmul(x, weights), [2, 3], axis=1)
    held = weakref.ref(builder.value_of(weights))
    gc.collect()
    gc.disable()
    try:
        graph = await builder.build({"y": builder.softmax(builder.relu(gates), 1)})
        del builder, x, weights, values, gates
        graph.destroy()
        del graph
        await context.drain()
        with trio.move_on_after(10):  # a thread that has expanded the graph drops it just after it has said so
            while held() is not None:
                await trio.lowlevel.checkpoint()
        assert held() is None
    finally:
        gc.enable()


def test_results_of_a_node_are_the_same_objects_as_long_as_one_is_held():
    node = Node(OPERATORS["split"], {}, {}, (DESCRIPTOR, DESCRIPTOR))
    _, second = node.results
    first_again, second_again = node.results
    assert second_again is second
    assert (first_again.index, first_again.node) == (0, node)
    assert node.results == (first_again, second)


async def test_every_copy_between_host_and_device_is_counted(context):
    def copies():
        return context.statistics().host_copies

    source, target = await zeroed(context, [2]), await zeroed(context, [2])
    graph = await build_add_number(context, 1, [2])
    assert copies() == 0
    weights = await constant(context, [1, 2])
    assert copies() == 1
    context.write_buffer(source, np.ones(2, np.float32))
    await context.drain()
    assert copies() == 2
    context.dispatch(graph, {"x": source}, {"y": target})
    await context.drain()
    assert copies() == 2
    await context.read_buffer(target)
    await context.read_buffer(target, out=np.zeros(2, np.float32))
    assert copies() == 4
    weights.destroy()
