"""What still works after ``destroy()`` or the loss of a context, what a second call does, and who is told when."""

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one
from spec_tests.support.scene import ONES
from spec_tests.support.watched_device import WatchedDevice
from webnn_py import DestroyedBufferError, InvalidStateError, MLGraphBuilder, UnknownError


@pytest.fixture(scope="module")
def options(backend):
    """No device of other tests: it will be lost."""
    return {"backend": backend}


@pytest.fixture(params=["destroy", "device"], ids=["by destroy()", "by the device"])
def lose(request, context, device):
    """Loses ``context`` in either way and returns when every release has run."""

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


def seen_of_buffer(buffer):
    return buffer.data_type, buffer.shape, buffer.readable, buffer.writable, buffer.constant


@pytest.mark.parametrize(
    ("flags", "seen"),
    [
        ({}, ("int8", (3, 2), False, False, False)),
        ({"readable": True}, ("int8", (3, 2), True, False, False)),
        ({"writable": True}, ("int8", (3, 2), False, True, False)),
    ],
    ids=["no flag", "readable", "writable"],
)
async def test_a_buffers_getters_work_after_its_destruction_and_the_loss(context, lose, flags, seen):
    first, second = [await context.create_buffer(data_type="int8", shape=[3, 2], **flags) for _ in range(2)]
    assert seen_of_buffer(first) == seen
    first.destroy()
    assert seen_of_buffer(first) == seen
    await lose()
    assert seen_of_buffer(second) == seen


async def test_a_constant_buffers_getters_work_after_its_destruction_and_the_loss(context, lose):
    first, second = [await constant(context, [1, 2], "uint8") for _ in range(2)]
    seen = ("uint8", (2,), False, False, True)
    assert seen_of_buffer(first) == seen
    first.destroy()
    assert seen_of_buffer(first) == seen
    await lose()
    assert seen_of_buffer(second) == seen


async def test_a_graphs_and_an_operands_getters_work_after_the_loss(context, lose):
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type="float16", shape=[2, 1])
    graph = await build_add_one(context, [2])
    before = str(graph.input_descriptors["x"]), str(graph.output_descriptors["y"])
    await lose()
    assert (str(graph.input_descriptors["x"]), str(graph.output_descriptors["y"])) == before
    assert (operand.data_type, operand.shape, operand.rank) == ("float16", (2, 1), 2)


async def test_a_contexts_getters_and_limits_work_after_the_loss(context, device, lose):
    await filled(context, [1, 2])
    limits, lost, runs_on = context.op_support_limits(), context.lost, context.backend
    await lose()
    assert context.op_support_limits() == limits
    assert context.lost is lost
    assert context.accelerated is True
    assert context.backend is runs_on
    statistics = context.statistics()
    assert (statistics.live_buffers, statistics.live_bytes, statistics.queued_operations) == (0, 0, 0)


async def test_reprs_tell_what_is_destroyed_or_lost(context):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    assert not {"destroyed", "lost"} & {*repr(buffer).split(), *repr(graph).split(), *repr(context).split()}
    buffer.destroy()
    graph.destroy()
    context.destroy()
    assert "destroyed" in repr(buffer)
    assert "destroyed" in repr(graph)
    assert "lost: destroy() was called" in repr(context)


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


async def test_the_first_reason_of_a_loss_is_the_one_that_is_kept(context, device):
    await device.lose()
    device.backend.lost("and burnt")
    await device.quiet()
    context.destroy()
    assert (await context.lost).message.startswith(device.reason)


# --- other contexts --------------------------------------------------------------------------------------------------


async def test_other_contexts_do_not_notice(ml, elsewhere, context, lose):
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


async def test_other_buffers_and_graphs_of_the_context_do_not_notice(context):
    graphs = [await build_add_number(context, number, [2]) for number in (1, 2)]
    x, y, bystander = [await filled(context, [value] * 2) for value in (1, 0, 9)]
    read = context.read_buffer(bystander)
    graphs[0].destroy()
    x.destroy()
    context.dispatch(graphs[1], {"x": bystander}, {"y": y})
    np.testing.assert_array_equal(await read, [9, 9])
    np.testing.assert_array_equal(await context.read_buffer(y), [11, 11])


# --- loss ------------------------------------------------------------------------------------------------------------


async def test_who_awaits_the_loss_finds_everything_destroyed(context, device, lose):
    graph, x, y = (
        await build_add_one(context, [2]),
        await filled(context, [1, 2]),
        await zeroed(context, [2]),
    )
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


async def test_the_loss_reaches_what_is_still_being_made(context, device, lose):
    context.device_timeline.pause()
    creation = context.create_constant_buffer(ONES, data_type="float32", shape=[2])
    building = build_add_number(context, 1, [2])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lose)
        await device.quiet()
        assert context.lost.state == "fulfilled"
        assert [creation.state, building.state] == ["rejected", "rejected"]
        context.device_timeline.resume()

    for promise in (creation, building):
        with pytest.raises(InvalidStateError, match="context is lost"):
            await promise
    assert not {"allocate", "compile"} & {*device.log}


async def test_until_the_script_is_told_of_the_loss_the_context_is_not_lost(ml, context, device):
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
    if device.backend.info.name != "wgpu":  # where the device is gone, nothing can be created on it
        assert seen_of_buffer(await created)[0] == "int8"
    else:
        with pytest.raises(UnknownError, match="Parent device is lost"):
            await created


async def test_a_failure_said_before_the_loss_is_told_as_a_failure(ml, context, device):
    ml.script_timeline.pause()
    device.failing["allocate"] = OSError("no answer")
    created = context.create_buffer(data_type="int8", shape=[1])
    await device.quiet()
    await device.lose()
    ml.script_timeline.resume()
    with pytest.raises(UnknownError, match="no answer"):
        await created
    assert (await context.lost).message.startswith(device.reason)


async def test_a_lost_contexts_paused_timeline_is_stepped_through_its_releases(context, device):
    first, second = await zeroed(context, [2]), await zeroed(context, [2])
    device.log.clear()
    context.device_timeline.pause()
    context.write_buffer(first, ONES)
    context.write_buffer(second, ONES)
    context.destroy()

    assert context.statistics().queued_operations == 4
    assert await context.device_timeline.step(2) == 2
    assert (device.log, context.statistics().live_buffers) == (["stop"], 2), "lost writes are dropped"
    assert await context.device_timeline.step() == 1
    assert (device.log, context.statistics().live_buffers) == (["stop", "free"], 1)
    assert await context.device_timeline.step(5) == 1
    await device.quiet()
    assert (device.log, context.statistics().live_buffers) == (["stop", "free", "free", "close"], 0)
    assert context.device_timeline.ended
