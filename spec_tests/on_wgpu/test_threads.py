"""Work of a GPU context outside of the event loop: waiting for the GPU and building, with one submission at a time."""

import threading

import numpy as np
import pytest
import trio
import wgpu

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one, run
from spec_tests.support.stand_ins import beside_a_busy_task, failing, noted
from webnn_py import InvalidStateError, MLGraphBuilder, OperationError
from webnn_py.devices.wgpu import backend as wgpu_backend
from webnn_py.devices.wgpu.engines.engine import Ticket
from webnn_py.devices.wgpu.runtime import waiting
from webnn_py.devices.wgpu.runtime.pipelines import Pipelines

LONG_ENOUGH = 60
"""Seconds after which a thread that a test holds goes on, so that a failure does not hang."""


class Held:
    """Holds every call that is made in another thread than this one."""

    def __init__(self):
        self.here = threading.get_ident()
        self.begun, self.may_go = threading.Event(), threading.Event()

    def __call__(self, *_arguments, **_options):
        if threading.get_ident() != self.here:
            self.begun.set()
            assert self.may_go.wait(LONG_ENOUGH), "the test never let the thread go"

    async def wait_begun(self):
        assert await trio.to_thread.run_sync(self.begun.wait, LONG_ENOUGH), "nothing was called in another thread"


@pytest.fixture
def hold_gpu(queue, monkeypatch):
    """A function that lets the GPU take its time, until it is let go."""

    def hold():
        held, poll = Held(), queue.poll
        monkeypatch.setattr(queue, "poll", lambda: poll() if held.may_go.is_set() else None)
        noted(monkeypatch, queue, "wait", held)
        return held

    return hold


async def test_other_tasks_and_contexts_go_on_while_a_read_waits_for_the_gpu(ml, gpu, hold_gpu):
    x = await filled(gpu, [1, 2])
    await gpu.drain()
    held = hold_gpu()
    read = gpu.read_buffer(x)
    await held.wait_begun()

    other = await ml.create_context(backend="wgpu")
    np.testing.assert_array_equal(await other.read_buffer(await filled(other, [3])), [3])
    gpu.write_buffer(x, np.array([7, 8], np.float32))
    assert read.state == "pending"
    assert gpu.statistics().queued_operations == 2

    held.may_go.set()
    np.testing.assert_array_equal(await read, [1, 2])
    np.testing.assert_array_equal(await gpu.read_buffer(x), [7, 8])


async def test_a_wait_for_the_gpu_that_is_cancelled_cancels_nothing(gpu, hold_gpu):
    x = await filled(gpu, [1, 2])
    await gpu.drain()
    held = hold_gpu()
    read = gpu.read_buffer(x)
    await held.wait_begun()
    with trio.CancelScope() as scope:
        scope.cancel()
        await read
    assert scope.cancelled_caught
    held.may_go.set()
    np.testing.assert_array_equal(await read, [1, 2])


@pytest.mark.parametrize(
    ("answered_after", "lets_others_run", "sleeps"),
    [(0.00005, False, False), (0.0003, True, False), (0.001, True, True)],
    ids=["at once", "soon", "later"],
)
async def test_a_wait_looks_then_lets_other_tasks_run_between_looks_then_sleeps(
    gpu, queue, monkeypatch, *, answered_after, lets_others_run, sleeps
):
    backend, ticket = gpu.device.backend, Ticket()
    seconds, turns = 0.0, []

    def clock():
        nonlocal seconds
        seconds += 0.00001
        return seconds

    def poll():
        if seconds >= answered_after:
            ticket.done = ""

    def answer(ticket, **_how):
        ticket.done = ""
        return threading.get_ident()

    monkeypatch.setattr(waiting, "perf_counter", clock)
    monkeypatch.setattr(queue, "poll", poll)
    slept = noted(monkeypatch, queue, "wait", answer)
    async with beside_a_busy_task(turns):
        await backend._wait(ticket)
        monkeypatch.undo()
        assert bool(turns) == lets_others_run
        assert seconds < 0.0007, "it looked for longer than it may"
        assert bool(slept) == sleeps
        assert threading.get_ident() not in slept


async def test_other_tasks_go_on_while_a_graph_is_built(ml, gpu, monkeypatch):
    backend = gpu.device.backend
    held = Held()
    noted(monkeypatch, backend, "_compile", held)
    building = build_add_number(gpu, 3, [2])
    await held.wait_begun()

    other = await ml.create_context(backend="wgpu")
    np.testing.assert_array_equal(await other.read_buffer(await filled(other, [3])), [3])
    assert building.state == "pending"

    held.may_go.set()
    graph = await building
    assert (await run(gpu, graph, x=[1, 2]))["y"] == [4, 5]


