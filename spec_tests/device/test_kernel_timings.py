"""A device times each kernel of a dispatch, and names its operators and the bytes that it moves."""

from inspect import isawaitable

import numpy as np
import pytest

from spec_tests.support.buffers import filled, zeroed
from webnn_py import MLGraphBuilder
from webnn_py.buffer_copies import clear_buffer
from webnn_py.core.device.backend import TimesKernels
from webnn_py.devices.wgpu.runtime import timestamps

X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)


async def layer(context):
    """Build relu(conv2d(x)), transposed, and the sum of the squares of its exponentials."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    filters = builder.constant(np.full((2, 3, 1, 1), 0.5, np.float32))
    image = builder.relu(builder.conv2d(x, filters, label="first"), label="act")
    outputs = {"turned": builder.transpose(image), "sum": builder.reduce_sum(builder.exp(image), label="all")}
    return await builder.build(outputs)


class Running:
    """A graph with buffers for its inputs and outputs."""

    def __init__(self, context, graph):
        self.context, self.graph = context, graph

    async def make_buffers(self):
        self.inputs = {name: await filled(self.context, X) for name in self.graph.input_descriptors}
        self.outputs = {
            name: await zeroed(self.context, item.shape) for name, item in self.graph.output_descriptors.items()
        }
        await self.context.drain()

    async def timed(self):
        given, made = (
            {name: buffer.storage for name, buffer in buffers.items()} for buffers in (self.inputs, self.outputs)
        )
        timings = self.context.device.backend.dispatch_timed(self.graph.handle.compiled, given, made)
        return await timings if isawaitable(timings) else timings

    async def results(self):
        return {name: await self.context.read_buffer(buffer) for name, buffer in self.outputs.items()}


@pytest.fixture
async def running(context):
    if not isinstance(context.device.backend, TimesKernels):
        pytest.skip(f"{context.backend} does not time kernels")
    running = Running(context, await layer(context))
    await running.make_buffers()
    return running


async def test_a_timed_dispatch_gives_the_same_results(running):
    running.context.dispatch(running.graph, running.inputs, running.outputs)
    expected = await running.results()
    for buffer in running.outputs.values():
        clear_buffer(running.context, buffer)
    await running.context.drain()
    await running.timed()
    for name, array in (await running.results()).items():
        np.testing.assert_array_equal(array, expected[name], name)


async def test_every_operator_is_named_once_with_its_label(running):
    timings = await running.timed()
    named = [(node.operator, node.label) for timing in timings for node in timing.nodes]
    assert named == [("conv2d", "first"), ("relu", "act"), ("exp", ""), ("reduceSum", "all")]
    assert all(timing.operators == tuple(node.operator for node in timing.nodes) for timing in timings)


async def test_kernels_follow_one_another_on_one_clock(running, backend):
    timings = await running.timed()
    assert {timing.clock for timing in timings} == {"gpu" if backend == "wgpu" else "host"}
    assert all(timing.duration_ns > 0 for timing in timings)
    ends = [timing.start_ns + timing.duration_ns for timing in timings]
    assert all(timing.start_ns >= end for timing, end in zip(timings[1:], ends, strict=False))
    if backend == "wgpu":
        assert timings[0].start_ns == 0


async def test_bytes_are_those_of_operands_and_results(running, backend):
    timings = {timing.operators: timing.bytes_moved for timing in await running.timed()}
    image = 4 * 2 * 4 * 4
    of_layer = X.nbytes + 4 * 6 + image
    expected = {("conv2d",): of_layer, ("relu",): 2 * image, ("exp",): 2 * image, ("reduceSum",): image + 4}
    if backend == "wgpu":
        expected = {("conv2d", "relu"): of_layer, ("exp", "reduceSum"): image + 4}
    assert timings == {**expected, (): 2 * image}


async def test_earlier_operations_run_before_a_timed_dispatch(running):
    running.context.write_buffer(running.inputs["x"], 0 * X)
    await running.context.device_timeline.drain()
    await running.timed()
    assert np.all((await running.results())["turned"] == 0)


@pytest.fixture
async def gpu_builder(ml, shared_gpu):
    context = await ml.create_context(gpu_device=shared_gpu)
    return context, MLGraphBuilder(context)


def kernels_of(graph):
    return [step.kernel for step in graph.handle.compiled._steps]


async def test_kernels_may_need_several_query_sets(gpu_builder, monkeypatch):
    monkeypatch.setattr(timestamps, "MOST_KERNELS", 16)
    context, builder = gpu_builder
    value = builder.input("x", data_type="float32", shape=X.shape)
    for _ in range(35):
        value = builder.cumulative_sum(value, 3)
    graph = await builder.build({"y": value})
    running = Running(context, graph)
    await running.make_buffers()
    timings = await running.timed()
    assert [timing.operators for timing in timings] == [("cumulativeSum",)] * 35
    starts = [timing.start_ns for timing in timings]
    assert starts == sorted(starts)
    assert starts[-1] > 0
    timed = await running.results()
    context.dispatch(running.graph, running.inputs, running.outputs)
    np.testing.assert_array_equal(timed["y"], (await running.results())["y"])


async def test_nodes_of_a_composite_name_the_composite(gpu_builder):
    _context, builder = gpu_builder
    x = builder.input("x", data_type="float32", shape=(1, 2, 4))
    weights = builder.constant(np.ones((1, 12, 4), np.float32))
    last, *_ = builder.gru(x, weights, weights, 1, 4, label="memory")
    kernels = kernels_of(await builder.build({"y": last}))
    assert {node.label for kernel in kernels for node in kernel.nodes} == {"in gru [memory]"}
