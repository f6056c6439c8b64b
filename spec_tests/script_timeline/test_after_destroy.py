"""Getters, second calls, other contexts and pending promises after ``destroy()`` or the loss of a context."""

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_one, run
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.scene import ONES
from spec_tests.support.watched_device import WatchedDevice
from webnn_py import DestroyedBufferError, InvalidStateError, MLGraphBuilder, UnknownError


@pytest.fixture(scope="module")
def options(backend):
    """Return options for a device of its own, which a test may lose."""
    return {"backend": backend}


@pytest.fixture(params=["destroy", "device"], ids=["by destroy()", "by the device"])
def lose(request, context, device):
    """Lose ``context`` in either way and return when every release has run."""

    async def lose():
        if request.param == "destroy":
            context.destroy()
        else:
            await device.lose()
            await device.quiet()
        assert context.lost.state == "fulfilled"
        await context.drain()

    return lose


# --- getters ---------------------------------------------------------------------------------------------------------


INT8 = {"data_type": "int8", "shape": [2]}


def seen_of_buffer(buffer):
    return buffer.data_type, buffer.shape, buffer.readable, buffer.writable, buffer.constant


BUFFERS = {
    "no flag": (lambda context: context.create_buffer(**INT8), ("int8", (2,), False, False, False)),
    "readable": (lambda context: context.create_buffer(**INT8, readable=True), ("int8", (2,), True, False, False)),
    "writable": (lambda context: context.create_buffer(**INT8, writable=True), ("int8", (2,), False, True, False)),
    "constant": (lambda context: constant(context, [1, 2], "int8"), ("int8", (2,), False, False, True)),
}


@pytest.mark.parametrize("kind", BUFFERS)
async def test_getters_of_a_buffer_work_after_its_destruction_and_the_loss(context, lose, kind):
    create, seen = BUFFERS[kind]
    first, second = [await create(context) for _ in range(2)]
    assert seen_of_buffer(first) == seen
    first.destroy()
    assert seen_of_buffer(first) == seen
    await lose()
    assert seen_of_buffer(second) == seen


async def test_getters_of_graphs_and_operands_work_after_the_loss(context, lose):
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type="float16", shape=[2, 1])
    graph = await build_add_one(context, [2])
    before = str(graph.input_descriptors["x"]), str(graph.output_descriptors["y"])
    await lose()
    assert (str(graph.input_descriptors["x"]), str(graph.output_descriptors["y"])) == before
    assert (operand.data_type, operand.shape, operand.rank) == ("float16", (2, 1), 2)


async def test_getters_and_limits_of_a_context_work_after_the_loss(context, device, lose):
    await filled(context, [1, 2])
    limits, lost, runs_on = context.op_support_limits(), context.lost, context.backend
    await lose()
    assert context.op_support_limits() == limits
    assert context.lost is lost
    assert context.accelerated is True
    assert context.backend is runs_on
    assert_nothing_lives(context)


# --- second calls ----------------------------------------------------------------------------------------------------


async def test_a_second_destroy_of_a_buffer_or_graph_enqueues_nothing(context, device):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    context.device_timeline.pause()
    for thing in (buffer, graph):
        for _ in range(3):
            thing.destroy()
    assert context.statistics().queued_operations == 2
    context.device_timeline.resume()
    await context.drain()
    buffer.destroy()
    graph.destroy()
    await context.drain()
    assert (device.log.count("free"), device.log.count("release_graph")) == (1, 1)
    assert context.statistics().live_buffers == 0


async def test_a_second_destroy_of_a_context_changes_nothing(context, device):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    context.destroy()
    message = (await context.lost).message
    context.destroy()
    await device.lose()
    await device.quiet()
    context.destroy()
    buffer.destroy()
    graph.destroy()
    await device.quiet()
    assert (await context.lost).message == message
    assert [device.log.count(step) for step in ("stop", "free", "release_graph", "close")] == [1, 1, 1, 1]
    assert device.log[-1] == "close"


