"""What still works after ``destroy()`` or the loss of a context, what a second call does, and who is told when."""

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one
from spec_tests.support.fake_device import FakeDevice
from spec_tests.support.scene import ONES
from webnn_py import DestroyedBufferError, InvalidStateError, MLContextLostInfo, MLGraphBuilder, UnknownError

GONE = "the device fell off the bus"


@pytest.fixture(params=["destroy", "device"], ids=["by destroy()", "by the device"])
def lose(request, fake_context, fake):
    """Loses ``fake_context`` in either way and returns when every release has run."""

    async def lose():
        if request.param == "destroy":
            fake_context.destroy()
        else:
            fake.lost(GONE)
            await wait_all_tasks_blocked()
        assert fake_context.lost.state == "fulfilled"
        await fake_context.drain()

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
async def test_a_buffers_getters_work_after_its_destruction_and_the_loss(fake_context, lose, flags, seen):
    first, second = [await fake_context.create_buffer(data_type="int8", shape=[3, 2], **flags) for _ in range(2)]
    assert seen_of_buffer(first) == seen
    first.destroy()
    assert seen_of_buffer(first) == seen
    await lose()
    assert seen_of_buffer(second) == seen


async def test_a_constant_buffers_getters_work_after_its_destruction_and_the_loss(fake_context, lose):
    first, second = [await constant(fake_context, [1, 2], "uint8") for _ in range(2)]
    seen = ("uint8", (2,), False, False, True)
    assert seen_of_buffer(first) == seen
    first.destroy()
    assert seen_of_buffer(first) == seen
    await lose()
    assert seen_of_buffer(second) == seen


async def test_a_graphs_and_an_operands_getters_work_after_the_loss(fake_context, lose):
    builder = MLGraphBuilder(fake_context)
    operand = builder.input("x", data_type="float16", shape=[2, 1])
    graph = await build_add_one(fake_context, [2])
    before = str(graph.input_descriptors["x"]), str(graph.output_descriptors["y"])
    await lose()
    assert (str(graph.input_descriptors["x"]), str(graph.output_descriptors["y"])) == before
    assert (operand.data_type, operand.shape, operand.rank) == ("float16", (2, 1), 2)


async def test_a_contexts_getters_and_limits_work_after_the_loss(fake_context, fake, lose):
    await filled(fake_context, [1, 2])
    limits, lost = fake_context.op_support_limits(), fake_context.lost
    await lose()
    assert fake_context.op_support_limits() == limits
    assert fake_context.lost is lost
    assert fake_context.accelerated is True
    assert fake_context.backend == fake.info
    statistics = fake_context.statistics()
    assert (statistics.live_buffers, statistics.live_bytes, statistics.queued_operations) == (0, 0, 0)


async def test_reprs_tell_what_is_destroyed_or_lost(fake_context):
    buffer, graph = await zeroed(fake_context, [2]), await build_add_one(fake_context, [2])
    assert not {"destroyed", "lost"} & {*repr(buffer).split(), *repr(graph).split(), *repr(fake_context).split()}
    buffer.destroy()
    graph.destroy()
    fake_context.destroy()
    assert "destroyed" in repr(buffer)
    assert "destroyed" in repr(graph)
    assert "lost: destroy() was called" in repr(fake_context)


# --- second calls ----------------------------------------------------------------------------------------------------


async def test_a_second_destroy_of_a_buffer_or_graph_enqueues_nothing(fake_context, fake):
    buffer, graph = await zeroed(fake_context, [2]), await build_add_one(fake_context, [2])
    fake_context.device_timeline.pause()
    for thing in (buffer, graph):
        for _ in range(3):
            thing.destroy()
    assert fake_context.statistics().queued_operations == 2
    fake_context.device_timeline.resume()
    await fake_context.drain()
    buffer.destroy()
    graph.destroy()
    await fake_context.drain()
    assert (fake.log.count("free"), fake.log.count("release_graph")) == (1, 1)
    assert fake_context.statistics().live_buffers == 0


async def test_a_second_destroy_of_a_context_changes_nothing(fake_context, fake):
    buffer, graph = await zeroed(fake_context, [2]), await build_add_one(fake_context, [2])
    fake_context.destroy()
    message = (await fake_context.lost).message
    fake_context.destroy()
    fake.lost(GONE)
    await wait_all_tasks_blocked()
    fake_context.destroy()
    buffer.destroy()
    graph.destroy()
    await wait_all_tasks_blocked()
    assert (await fake_context.lost).message == message
    assert [fake.log.count(step) for step in ("stop", "free", "release_graph", "close")] == [1, 1, 1, 1]
    assert fake.log[-1] == "close"


async def test_the_first_reason_of_a_loss_is_the_one_that_is_kept(fake_context, fake):
    fake.lost(GONE)
    fake.lost("and burnt")
    await wait_all_tasks_blocked()
    fake_context.destroy()
    assert await fake_context.lost == MLContextLostInfo(GONE)


# --- other contexts --------------------------------------------------------------------------------------------------


