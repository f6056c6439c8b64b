"""A context on a WebGPU device: memory, release, and failures."""

import gc

import numpy as np
import pytest
import trio
import wgpu
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.drawing import build_add_one
from spec_tests.support.four_floats import ONES, buffers, check_add_one
from spec_tests.support.stand_ins import failing
from spec_tests.support.trace_format import first
from spec_tests.support.watched_device import quiet
from webnn_py import MLGraphBuilder, UnknownError, tracing
from webnn_py.devices.wgpu.engines import engine_of


def is_destroyed(memory, device):
    try:
        engine_of(device).write(device, memory, ONES, ONES.nbytes)
    except wgpu.GPUValidationError as error:
        return "destroyed" in str(error)
    return False


async def test_released_memory_is_gone_whoever_still_refers_to_it(gpu):
    x, y = await buffers(gpu, 2)
    builder = MLGraphBuilder(gpu)
    operand = builder.input("x", data_type="float32", shape=[4])
    graph = await builder.build({"y": builder.add(operand, builder.constant(ONES))})
    gpu.dispatch(graph, {"x": x}, {"y": y})
    await gpu.read_buffer(y)
    owned, device = graph.handle.compiled._owned, gpu.device.backend.device
    memory = {"buffer": x.storage.data, "constant of the graph": owned[0]}
    assert not any(is_destroyed(held, device) for held in memory.values())

    x.destroy()
    graph.destroy()
    await gpu.drain()

    assert [name for name, held in memory.items() if not is_destroyed(held, device)] == [], "these still have memory"
    gpu.destroy()
    await gpu.device_timeline.wait_ended()
    with pytest.raises(wgpu.GPUValidationError, match="lost"):
        device.create_buffer(size=4, usage=wgpu.BufferUsage.COPY_DST)


async def test_a_submission_that_fails_marks_what_it_should_have_written(ml, gpu, queue, monkeypatch):
    graph = await build_add_one(gpu, [4])
    x, y, z = await buffers(gpu, 3)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), ONES)
    with monkeypatch.context() as patched:
        refuse = failing(wgpu.GPUValidationError("the queue is closed"))
        patched.setattr(queue.engine, "encode_pass", refuse)
        gpu.dispatch(graph, {"x": x}, {"y": y})
        await quiet(gpu)  # nothing more comes, so what is collected is submitted
    with tracing.trace(ml) as trace:
        gpu.dispatch(graph, {"x": y}, {"y": z})
        await gpu.drain()
    assert "the queue is closed" in (first(trace, "finished", "dispatch").why or "nothing"), "the trace says it is done"

    with pytest.raises(UnknownError, match=r"read_buffer\(\).*dispatch\(\) failed: the queue is closed"):
        await gpu.read_buffer(y)
    with pytest.raises(UnknownError, match=r"the input 'x' of a dispatch\(\).*the queue is closed"):
        await gpu.read_buffer(z)
    gpu.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await gpu.read_buffer(y), ONES)
    assert gpu.lost.state == "pending"


async def test_memory_that_cannot_be_had_is_an_unknown_error_and_the_context_lives_on(gpu, monkeypatch):
    with monkeypatch.context() as patched:
        refuse = failing(wgpu.GPUOutOfMemoryError("Not enough memory left."))
        patched.setattr(gpu.device.backend, "device", type("Device", (), {"create_buffer": refuse})())
        with pytest.raises(UnknownError, match="Not enough memory"):
            await gpu.create_buffer(data_type="float32", shape=[4])
    (x,) = await buffers(gpu, 1)
    gpu.write_buffer(x, ONES)
    np.testing.assert_array_equal(await gpu.read_buffer(x), ONES)


async def test_a_destroyed_context_leaves_nothing_for_the_garbage_collector(ml):
    async def live():
        context = await ml.create_context(backend="wgpu")
        await check_add_one(context)
        context.destroy()
        await context.device_timeline.wait_ended()

    async def objects():
        for _ in range(20):  # threads let go of what they worked on a moment after they have answered
            await trio.to_thread.run_sync(int)
        return {name: count["count"] for name, count in wgpu.diagnostics.object_counts.get_dict().items()}

    gc.collect()
    gc.disable()
    try:
        before = await objects()
        for _ in range(3):
            await live()
            await wait_all_tasks_blocked()
        assert await objects() == before
    finally:
        gc.enable()
