"""Both timelines can be paused, stepped and resumed, and their statistics are right at every stage."""

import re
from functools import partial

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.buffers import zeroed
from webnn_py.core.timelines.device_timeline import DeviceOperation, DeviceTimeline
from webnn_py.core.timelines.script_timeline import ScriptTask


@pytest.fixture(params=["device timeline", "script timeline"])
def timeline(request, ml, context):
    return context.device_timeline if request.param == "device timeline" else ml.script_timeline


def enqueue(timeline, work):
    timeline.enqueue((DeviceOperation if isinstance(timeline, DeviceTimeline) else ScriptTask)("test", work))


def enqueue_names(timeline, log, names):
    for name in names:
        enqueue(timeline, partial(log.append, name))


async def test_a_paused_timeline_runs_nothing(timeline):
    log = []
    timeline.pause()
    enqueue_names(timeline, log, "abc")

    await wait_all_tasks_blocked()

    assert timeline.paused
    assert log == []
    assert timeline.statistics().queued_operations == 3


@pytest.mark.parametrize(
    ("queued", "count", "ran"),
    [(3, 1, 1), (3, 2, 2), (3, 3, 3), (3, 5, 3), (0, 1, 0)],
    ids=["the first", "the first two", "all", "more than there are", "none waits"],
)
async def test_a_step_runs_a_number_of_operations_in_order_and_returns_how_many_ran(timeline, queued, count, ran):
    log = []
    timeline.pause()
    enqueue_names(timeline, log, range(queued))

    assert await timeline.step(count) == ran

    assert log == list(range(ran))
    assert timeline.statistics().queued_operations == queued - ran


async def test_a_step_runs_only_operations_that_were_queued_when_it_began(timeline):
    log = []
    timeline.pause()
    enqueue(timeline, lambda: enqueue_names(timeline, log, "b"))

    assert await timeline.step(2) == 1
    assert log == []
    assert await timeline.step(2) == 1
    assert log == ["b"]


async def test_a_step_needs_a_paused_timeline(timeline):
    with pytest.raises(RuntimeError, match=r"step\(\) needs a paused timeline: call pause\(\)"):
        await timeline.step()


@pytest.mark.parametrize("count", [0.5, "1", None, [1], 0, -1])
async def test_a_step_of_a_wrong_count_is_refused_and_runs_nothing(timeline, count):
    log = []
    timeline.pause()
    enqueue_names(timeline, log, "a")

    error, words = (ValueError, "at least 1") if isinstance(count, int) else (TypeError, "an int")
    with pytest.raises(error, match=re.escape(f"count is {count!r}; it must be {words}")):
        await timeline.step(count)
    await wait_all_tasks_blocked()

    assert log == []
    assert await timeline.step() == 1, "a refused step must not stand in the way of the next"


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
async def test_resume_runs_queued_and_later_operations(timeline, times):
    log = []
    for _ in range(times):
        timeline.pause()
    enqueue_names(timeline, log, "abcde")
    assert [await timeline.step(), await timeline.step(3)] == [1, 3]
    assert log == list("abcd")
    for _ in range(times):
        timeline.resume()
    assert not timeline.paused

    await wait_all_tasks_blocked()
    assert log == list("abcde")

    enqueue_names(timeline, log, "f")
    await wait_all_tasks_blocked()
    assert log == list("abcdef")


async def test_a_step_waits_for_the_operation_that_runs_and_does_not_count_it(device, context):
    buffer = await zeroed(context, [2])
    finish = device.waiting["write"] = trio.Event()
    context.write_buffer(buffer, np.ones(2, np.float32))
    await device.quiet()
    context.device_timeline.pause()
    promise = context.read_buffer(buffer)
    context.write_buffer(buffer, np.zeros(2, np.float32))
    ran = []

    async def step():
        ran.append(await context.device_timeline.step())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step)
        await device.quiet()
        assert ran == []
        finish.set()

    assert ran == [1]
    assert promise.state == "fulfilled"
    assert context.statistics().queued_operations == 1


@pytest.mark.parametrize("count", [1, 3], ids=["while its last operation runs", "while operations remain"])
async def test_two_tasks_cannot_step_one_timeline(device, context, count):
    buffer = await zeroed(context, [2])
    context.device_timeline.pause()
    finish = device.waiting["write"] = trio.Event()
    for _ in range(4):
        context.write_buffer(buffer, np.ones(2, np.float32))
    ran, refusals = [], []

    async def step(count):
        try:
            ran.append(await context.device_timeline.step(count))
        except RuntimeError as refusal:
            refusals.append(str(refusal))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step, count)
        await device.quiet()
        nursery.start_soon(step, 1)
        await device.quiet()
        finish.set()

    assert refusals == ["another task is stepping the device timeline"]
    assert ran == [count]
    assert await context.device_timeline.step() == 1


async def test_a_cancelled_step_leaves_the_rest_to_the_next_step(device, context):
    buffer = await zeroed(context, [2])
    context.device_timeline.pause()
    finish = device.waiting["write"] = trio.Event()
    for _ in range(3):
        context.write_buffer(buffer, np.ones(2, np.float32))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(context.device_timeline.step, 3)
        await device.quiet()
        nursery.cancel_scope.cancel()
    finish.set()
    await device.quiet()

    assert device.log == ["allocate", "write"]
    assert await context.device_timeline.step(5) == 2


async def test_queued_bytes_are_those_of_user_data_in_operations_that_have_not_finished(device, context):
    def look():
        statistics, whole = context.device_timeline.statistics(), context.statistics()
        found = statistics.queued_operations, statistics.queued_bytes
        assert (whole.queued_operations, whole.queued_bytes) == found
        return *found, statistics.done - before

    small, large = await zeroed(context, [2]), await zeroed(context, [100], "int64")
    before = context.device_timeline.statistics().done
    context.device_timeline.pause()
    context.write_buffer(small, np.zeros(2, np.float32))
    context.write_buffer(large, np.zeros(100, np.int64))
    context.read_buffer(large)
    constant = context.create_constant_buffer(np.zeros(3, np.uint8), data_type="uint8", shape=[3])
    assert look() == (4, 8 + 800 + 3, 0)
    await context.device_timeline.step()
    assert look() == (3, 800 + 3, 1)
    finish = device.waiting["write"] = trio.Event()
    context.device_timeline.resume()
    await device.quiet()
    assert look() == (3, 800 + 3, 1), "an operation that runs still holds its bytes"
    finish.set()
    await device.quiet()
    assert look() == (0, 0, 4)
    assert constant.state == "fulfilled"
