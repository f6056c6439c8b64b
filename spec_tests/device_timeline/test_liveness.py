"""Other tasks go on while a step of the device waits, and between many short ones."""

import weakref
from contextlib import asynccontextmanager
from itertools import count

import attrs
import numpy as np
import pytest
import trio

from spec_tests.support.buffers import zeroed
from spec_tests.support.watched_device import WatchedDevice
from webnn_py import InvalidStateError, open_ml
from webnn_py.core.timelines import timeline as timelines
from webnn_py.core.timelines.device_timeline import DeviceOperation


@attrs.define
class SlowClock:
    """Each call advances by a tenth of the time after which a timeline lets other tasks run."""

    now: float = 0.0

    def __call__(self):
        self.now += timelines.INLINE_SECONDS / 10
        return self.now


@asynccontextmanager
async def other_task_is_not_starved(device):
    """Check that another task has its turns while a thousand writes run."""
    seen = []

    async def look():
        while not seen or seen[-1] < 1000:
            seen.append(device.log.count("write"))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        yield
    assert 0 < np.diff(seen).max() <= 25, "at most two turns of the timeline between two turns of another task"


async def test_many_short_operations_do_not_starve_other_tasks(device, context, set_clock):
    set_clock(SlowClock())
    buffer = await zeroed(context, [2])
    context.device_timeline.pause()
    for _ in range(1000):
        context.write_buffer(buffer, np.ones(2, np.float32))
    async with other_task_is_not_starved(device):
        context.device_timeline.resume()


async def test_a_timeline_that_lets_other_tasks_run_keeps_nothing_of_finished_work(context, set_clock):
    set_clock(count().__next__)  # so it does after each operation
    timeline, kept = context.device_timeline, 0
    for done in range(1, 21):  # whose turn is next is left to chance
        work = lambda: None  # noqa: E731 - one of its own each time
        alive = weakref.ref(work)
        timeline.enqueue(DeviceOperation("write_buffer", work))
        del work
        await timeline.wait_until(lambda done=done: timeline.statistics().done == done)
        kept += alive() is not None
    assert kept == 0


async def test_short_operations_run_without_a_turn_of_other_tasks_between_them(device, context, set_clock):
    set_clock(lambda: 0.0)
    buffer = await zeroed(context, [2])
    context.device_timeline.pause()
    for _ in range(1000):
        context.write_buffer(buffer, np.ones(2, np.float32))
    context.device_timeline.resume()
    seen = []
    while not seen or seen[-1] < 1000:
        await trio.lowlevel.checkpoint()
        seen.append(device.log.count("write"))
    assert set(seen) <= {0, 1000}


async def test_cancelling_the_block_waits_for_the_step_that_runs_and_then_releases(options):
    finish = trio.Event()

    async def block(task_status):
        async with open_ml() as ml:
            device = WatchedDevice(context := await ml.create_context(**options))
            buffer = await zeroed(context, [2])
            device.waiting["write"] = finish
            context.write_buffer(buffer, np.ones(2, np.float32))
            context.write_buffer(buffer, np.ones(2, np.float32))
            promise = context.read_buffer(buffer)
            task_status.started((context, device, promise))
            await promise
        pytest.fail("the block was cancelled")

    async with trio.open_nursery() as nursery:
        context, device, promise = await nursery.start(block)
        await device.quiet()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await device.quiet()
            while_it_runs = device.log.copy(), context.statistics().live_buffers
            finish.set()

    assert while_it_runs == (["allocate", "write", "stop"], 1)
    assert device.log == ["allocate", "write", "stop", "free", "close"]
    assert context.statistics().live_bytes == 0
    with pytest.raises(InvalidStateError, match=r"the open_ml\(\) block has been left"):
        await promise
