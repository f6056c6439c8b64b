"""A device tells how long each kernel of a dispatch took, what it computes, and how many bytes it moves."""

from inspect import isawaitable

import numpy as np
import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER
from webnn_py import MLGraphBuilder
from webnn_py.device.backend import TimesKernels
from webnn_py.device.on_wgpu import backend as wgpu_backend
from webnn_py.device.on_wgpu.runtime import executable, timestamps

X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)


async def layer(context):
    """relu(conv2d(x)) laid the other way round, and the sum of its squares."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    filters = builder.constant(np.full((2, 3, 1, 1), 0.5, np.float32))
    image = builder.relu(builder.conv2d(x, filters, label="first"), label="act")
    outputs = {"turned": builder.transpose(image), "sum": builder.reduce_sum_square(builder.exp(image), label="all")}
    return await builder.build(outputs)


class Running:
    """A graph with a buffer for each name."""

    def __init__(self, context, graph):
        self.context, self.graph = context, graph

    async def make_buffers(self):
        async def buffers(descriptors, **usage):
            return {
                name: await self.context.create_buffer(data_type=d.data_type, shape=d.shape, **usage)
                for name, d in descriptors.items()
            }

        self.inputs = await buffers(self.graph.input_descriptors, writable=True)
        self.outputs = await buffers(self.graph.output_descriptors, readable=True)
        for buffer in self.inputs.values():
            self.context.write_buffer(buffer, X)
        await self.context.drain()

    async def timed(self):
        given, made = (
            {name: buffer._storage for name, buffer in buffers.items()} for buffers in (self.inputs, self.outputs)
        )
        timings = self.context._device.backend.dispatch_timed(self.graph._handle.compiled, given, made)
        return await timings if isawaitable(timings) else timings

    async def results(self):
        return {name: await self.context.read_buffer(buffer) for name, buffer in self.outputs.items()}


@pytest.fixture
async def running(context):
    if not isinstance(context._device.backend, TimesKernels):
        pytest.skip(f"{context.backend} reports no kernel's time")
    running = Running(context, await layer(context))
    await running.make_buffers()
    return running


async def test_a_timed_dispatch_gives_the_same_results(running):
    running.context.dispatch(running.graph, running.inputs, running.outputs)
    expected = await running.results()
    for buffer in running.outputs.values():
        running.context.clear_buffer(buffer)
    await running.context.drain()
    await running.timed()
    for name, array in (await running.results()).items():
        np.testing.assert_array_equal(array, expected[name], name)


async def test_every_operator_is_told_once_with_its_label(running):
    timings = await running.timed()
    told = [(node.operator, node.label) for timing in timings for node in timing.nodes]
    assert told == [("conv2d", "first"), ("relu", "act"), ("exp", ""), ("reduceSumSquare", "all")]
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
    if backend == "wgpu":
        expected = {("conv2d", "relu"): of_layer, (): 2 * image, ("exp", "reduceSumSquare"): image + 4}
    else:
        expected = {
            ("conv2d",): of_layer,
            ("relu",): 2 * image,
            (): 2 * image,
            ("exp",): 2 * image,
            ("reduceSumSquare",): image + 4,
        }
    assert timings == expected


async def test_what_was_enqueued_before_a_timed_dispatch_runs_before_it(running):
    running.context.write_buffer(running.inputs["x"], 0 * X)
    await running.context.device_timeline.drain()
    await running.timed()
    assert np.all((await running.results())["turned"] == 0)


gpu = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)


@gpu
async def test_kernels_may_need_several_query_sets(ml, shared_gpu, monkeypatch):
    monkeypatch.setattr(timestamps, "MOST_KERNELS", 16)
    monkeypatch.setattr(executable, "joined", lambda kernels, _features: kernels)
    context = await ml.create_context(gpu_device=shared_gpu)
    builder = MLGraphBuilder(context)
    value = builder.input("x", data_type="float32", shape=X.shape)
    for _ in range(35):
        value = builder.cumulative_sum(value, 3)
    running = Running(context, await builder.build({"y": value}))
    await running.make_buffers()
    timings = await running.timed()
    assert [timing.operators for timing in timings] == [("cumulativeSum",)] * 35
    starts = [timing.start_ns for timing in timings]
    assert starts == sorted(starts)
    assert starts[-1] > 0
    timed = await running.results()
    context.dispatch(running.graph, running.inputs, running.outputs)
    np.testing.assert_array_equal(timed["y"], (await running.results())["y"])


@gpu
async def test_a_device_without_timestamps_does_not_say_that_it_has_them(ml, shared_gpu, monkeypatch):
    context = await ml.create_context(gpu_device=shared_gpu)
    assert isinstance(context._device.backend, TimesKernels)
    monkeypatch.setattr(wgpu_backend, "FEATURE", "none such")
    context = await ml.create_context(gpu_device=shared_gpu)
    assert not isinstance(context._device.backend, TimesKernels)


@gpu
async def test_a_composite_tells_what_it_was(ml, shared_gpu):
    context = await ml.create_context(gpu_device=shared_gpu)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=(1, 2, 4))
    weights = builder.constant(np.ones((1, 12, 4), np.float32))
    last, *_ = builder.gru(x, weights, weights, 1, 4, label="memory")
    running = Running(context, await builder.build({"y": last}))
    kernels = [step.kernel for step in running.graph._handle.compiled._steps]
    labels = {node.label for kernel in kernels for node in kernel.nodes}
    assert labels == {"in gru [memory]"}


@gpu
async def test_products_that_became_one_tell_all_labels(ml, shared_gpu):
    context = await ml.create_context(gpu_device=shared_gpu)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=(4, 8))
    weight = np.eye(8, dtype=np.float32)
    q, k, v = (builder.matmul(x, builder.constant(weight), label=label) for label in ("query", "key", "value"))
    scores = builder.matmul(q, builder.transpose(k), label="scores")
    graph = await builder.build({"y": builder.matmul(scores, v, label="mixed")})
    kernels = [step.kernel for step in graph._handle.compiled._steps]
    assert [[node.label for node in kernel.nodes] for kernel in kernels] == [
        ["query, key, value"],
        ["scores"],
        ["mixed"],
    ]
    assert [sum(node.flops for node in kernel.nodes) for kernel in kernels] == [
        2 * 4 * 24 * 8,
        2 * 4 * 4 * 8,
        2 * 4 * 8 * 4,
    ]


@gpu
async def test_of_several_kernels_of_a_product_one_has_the_operations(ml, shared_gpu):
    """A long inner axis is cut into parts, which a second kernel adds up."""
    context = await ml.create_context(gpu_device=shared_gpu)
    builder = MLGraphBuilder(context)
    a = builder.input("a", data_type="float32", shape=(16, 4096))
    product = builder.matmul(a, builder.constant(np.ones((4096, 16), np.float32)), label="long")
    graph = await builder.build({"y": builder.relu(product)})
    kernels = [step.kernel for step in graph._handle.compiled._steps]
    assert len(kernels) > 1
    assert all([node.label for node in kernel.nodes] == ["long", ""] for kernel in kernels)
    assert [sum(node.flops for node in kernel.nodes) for kernel in kernels] == [2 * 16 * 16 * 4096 + 256, 0]
