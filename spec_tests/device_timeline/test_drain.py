"""``drain()`` waits for queued operations and for their promises."""

import gc
import weakref
from contextlib import asynccontextmanager
from functools import partial

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.buffers import zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.watched_device import quiet
from webnn_py import OperationError


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


async def test_drain_does_not_wait_for_later_operations(context):
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
async def test_a_cancelled_drain_disturbs_nothing(ml, context, which):
    buffer = await zeroed(context, [2])
    timeline = context.device_timeline if which == "device timeline" else ml.script_timeline
    timeline.pause()
    promise = context.read_buffer(buffer)
    await quiet(context)

    with trio.move_on_after(0) as scope:
        await context.drain()

    assert scope.cancelled_caught
    timeline.resume()
    np.testing.assert_array_equal(await promise, [0, 0])


async def test_a_cancelled_wait_is_forgotten(context):
    condition = lambda: False  # noqa: E731 - one of its own
    alive = weakref.ref(condition)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(context.device_timeline.wait_until, condition)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    del condition, nursery
    gc.collect()
    assert alive() is None


async def test_drain_of_one_context_does_not_wait_for_another(ml, context, options):
    other = await ml.create_context(**options)
    other.device_timeline.pause()
    waiting = other.create_buffer(data_type="int8", shape=[1])
    promise = context.create_buffer(data_type="int8", shape=[1])

    await context.drain()

    assert (promise.state, waiting.state) == ("fulfilled", "pending")
