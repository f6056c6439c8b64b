"""Long work runs in the loop's thread where no other task could go on there, and otherwise in the device's own."""

import importlib
import queue
import signal
import threading

import numpy as np
import pytest
import trio
import trio.testing

from spec_tests.support.backends import BACKENDS
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.devices import worker_thread
from webnn_py.devices.worker_thread import CAREFUL_SECONDS, LATE_SECONDS, LOOK_SECONDS, WorkerThread

MIDDLING = LATE_SECONDS / 2
"""Seconds that are long enough to be asked about."""

DEVICES = [name for name in BACKENDS if name in {"numpy", "onnxruntime"}]


@pytest.fixture
def clock(monkeypatch):
    """Return the time of the clock, in a list."""
    now = [100.0]
    monkeypatch.setattr(worker_thread, "perf_counter", lambda: now[0])
    return now


async def is_here(device_thread, seconds=MIDDLING):
    """Return whether a call that is expected to take a time is made in this thread."""
    return await device_thread.run_unless_alone(threading.get_ident, seconds) == threading.get_ident()


async def test_without_other_tasks_calls_run_in_the_loops_thread_unless_they_take_too_long():
    device_thread = WorkerThread()
    assert [await is_here(device_thread, seconds) for seconds in (MIDDLING, LATE_SECONDS * 1.1)] == [True, False]


async def busy():
    for _ in range(10**9):
        await trio.lowlevel.checkpoint()


async def near_deadline():
    for _ in range(10**9):
        await trio.sleep(LATE_SECONDS * 0.9)


async def waiting_for_a_message():
    receiver, sender = trio.socket.socketpair()
    with receiver, sender:
        await receiver.recv(1)


async def in_a_thread():
    is_over = threading.Event()
    try:
        await trio.to_thread.run_sync(is_over.wait, abandon_on_cancel=True)
    finally:
        is_over.set()


async def in_the_thread_of_another_device():
    may_end = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(WorkerThread().run, may_end.wait)
        try:
            await trio.sleep_forever()
        finally:
            may_end.set()


