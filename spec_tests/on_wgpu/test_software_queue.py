"""Software adapters compile and compute within submissions, which are made in a thread: other tasks go on."""

import signal
import threading

import numpy as np
import pytest
import trio
import wgpu

from spec_tests.on_wgpu.test_threads import LONG_ENOUGH, Held
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.stand_ins import failing, noted, returned
from webnn_py import UnknownError, open_ml
from webnn_py.devices.wgpu import interop
from webnn_py.devices.wgpu.adapters import choose, request_device
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue
from webnn_py.devices.wgpu.runtime.memory import STORAGE

pytestmark = pytest.mark.skipif(
    choose("default", software=True) is None or choose("default", software=False) is not None,
    reason="no software adapter is chosen here",
)


@pytest.fixture
async def held(queue, monkeypatch):
    """Holds submissions that are made in another thread."""
    held = Held()
    noted(monkeypatch, queue, "_hand_over", held)
    yield held
    held.may_go.set()


@pytest.fixture
async def model(gpu):
    """A graph that adds 1, its input of 1 and 2, and its output."""
    graph, x, y = await build_add_one(gpu, [2]), await filled(gpu, [1, 2]), await zeroed(gpu, [2])
    await gpu.drain()
    return graph, x, y


async def test_other_tasks_go_on_while_a_dispatch_is_submitted(gpu, model, held):
    graph, x, y = model
    gpu.dispatch(graph, {"x": x}, {"y": y})
    read = gpu.read_buffer(y)
    await held.wait_begun()
    for _ in range(100):
        await trio.lowlevel.checkpoint()
    assert read.state == "pending"
    held.may_go.set()
    np.testing.assert_array_equal(await read, [2, 3])


async def test_a_time_limit_ends_a_wait_for_a_dispatch_that_is_submitted(gpu, model, held):
    graph, x, y = model
    gpu.dispatch(graph, {"x": x}, {"y": y})
    read = gpu.read_buffer(y)
    await held.wait_begun()
    with trio.move_on_after(0) as scope:
        await read
    assert scope.cancelled_caught
    held.may_go.set()
    np.testing.assert_array_equal(await read, [2, 3])


def test_an_interrupt_ends_a_wait_for_a_dispatch_that_is_submitted(monkeypatch):
    async def program():
        async with open_ml() as ml:
            gpu = await ml.create_context(backend="wgpu")
            graph, x, y = await build_add_one(gpu, [2]), await filled(gpu, [1, 2]), await zeroed(gpu, [2])
            await gpu.drain()
            held = Held()
            noted(monkeypatch, gpu.device.backend._queue, "_hand_over", held)

            def interrupt():
                assert held.begun.wait(LONG_ENOUGH)
                signal.raise_signal(signal.SIGINT)

            gpu.dispatch(graph, {"x": x}, {"y": y})
            read = gpu.read_buffer(y)
            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                await read
            finally:
                assert read.state == "pending"
                held.may_go.set()
                thread.join()

    with pytest.raises(KeyboardInterrupt):
        trio.run(program)


async def test_operations_behind_a_submission_keep_their_order(gpu, model, held):
    graph, x, y = model
    gpu.dispatch(graph, {"x": x}, {"y": y})
    reads = [gpu.read_buffer(y)]
    for number in range(3):
        gpu.write_buffer(x, np.full(2, number, np.float32))
        gpu.dispatch(graph, {"x": x}, {"y": y})
        reads += [gpu.read_buffer(y), gpu.read_buffer(x)]
    await held.wait_begun()
    assert [read.state for read in reads] == ["pending"] * 7
    held.may_go.set()
    results = [(await read).tolist() for read in reads]
    assert results == [[2, 3], [1, 1], [0, 0], [2, 2], [1, 1], [3, 3], [2, 2]]


async def test_memory_is_destroyed_behind_the_submissions_that_use_it(gpu, model, held):
    graph, x, y = model
    gpu.dispatch(graph, {"x": x}, {"y": y})
    read = gpu.read_buffer(y)
    for thing in (x, graph):
        thing.destroy()
    await held.wait_begun()
    held.may_go.set()
    np.testing.assert_array_equal(await read, [2, 3])
    y.destroy()
    await gpu.drain()
    assert_nothing_lives(gpu)