async def test_other_contexts_do_not_notice(ml, fake_context, fake, lose):
    other_fake = FakeDevice()
    other = await ml._create_context(other_fake)
    graph, x, y = await build_add_one(other, [2]), await filled(other, [1, 2]), await zeroed(other, [2])
    await other.drain()
    other.device_timeline.pause()
    other.dispatch(graph, {"x": x}, {"y": y})
    read, creation = other.read_buffer(y), other.create_buffer(data_type="int8", shape=[1])
    mine, my_graph = await zeroed(fake_context, [2]), await build_add_one(fake_context, [2])

    mine.destroy()
    my_graph.destroy()
    await lose()

    assert [promise.state for promise in (read, creation, other.lost)] == ["pending"] * 3
    assert other.statistics().queued_operations == 3
    other.device_timeline.resume()
    np.testing.assert_array_equal(await read, [2, 3])
    assert await creation
    assert "stop" not in other_fake.log


async def test_other_buffers_and_graphs_of_the_context_do_not_notice(fake_context):
    graphs = [await build_add_number(fake_context, number, [2]) for number in (1, 2)]
    x, y, bystander = [await filled(fake_context, [value] * 2) for value in (1, 0, 9)]
    read = fake_context.read_buffer(bystander)
    graphs[0].destroy()
    x.destroy()
    fake_context.dispatch(graphs[1], {"x": bystander}, {"y": y})
    np.testing.assert_array_equal(await read, [9, 9])
    np.testing.assert_array_equal(await fake_context.read_buffer(y), [11, 11])


# --- loss ------------------------------------------------------------------------------------------------------------


async def test_who_awaits_the_loss_finds_everything_destroyed(fake_context, fake, lose):
    graph, x, y = (
        await build_add_one(fake_context, [2]),
        await filled(fake_context, [1, 2]),
        await zeroed(fake_context, [2]),
    )
    seen = []

    async def observe():
        seen.append((await fake_context.lost).message)
        with pytest.raises(InvalidStateError, match="graph is destroyed"):
            fake_context.dispatch(graph, {"x": x}, {"y": y})
        for buffer in (x, y):
            with pytest.raises(DestroyedBufferError, match="context is lost"):
                fake_context.write_buffer(buffer, ONES)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(observe)
        await wait_all_tasks_blocked()
        await lose()
    assert seen
    assert seen[0] in {GONE, "destroy() was called on the context"}


async def test_the_loss_reaches_what_is_still_being_made(fake_context, fake, lose):
    fake_context.device_timeline.pause()
    creation = fake_context.create_constant_buffer(ONES, data_type="float32", shape=[2])
    building = build_add_number(fake_context, 1, [2])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lose)
        await wait_all_tasks_blocked()
        assert fake_context.lost.state == "fulfilled"
        assert [creation.state, building.state] == ["pending", "pending"]
        fake_context.device_timeline.resume()

    for promise in (creation, building):
        with pytest.raises(InvalidStateError, match="context is lost"):
            await promise
    assert not {"allocate", "compile"} & {*fake.log}


async def test_until_the_script_is_told_of_the_loss_the_context_is_not_lost(ml, fake_context, fake):
    buffer = await filled(fake_context, [1, 2])
    await fake_context.drain()
    ml.script_timeline.pause()
    fake.failing["read"] = OSError("no answer")

    fake.lost(GONE)
    await wait_all_tasks_blocked()

    assert fake_context.lost.state == "pending"
    failed = fake_context.read_buffer(buffer)
    created = fake_context.create_buffer(data_type="int8", shape=[1])
    await wait_all_tasks_blocked()
    assert [failed.state, created.state] == ["pending", "pending"]
    await ml.script_timeline.step()
    assert (await fake_context.lost).message == GONE
    assert failed.state == "rejected"
    with pytest.raises(InvalidStateError, match=GONE):
        await failed
    await ml.script_timeline.step(2)
    assert seen_of_buffer(await created)[0] == "int8"


async def test_a_failure_said_before_the_loss_is_told_as_a_failure(ml, fake_context, fake):
    ml.script_timeline.pause()
    fake.failing["allocate"] = OSError("no answer")
    created = fake_context.create_buffer(data_type="int8", shape=[1])
    await wait_all_tasks_blocked()
    fake.lost(GONE)
    ml.script_timeline.resume()
    with pytest.raises(UnknownError, match="no answer"):
        await created
    assert (await fake_context.lost).message == GONE


async def test_a_lost_contexts_paused_timeline_is_stepped_through_its_releases(fake_context, fake):
    first, second = await zeroed(fake_context, [2]), await zeroed(fake_context, [2])
    fake.log.clear()
    fake_context.device_timeline.pause()
    fake_context.write_buffer(first, ONES)
    fake_context.write_buffer(second, ONES)
    fake_context.destroy()

    assert fake_context.statistics().queued_operations == 4
    assert await fake_context.device_timeline.step(2) == 2
    assert (fake.log, fake_context.statistics().live_buffers) == (["stop"], 2), "lost writes are dropped"
    assert await fake_context.device_timeline.step() == 1
    assert (fake.log, fake_context.statistics().live_buffers) == (["stop", "free"], 1)
    assert await fake_context.device_timeline.step(5) == 1
    await wait_all_tasks_blocked()
    assert (fake.log, fake_context.statistics().live_buffers) == (["stop", "free", "free", "close"], 0)
    assert fake_context.device_timeline.ended