@pytest.mark.sampled(1)
async def test_what_is_dispatched_before_a_build_has_been_submitted_when_that_begins(gpu, queue, monkeypatch):
    """Else the GPU has nothing to do until the build ends, and what is learned of the graph's time is the build's."""
    graph, x, y = await build_add_one(gpu, [2]), await filled(gpu, [1, 2]), await zeroed(gpu, [2])
    await gpu.drain()
    begun = noted(monkeypatch, gpu.device.backend, "_compile", lambda *_: "build")
    submitted = noted(monkeypatch, queue, "_submit", lambda *_: begun.append("submit"))
    gpu.dispatch(graph, {"x": x}, {"y": y})
    await build_add_one(gpu, [3])
    assert submitted
    assert begun[:2] == ["submit", "build"]
    np.testing.assert_array_equal(await gpu.read_buffer(y), [2, 3])


async def test_a_build_submits_in_the_event_loops_thread(gpu, queue, monkeypatch):
    """A task that destroyed the device between a submission's check and the submission would end the process."""
    threads = noted(monkeypatch, queue, "_submit", lambda *_: threading.get_ident())
    builder = MLGraphBuilder(gpu)
    x = builder.input("x", data_type="float32", shape=[2])
    computed = builder.exp(builder.constant(np.zeros(2, np.float32)))
    graph = await builder.build({"y": builder.add(x, computed)})
    assert threads == [threading.get_ident()]
    assert (await run(gpu, graph, x=[1, 2]))["y"] == [2, 3]


async def test_what_a_build_submits_leaves_alone_what_is_collected(gpu, queue, monkeypatch):
    graph = await build_add_one(gpu, [2])
    x, y, z = await filled(gpu, [1, 2]), await zeroed(gpu, [2]), await zeroed(gpu, [2])
    await gpu.drain()
    (step,) = graph.handle.compiled._steps
    queue.launch([step.launch({"x": x.storage}, {"y": y.storage})])
    with monkeypatch.context() as patch:
        patch.setattr(queue.engine, "encode_pass", failing(wgpu.GPUOutOfMemoryError("Not enough memory left.")))
        with pytest.raises(wgpu.GPUOutOfMemoryError):
            queue.run([step.launch({"x": x.storage}, {"y": z.storage})])
    queue.submit()
    np.testing.assert_array_equal(await gpu.read_buffer(y), [2, 3])
    np.testing.assert_array_equal(await gpu.read_buffer(z), [0, 0])


def two_kernels(context, number):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[4, number])
    return builder, {"y": builder.softmax(builder.softmax(x, 1), 0)}


@pytest.mark.sampled(1)
async def test_a_build_tells_how_far_it_is(gpu, monkeypatch):
    monkeypatch.setattr(wgpu_backend, "PROGRESS_SECONDS", 0)
    told = []
    builder, outputs = two_kernels(gpu, 7)
    await builder.build(outputs, progress=lambda *numbers: told.append((*numbers, threading.get_ident())))
    assert told == [(1, 2, threading.get_ident()), (2, 2, threading.get_ident())]


@pytest.mark.sampled(1)
async def test_what_progress_raises_ends_the_build_alone(gpu):
    def enough(done, _total):
        raise TimeoutError(f"{done} are enough")

    builder, outputs = two_kernels(gpu, 8)
    with pytest.raises(OperationError, match="are enough") as caught:
        await builder.build(outputs, progress=enough)
    assert isinstance(caught.value.__cause__, TimeoutError)
    builder, outputs = two_kernels(gpu, 8)
    await builder.build(outputs)


@pytest.mark.sampled(1)
async def test_a_build_ends_with_its_context(ml, gpu, monkeypatch):
    context = await ml.create_context(backend="wgpu")
    held = Held()
    noted(monkeypatch, Pipelines, "_make", held)
    building = build_add_number(context, 12345, [2])
    try:
        await held.wait_begun()
        with trio.fail_after(30):
            context.destroy()
            with pytest.raises(InvalidStateError, match="the context is lost"):
                await building
            await context.device_timeline.drain()
        assert not held.may_go.is_set()
    finally:
        held.may_go.set()
    graph = await build_add_number(gpu, 12345, [2])
    assert (await run(gpu, graph, x=[1, 2]))["y"] == [12346, 12347]