@pytest.mark.parametrize(
    "other", [busy, near_deadline, waiting_for_a_message, in_a_thread, in_the_thread_of_another_device]
)
async def test_where_another_task_could_go_on_calls_run_in_the_devices_thread(other):
    """Call several times, since trio takes the tasks of a turn in either order."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await trio.testing.wait_all_tasks_blocked() if other is not busy else await trio.lowlevel.checkpoint()
        seen = [await is_here(WorkerThread()) for _ in range(12)]
        nursery.cancel_scope.cancel()
    assert seen == [False] * 12


async def test_tasks_that_wait_for_events_or_for_long_change_nothing():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.Event().wait)
        nursery.start_soon(trio.sleep, 60)
        await trio.testing.wait_all_tasks_blocked()
        assert await is_here(WorkerThread())
        nursery.cancel_scope.cancel()


async def test_a_check_for_other_tasks_is_valid_for_a_moment(clock):
    device_thread = WorkerThread()
    assert not device_thread.may_skip_check(MIDDLING)
    assert await is_here(device_thread)
    assert device_thread.may_skip_check(MIDDLING)
    assert not device_thread.may_skip_check(LATE_SECONDS * 1.1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_the_thread_of_another_device)
        await trio.testing.wait_all_tasks_blocked()
        assert not device_thread.may_skip_check(MIDDLING)
        nursery.cancel_scope.cancel()
    clock[0] += LOOK_SECONDS * 1.1
    assert not device_thread.may_skip_check(MIDDLING)


async def test_after_another_task_was_found_calls_run_in_the_devices_thread_for_a_while(clock):
    device_thread = WorkerThread()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(near_deadline)
        await trio.testing.wait_all_tasks_blocked()
        assert not await is_here(device_thread)
        nursery.cancel_scope.cancel()
    assert not await is_here(device_thread)
    clock[0] += CAREFUL_SECONDS * 1.1
    assert await is_here(device_thread)


async def test_after_another_thread_had_to_wait_calls_run_in_the_devices_thread_for_a_while(clock):
    device_thread, token = WorkerThread(), trio.lowlevel.current_trio_token()

    def called_meanwhile():
        caller = threading.Thread(target=token.run_sync_soon, args=[lambda: None])
        caller.start()
        caller.join()

    await device_thread.run_unless_alone(called_meanwhile, MIDDLING)
    assert not device_thread.may_skip_check(MIDDLING)
    assert not await is_here(device_thread)
    clock[0] += CAREFUL_SECONDS * 1.1
    assert await is_here(device_thread)


def test_in_a_guest_loop_all_calls_run_in_the_devices_thread():
    turns, ended = queue.SimpleQueue(), []

    async def several_times():
        await trio.testing.wait_all_tasks_blocked()  # those that begin with the loop
        return [await is_here(WorkerThread()) for _ in range(12)]

    trio.lowlevel.start_guest_run(several_times, run_sync_soon_threadsafe=turns.put, done_callback=ended.append)
    while not ended:
        turns.get(timeout=60)()
    assert ended[0].unwrap() == [False] * 12


# --- dispatches ------------------------------------------------------------------------------------------------------


async def dispatched(context, run, *, count=1):
    """Dispatch a graph that is expected to take a while, call ``run`` after each time, and return the output."""
    graph = await build_add_number(context, 1, [2])
    x, y = await filled(context, [1, 2]), await zeroed(context, [2])
    compiled = graph.handle.compiled
    original = compiled.run

    def observed(*args):
        original(*args)
        compiled.expected_seconds = MIDDLING
        run()

    compiled.run = observed
    compiled.expected_seconds = MIDDLING
    compiled.is_measured = True
    for _ in range(count):
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.drain()
    return await context.read_buffer(y)


@pytest.mark.parametrize("backend", DEVICES)
@pytest.mark.parametrize("others", [[], [busy]], ids=["alone", "beside another task"])
async def test_a_longer_dispatch_runs_in_the_loops_thread_only_without_other_tasks(ml, backend, others, monkeypatch):
    context = await ml.create_context(backend=backend)
    threads = []
    async with trio.open_nursery() as nursery:
        for other in others:
            nursery.start_soon(other)
        result = await dispatched(context, lambda: threads.append(threading.get_ident()), count=3)
        nursery.cancel_scope.cancel()
    np.testing.assert_array_equal(result, [2, 3])
    assert [thread == threading.get_ident() for thread in threads] == [not others] * 3


# --- builds ----------------------------------------------------------------------------------------------------------


def adding(builder, x, count):
    for _ in range(count):
        x = builder.add(x, builder.constant(np.ones(2, np.float32)))
    return x


def computing_a_constant(builder, x, count):
    return builder.add(x, adding(builder, builder.constant(np.zeros(2, np.float32)), count))


BUILDS = {
    "alone": (adding, 0.8, [], DEVICES),
    "beside another task": (adding, 0.8, [busy], []),
    "too long": (adding, 1.2, [], []),
    "computing a constant": (computing_a_constant, 0.8, [], ["numpy"]),  # which knows how long that takes
}
"""The drawing, the build's share of the delay that is allowed, other tasks, and the devices that build it here."""


@pytest.mark.parametrize("backend", DEVICES)
@pytest.mark.parametrize("case", BUILDS)
async def test_a_build_runs_in_the_loops_thread_only_where_it_is_short_and_without_other_tasks(
    ml, backend, case, monkeypatch
):
    draw, part, others, made_here = BUILDS[case]
    context = await ml.create_context(backend=backend)
    if context.backend.device_types[0] != "cpu":
        made_here = ()  # to compile for a GPU always takes long
    await trio.testing.wait_all_tasks_blocked()  # a timeline that has told of it may have let others run
    sent = noted(monkeypatch, WorkerThread, "run")
    builder = MLGraphBuilder(context)
    executable = importlib.import_module(f"webnn_py.devices.{backend}.executable")
    count = int(part * LATE_SECONDS / executable.SECONDS_PER_NODE)
    y = draw(builder, builder.input("x", data_type="float32", shape=[2]), count)
    async with trio.open_nursery() as nursery:
        for other in others:
            nursery.start_soon(other)
        await builder.build({"y": y})
        nursery.cancel_scope.cancel()
    assert len(sent) == (backend not in made_here)


@pytest.mark.parametrize("backend", DEVICES)
def test_an_interrupt_of_a_dispatch_in_the_loops_thread_ends_the_program_and_leaves_nothing(backend, monkeypatch):
    contexts = []

    def interrupt():
        assert threading.current_thread() is threading.main_thread()
        signal.raise_signal(signal.SIGINT)

    async def program():
        async with open_ml() as ml:
            contexts.append(await ml.create_context(backend=backend))
            await dispatched(contexts[0], interrupt)

    with pytest.raises(KeyboardInterrupt):
        trio.run(program)
    assert_nothing_lives(contexts[0])
