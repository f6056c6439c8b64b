"""A task that awaits a read runs the operations before it in one turn of trio and in few calls."""

import gc
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import trio
from trio.testing import assert_checkpoints

import webnn_py
from spec_tests.device_timeline.test_liveness import SlowClock, other_task_is_not_starved
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.support.stand_ins import failing
from spec_tests.support.turns import counted_turns
from webnn_py import open_ml
from webnn_py.core.timelines import timeline as timelines
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.devices.numpy import executable

MOST_CALLS = 60
"""Of the package's functions, by a write, a dispatch and a read: where caches are cold, each is felt."""


@pytest.fixture
async def run(numpy_context, monkeypatch):
    """Write, dispatch and read one number with a clock that stands still, so that no other task gets a turn."""
    for module, clock in ((timelines, "perf_counter"), (executable, "perf_counter"), (executable, "computing_time")):
        monkeypatch.setattr(module, clock, lambda: 0.0)
    context = numpy_context
    x, y, graph = await zeroed(context, [1]), await zeroed(context, [1]), await build_add_one(context, [1])

    async def run(number):
        context.write_buffer(x, np.float32([number]))
        context.dispatch(graph, {"x": x}, {"y": y})
        return (await context.read_buffer(y)).item()

    return run


async def test_a_run_takes_one_turn(run):
    assert await run(1) == 2
    with counted_turns() as turns, assert_checkpoints():
        assert await run(2) == 3
    assert turns.count == 1


class Clock:
    """A clock that advances by ``go_on()`` alone."""

    now = 0.0

    def __call__(self):
        return self.now

    def go_on(self):
        self.now += 1


@pytest.fixture
async def behind_long_steps(numpy_context, set_clock):
    """Read two buffers after steps that take long; return the steps and reads that ran before the next turn."""
    set_clock(clock := Clock())
    buffers = [await filled(numpy_context, [1]), await filled(numpy_context, [2])]
    await numpy_context.drain()

    async def read(*kinds):
        for kind in kinds:
            numpy_context.device_timeline.enqueue(DeviceOperation(kind, clock.go_on))
        reads, start = [numpy_context.read_buffer(buffer) for buffer in buffers], clock.now
        numpy_context.device_timeline.run_waiting()
        found = clock.now - start, [read.state for read in reads]
        assert [(await read).tolist() for read in reads] == [[1], [2]]
        return found

    return read


@pytest.mark.parametrize(
    ("kinds", "steps", "states"),
    [
        (["dispatch"], 1, ["fulfilled", "fulfilled"]),
        (["dispatch", "dispatch"], 1, ["pending", "pending"]),
        (["dispatch", "read_buffer"], 2, ["pending", "pending"]),
    ],
    ids=["a step", "two steps", "a long read"],
)
async def test_other_tasks_have_their_turn_after_a_long_step_and_its_reads(behind_long_steps, kinds, steps, states):
    assert await behind_long_steps(*kinds) == (steps, states)


async def test_other_tasks_have_a_turn_at_each_read(run):
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        for number in range(20):
            await run(number)
            assert turns >= number, f"{turns} of {number} before this read"
        nursery.cancel_scope.cancel()


async def test_many_operations_before_a_read_do_not_starve_other_tasks(device, context, set_clock):
    set_clock(SlowClock())
    buffer = await zeroed(context, [2])
    await context.drain()
    device.log.clear()
    async with other_task_is_not_starved(device):
        for number in range(1000):
            context.write_buffer(buffer, np.float32([number, number]))
        assert (await context.read_buffer(buffer)).tolist() == [999, 999]


async def test_a_step_that_waits_goes_on_when_the_reader_is_cancelled(device, context):
    source, target = await filled(context, [1]), await zeroed(context, [1])
    graph = await build_add_one(context, [1])
    await context.drain()
    finish = device.waiting["dispatch"] = trio.Event()
    context.dispatch(graph, {"x": source}, {"y": target})
    read = context.read_buffer(target)
    async with trio.open_nursery() as nursery:

        async def give_up():
            with pytest.raises(trio.Cancelled):
                await read
            await trio.lowlevel.checkpoint_if_cancelled()

        nursery.start_soon(give_up)
        await device.quiet()
        assert (read.state, context.statistics().queued_operations) == ("pending", 2)
        nursery.cancel_scope.cancel()
    finish.set()
    assert (await read).tolist() == [2]


async def test_a_paused_timeline_runs_nothing_for_a_reader(context):
    buffer = await filled(context, [1])
    await context.drain()
    read = context.read_buffer(buffer)
    context.device_timeline.pause()
    with trio.move_on_after(0):
        await read
    assert (read.state, context.statistics().queued_operations) == ("pending", 1)
    assert await context.device_timeline.step() == 1
    assert (await read).tolist() == [1]


async def test_a_defect_ends_the_block_and_not_the_reader_alone():
    async def read():
        async with open_ml() as ml:
            context = await ml.create_context(backend="numpy")
            buffer = await filled(context, [1])
            context.device_timeline.enqueue(DeviceOperation("look", failing(RuntimeError("a defect"))))
            with pytest.raises(trio.Cancelled):
                await context.read_buffer(buffer)
            await trio.lowlevel.checkpoint()

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="a defect"), flatten_subgroups=True):
        await read()


async def test_a_run_calls_few_functions(run):
    folder, calls = str(Path(webnn_py.__file__).parent), Counter()

    def profile(frame, event, _argument):
        code = frame.f_code
        if event == "call" and (code.co_filename.startswith((folder, "<attrs"))):
            calls[code.co_qualname] += 1

    for number in range(3):
        await run(number)
    before = sys.getprofile()
    gc.disable()  # finalisers of what other tests have left would count
    sys.setprofile(profile)
    try:
        await run(3)
    finally:
        sys.setprofile(before)
        gc.enable()
    assert calls["MLContext.dispatch"] == 1
    assert calls.total() <= MOST_CALLS, calls.most_common()
