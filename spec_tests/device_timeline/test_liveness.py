"""The event loop stays live: long steps run in a worker thread, many short ones let other tasks in between."""

import threading

import attrs
import numpy as np
import pytest
import trio

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.watched_device import WatchedDevice
from webnn_py import InvalidStateError, MLGraphBuilder, open_ml
from webnn_py.device.on_numpy import backend as numpy_backend
from webnn_py.device.on_numpy import executable, table
from webnn_py.operators import arithmetic
from webnn_py.timelines import timeline as timelines

SHORT, LONG = 0.0, 1e12
"""Elementary operations that clearly take less, or more, than the hand-over to a thread is worth."""


class ObservedAdd:
    """Stands for the kernel of ``add``: says what work it is, and notes in which thread it ran."""

    def __init__(self):
        self.work = SHORT
        self.threads = []
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def make(self, _node):
        def add(a, b, output):
            self.threads.append(threading.get_ident())
            self.begun.set()
            assert self.may_end.wait(10), "the test never let the kernel end"
            np.add(a, b, out=output)

        return add


@pytest.fixture
def observed_add(monkeypatch):
    observed = ObservedAdd()
    entry = table.NumpyEntry(observed.make, None, lambda _node: observed.work)
    monkeypatch.setitem(table._TABLE, arithmetic.add, entry)
    return observed


@pytest.mark.parametrize(("work", "inline"), [(SHORT, True), (LONG, False)], ids=["short", "long"])
async def test_a_long_dispatch_runs_in_a_worker_thread_and_a_short_one_inline(
    numpy_context, observed_add, work, inline
):
    observed_add.work = work
    graph = await build_add_number(numpy_context, 1, [2])
    x, y = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])

    numpy_context.dispatch(graph, {"x": x}, {"y": y})

    np.testing.assert_array_equal(await numpy_context.read_buffer(y), [2, 3])
    assert [thread == threading.get_ident() for thread in observed_add.threads] == [inline]


@pytest.mark.parametrize(("work", "inline"), [(SHORT, True), (LONG, False)], ids=["short", "long"])
async def test_a_long_compilation_runs_in_a_worker_thread_and_a_short_one_inline(
    numpy_context, observed_add, work, inline
):
    observed_add.work = work
    builder = MLGraphBuilder(numpy_context)
    one = builder.constant(np.ones(2, np.float32))
    await builder.build({"y": builder.add(one, one)})
    assert [thread == threading.get_ident() for thread in observed_add.threads] == [inline]


async def test_where_a_dispatch_runs_follows_how_long_the_last_one_took(numpy_context, observed_add, monkeypatch):
    graph = await build_add_number(numpy_context, 1, [2])
    x, y = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])
    await numpy_context.drain()
    for seconds in (1.0, 0.0, 1.0):
        clock = iter([0.0, seconds])
        monkeypatch.setattr(executable, "perf_counter", clock.__next__)
        numpy_context.dispatch(graph, {"x": x}, {"y": y})
        await numpy_context.drain()
    assert [thread == threading.get_ident() for thread in observed_add.threads] == [True, False, True]


@pytest.mark.parametrize(("elements", "inline"), [(2, True), (2**20, False)], ids=["short", "long"])
async def test_a_long_read_runs_in_a_worker_thread_and_a_short_one_inline(numpy_context, monkeypatch, elements, inline):
    handed_over = []

    async def run_sync(call, **options):
        handed_over.append(call)
        return await original(call, **options)

    original = trio.to_thread.run_sync
    monkeypatch.setattr(numpy_backend.trio.to_thread, "run_sync", run_sync)
    buffer = await zeroed(numpy_context, [elements])
    values = await numpy_context.read_buffer(buffer)
    assert values.shape == (elements,)
    assert not values.any()
    assert len(handed_over) == (0 if inline else 1)


async def test_other_tasks_go_on_while_a_kernel_runs_in_its_thread(numpy_context, observed_add, options):
    observed_add.work = LONG
    observed_add.may_end.clear()
    graph = await build_add_number(numpy_context, 1, [2])
    x, y = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])
    numpy_context.dispatch(graph, {"x": x}, {"y": y})
    promise = numpy_context.read_buffer(y)

    other = await numpy_context._ml.create_context(**options)
    elsewhere = await filled(other, [3])
    np.testing.assert_array_equal(await other.read_buffer(elsewhere), [3])
    assert promise.state == "pending"

    observed_add.may_end.set()
    np.testing.assert_array_equal(await promise, [2, 3])


async def test_a_dispatch_that_runs_when_the_context_is_lost_ends_before_its_next_kernel(numpy_context, observed_add):
    observed_add.work = LONG
    observed_add.may_end.clear()
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2])
    graph = await builder.build({"y": builder.add(builder.add(builder.add(x, x), x), x)})
    source, target = await filled(numpy_context, [1, 2]), await zeroed(numpy_context, [2])
    numpy_context.dispatch(graph, {"x": source}, {"y": target})
    await trio.to_thread.run_sync(observed_add.begun.wait)

    numpy_context.destroy()
    observed_add.may_end.set()
    await numpy_context.drain()

    assert len(observed_add.threads) == 1
    assert numpy_context.statistics().live_bytes == 0


async def test_the_event_loop_goes_on_while_a_step_waits(device, context):
    buffer = await zeroed(context, [2])
    finish = device.waiting["write"] = trio.Event()
    context.write_buffer(buffer, np.ones(2, np.float32))
    promise = context.read_buffer(buffer)
    await device.quiet()

    for _ in range(100):
        await trio.lowlevel.checkpoint()
    assert promise.state == "pending"
    assert context.statistics().queued_operations == 2

    finish.set()
    np.testing.assert_array_equal(await promise, [1, 1])


@attrs.define
class SlowClock:
    """Every look at it finds a tenth of the time gone after which a timeline lets other tasks run."""

    now: float = 0.0

    def __call__(self):
        self.now += timelines.INLINE_SECONDS / 10
        return self.now


async def test_many_short_operations_do_not_starve_other_tasks(device, context, monkeypatch):
    monkeypatch.setattr(timelines, "perf_counter", SlowClock())
    buffer = await zeroed(context, [2])
    context.device_timeline.pause()
    for _ in range(1000):
        context.write_buffer(buffer, np.ones(2, np.float32))
    seen = []

    async def look():
        while not seen or seen[-1] < 1000:
            seen.append(device.log.count("write"))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        context.device_timeline.resume()

    strides = np.diff(seen)
    assert 0 < strides.max() <= 25, "at most two turns of the timeline between two turns of another task"


async def test_short_operations_run_without_a_turn_of_other_tasks_between_them(device, context, monkeypatch):
    monkeypatch.setattr(timelines, "perf_counter", lambda: 0.0)
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


async def test_leaving_the_block_resumes_what_is_paused(options):
    async with open_ml() as ml:
        context = await ml.create_context(**options)
        device = WatchedDevice(context)
        buffer = await zeroed(context, [2])
        context.device_timeline.pause()
        ml.script_timeline.pause()
        buffer.destroy()
    assert context.statistics().live_bytes == 0
    assert device.log == ["allocate", "stop", "free", "close"]