async def test_what_is_not_submitted_when_the_context_is_destroyed_is_dropped(gpu, model, held, monkeypatch):
    graph, x, y = model
    for _ in range(2):
        gpu.dispatch(graph, {"x": x}, {"y": y})
        read = gpu.read_buffer(y)
        await held.wait_begun()
    submitted = noted(monkeypatch, ContextQueue, "_hand_over")
    gpu.destroy()
    held.may_go.set()
    await gpu.device_timeline.wait_ended()
    assert read.state == "rejected"
    assert submitted == []


async def test_a_write_that_fails_in_the_thread_rejects_later_reads(gpu, queue, model, monkeypatch):
    _, x, _ = model
    noted(monkeypatch, queue.engine, "write", failing(wgpu.GPUOutOfMemoryError("Not enough memory left.")))
    gpu.write_buffer(x, np.zeros(2, np.float32))
    with pytest.raises(UnknownError, match="Not enough memory left"):
        await gpu.read_buffer(x)


async def test_a_device_is_destroyed_behind_the_last_call_of_the_thread(gpu, queue, monkeypatch):
    """A wait that was given up has left it there."""
    order, held = [], Held()
    noted(monkeypatch, queue.engine, "work_done", held)
    returned(monkeypatch, queue.engine, "work_done", lambda *_: order.append("call"))
    noted(monkeypatch, gpu.device.backend.device, "destroy", lambda: order.append("destroy"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(gpu.drain)
        await held.wait_begun()
        nursery.cancel_scope.cancel()
    threading.Timer(0.1, held.may_go.set).start()
    gpu.destroy()
    await gpu.device_timeline.wait_ended()
    assert (order[0], order[-1]) == ("call", "destroy")


async def test_what_timed_kernels_write_is_destroyed_behind_their_submission(gpu, model, held, monkeypatch):
    graph, x, y = model
    backend = gpu.device.backend
    monkeypatch.setattr(backend, "read", failing(wgpu.GPUOutOfMemoryError("Not enough memory left.")))
    with pytest.raises(wgpu.GPUOutOfMemoryError):
        backend.dispatch_timed(graph.handle.compiled, {"x": x.storage}, {"y": y.storage})
    monkeypatch.undo()
    await held.wait_begun()
    held.may_go.set()
    np.testing.assert_array_equal(await gpu.read_buffer(y), [2, 3])


async def test_memory_of_a_user_may_be_destroyed_at_once(gpu, model, held):
    graph, _, y = model
    users = gpu.device.backend.device.create_buffer_with_data(data=np.float32([5, 6] * 4), usage=STORAGE)
    x = interop.import_buffer(gpu, users, data_type="float32", shape=[2])
    gpu.dispatch(graph, {"x": x}, {"y": y})
    await gpu.device_timeline.drain()
    users.destroy()
    held.may_go.set()
    np.testing.assert_array_equal(await gpu.read_buffer(y), [6, 7])


async def test_an_error_without_a_text_rejects_the_read(gpu, queue, model, monkeypatch):
    _, x, _ = model
    noted(monkeypatch, queue.engine, "map", failing(wgpu.GPUError("")))
    with pytest.raises(UnknownError, match="GPUError"):
        await gpu.read_buffer(x)


async def test_a_lent_buffer_has_what_was_submitted_before(gpu, model, held):
    graph, x, y = model
    threading.Timer(0.1, held.may_go.set).start()
    gpu.dispatch(graph, {"x": x}, {"y": y})
    lent = await interop.export_to_gpu(gpu, y)
    users = gpu.device.backend.device.queue
    assert np.frombuffer(users.read_buffer(lent), np.float32)[:2].tolist() == [2, 3]
    lent.destroy()


def submitting_threads():
    return {thread for thread in threading.enumerate() if thread.name == "webnn-software-gpu"}


async def test_only_devices_that_no_user_can_destroy_submit_in_a_thread(ml):
    before = submitting_threads()
    await ml.create_context(gpu_device=request_device(choose("default", software=True)))
    assert submitting_threads() - before == set()
    await ml.create_context(backend="wgpu")
    assert len(submitting_threads() - before) == 1


def test_programs_end_with_their_threads():
    async def program():
        async with open_ml() as ml:
            context = await ml.create_context(backend="wgpu")
            x = await filled(context, [1])
            await context.read_buffer(x)

    before = submitting_threads()
    for _ in range(3):
        trio.run(program)
    assert submitting_threads() - before == set()