async def test_after_a_loss_a_new_context_works(ml, device, context, options):
    await device.lose()
    await context.lost

    fresh = await ml.create_context(**options)
    assert await run(fresh, await build_add_one(fresh, [2]), x=[1, 2]) == {"y": [2, 3]}


async def test_the_first_reason_of_a_loss_is_kept(context, device):
    await device.lose()
    device.backend.lost("and burnt")
    await device.quiet()
    context.destroy()
    assert (await context.lost).message.startswith(device.reason)
    await context.drain()
    assert device.log == ["stop", "close"]


# --- other contexts --------------------------------------------------------------------------------------------------


async def test_other_contexts_go_on(ml, elsewhere, context, lose):
    other = await ml.create_context(**elsewhere)
    other_device = WatchedDevice(other)
    graph, x, y = await build_add_one(other, [2]), await filled(other, [1, 2]), await zeroed(other, [2])
    await other.drain()
    other.device_timeline.pause()
    other.dispatch(graph, {"x": x}, {"y": y})
    read, creation = other.read_buffer(y), other.create_buffer(data_type="int8", shape=[1])
    mine, my_graph = await zeroed(context, [2]), await build_add_one(context, [2])

    mine.destroy()
    my_graph.destroy()
    await lose()

    assert [promise.state for promise in (read, creation, other.lost)] == ["pending"] * 3
    assert other.statistics().queued_operations == 3
    other.device_timeline.resume()
    np.testing.assert_array_equal(await read, [2, 3])
    assert await creation
    assert "stop" not in other_device.log


# --- loss ------------------------------------------------------------------------------------------------------------


async def test_everything_is_destroyed_for_a_task_that_awaits_the_loss(context, device, lose):
    graph, x, y = await build_add_one(context, [2]), await filled(context, [1, 2]), await zeroed(context, [2])
    seen = []

    async def observe():
        seen.append((await context.lost).message)
        with pytest.raises(InvalidStateError, match="graph is destroyed"):
            context.dispatch(graph, {"x": x}, {"y": y})
        for buffer in (x, y):
            with pytest.raises(DestroyedBufferError, match="context is lost"):
                context.write_buffer(buffer, ONES)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(observe)
        await device.quiet()
        await lose()
    assert seen
    assert seen[0].startswith((device.reason, "destroy() was called on the context"))


async def test_the_context_is_not_lost_before_the_script_timeline_runs_the_loss(ml, context, device):
    buffer = await filled(context, [1, 2])
    await context.drain()
    ml.script_timeline.pause()
    device.failing["read"] = OSError("no answer")

    await device.lose()
    await device.quiet()

    assert context.lost.state == "pending"
    failed = context.read_buffer(buffer)
    created = context.create_buffer(data_type="int8", shape=[1])
    await device.quiet()
    assert [failed.state, created.state] == ["pending", "pending"]
    await ml.script_timeline.step()
    assert (await context.lost).message.startswith(device.reason)
    assert failed.state == "rejected"
    with pytest.raises(InvalidStateError, match=device.reason):
        await failed
    await ml.script_timeline.step(2)
    if ", wgpu 0." in context.backend.driver:  # wgpu-native creates nothing on a device that is gone
        with pytest.raises(UnknownError, match="Parent device is lost"):
            await created
    else:
        assert seen_of_buffer(await created)[0] == "int8"


async def test_a_failure_before_the_loss_is_reported_as_a_failure(ml, context, device):
    ml.script_timeline.pause()
    device.failing["allocate"] = OSError("no answer")
    created = context.create_buffer(data_type="int8", shape=[1])
    await device.quiet()
    await device.lose()
    ml.script_timeline.resume()
    with pytest.raises(UnknownError, match="no answer"):
        await created
    assert (await context.lost).message.startswith(device.reason)
