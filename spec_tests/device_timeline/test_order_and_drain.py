"""The device timeline is first in, first out; ``drain()`` waits for what is queued and for its promises."""

from contextlib import asynccontextmanager
from functools import partial

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one
from spec_tests.support.watched_device import quiet
from webnn_py import OperationError


@pytest.mark.parametrize("count", [7, 600], ids=["stepped in sevens", "run by itself"])
async def test_hundreds_of_mixed_operations_run_in_call_order(device, context, rng, count):
    graph = await build_add_one(context, [1])
    buffers = [await filled(context, [index]) for index in range(4)]
    values = [0, 1, 2, 3]
    await context.drain()
    device.log.clear()
    context.device_timeline.pause()
    expected_log, expected, promises = [], [], []
    for number in range(600):
        kind = str(rng.choice(["write", "dispatch", "read", "allocate"]))
        source, target = rng.permutation(4)[:2]
        expected_log.append(kind)
        if kind == "write":
            context.write_buffer(buffers[target], np.array([number], np.float32))
            values[target] = number
        elif kind == "dispatch":
            context.dispatch(graph, {"x": buffers[source]}, {"y": buffers[target]})
            values[target] = values[source] + 1
        elif kind == "read":
            promises.append(context.read_buffer(buffers[source]))
            expected.append(values[source])
        else:
            promises.append(context.create_buffer(data_type="float32", shape=[1]))
            expected.append(None)

    if count == 7:
        while await context.device_timeline.step(count):
            settled = [promise.state == "fulfilled" for promise in promises]
            assert settled == sorted(settled, reverse=True), "promises must settle in call order"
    else:
        context.device_timeline.resume()
        await context.drain()

    assert device.log == expected_log
    for promise, value in zip(promises, expected, strict=True):
        result = await promise
        if value is not None:
            assert result.tolist() == [value]


async def test_promises_of_different_kinds_settle_in_the_order_of_the_calls(ml, context):
    buffer = await zeroed(context, [1])
    ml.script_timeline.pause()
    promises = [
        context.read_buffer(buffer),
        context.create_buffer(data_type="int8", shape=[1]),
        build_add_number(context, 1, [1]),
        context.read_buffer(buffer, out=np.ones(1, np.float32)),
    ]
    await quiet(context)

    for settled in range(1, 5):
        assert await ml.script_timeline.step() == 1
        states = [promise.state for promise in promises]
        assert states == ["fulfilled"] * settled + ["pending"] * (4 - settled)


async def test_drain_of_an_empty_timeline_returns(context):
    await context.drain()
    await context.drain()
    assert context.statistics().queued_operations == 0


async def test_after_drain_every_promise_is_settled(device, context):
    buffer = await zeroed(context, [2])
    device.failing["compile"] = RuntimeError("no")
    promises = [
        context.read_buffer(buffer),
        build_add_number(context, 1, [1]),
        context.create_buffer(data_type="int8", shape=[1]),
    ]
    await context.drain()
    assert [promise.state for promise in promises] == ["fulfilled", "rejected", "fulfilled"]
    with pytest.raises(OperationError):
        await promises[1]


@asynccontextmanager
async def drained(context, promise, quiet):
    """Drain a context while the block runs, at whose end the promise is settled; yield a check that it still waits."""
    states = []

    async def drain():
        await context.drain()
        states.append(promise.state)

    async def waits():
        await quiet()
        assert states == []

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain)
        yield waits
    assert states == ["fulfilled"]


async def test_drain_waits_for_an_operation_that_runs(device, context):
    buffer = await zeroed(context, [2])
    finish = device.waiting["read"] = trio.Event()
    async with drained(context, context.read_buffer(buffer), device.quiet) as waits:
        await waits()
        finish.set()


@pytest.mark.parametrize("which", ["device timeline", "script timeline", "both timelines"])
async def test_drain_waits_until_another_task_resumes_what_is_paused(ml, context, which):
    buffer = await zeroed(context, [2])
    paused = [
        timeline
        for timeline, name in [(context.device_timeline, "device"), (ml.script_timeline, "script")]
        if name in which or "both" in which
    ]
    for timeline in paused:
        timeline.pause()
    async with drained(context, context.read_buffer(buffer), partial(quiet, context)) as waits:
        for timeline in paused:
            await waits()
            timeline.resume()


async def test_drain_does_not_wait_for_what_is_enqueued_later(context):
    buffer = await zeroed(context, [2])
    context.device_timeline.pause()
    first = context.read_buffer(buffer)
    drained = trio.Event()

    async def drain():
        await context.drain()
        drained.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain)
        await quiet(context)
        second = context.read_buffer(buffer)
        await context.device_timeline.step()
        await quiet(context)
        assert drained.is_set()
    assert (first.state, second.state) == ("fulfilled", "pending")


@pytest.mark.parametrize("which", ["device timeline", "script timeline"])
async def test_a_cancelled_drain_leaves_no_waiter_behind(ml, context, which):
    buffer = await zeroed(context, [2])
    timeline = context.device_timeline if which == "device timeline" else ml.script_timeline
    timeline.pause()
    promise = context.read_buffer(buffer)
    await quiet(context)

    with trio.move_on_after(0) as scope:
        await context.drain()

    assert scope.cancelled_caught
    assert timeline._waiters == {}
    timeline.resume()
    np.testing.assert_array_equal(await promise, [0, 0])


async def test_drain_of_one_context_does_not_wait_for_another(ml, context, options):
    other = await ml.create_context(**options)
    other.device_timeline.pause()
    waiting = other.create_buffer(data_type="int8", shape=[1])
    promise = context.create_buffer(data_type="int8", shape=[1])

    await context.drain()

    assert (promise.state, waiting.state) == ("fulfilled", "pending")


async def test_drain_of_a_lost_context_waits_for_its_releases(device, context):
    await zeroed(context, [2])
    context.destroy()
    await context.drain()
    assert context.statistics().live_bytes == 0
    await context.drain()
