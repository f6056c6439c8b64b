"""Contexts on one adapter have one GPU device in common, and nothing else."""

import threading

import numpy as np
import pytest
import trio
import wgpu

import webnn_py
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one
from spec_tests.support.stand_ins import failing, noted
from spec_tests.support.watched_device import destroy_and_log
from webnn_py import UnknownError
from webnn_py.devices.wgpu import backend as wgpu_backend
from webnn_py.devices.wgpu import interop
from webnn_py.devices.wgpu.adapters import choose, request_device
from webnn_py.devices.wgpu.runtime.device_loss import is_lost
from webnn_py.devices.wgpu.runtime.memory import STORAGE
from webnn_py.devices.wgpu.runtime.shared_devices import SharedDevices

LONG_ENOUGH = 60
"""Seconds after which a thread that a test holds goes on, so that a failure does not hang."""


@pytest.fixture
def opened(monkeypatch):
    """The GPU devices that contexts opened, by themselves and from now on."""
    devices = []

    def open_and_note(adapter):
        devices.append(request_device(adapter))
        return devices[-1]

    monkeypatch.setattr(wgpu_backend, "SHARED_DEVICES", SharedDevices(open_and_note))
    return devices


@pytest.fixture
def open_context(ml):
    return lambda **options: ml.create_context(backend="wgpu", **options)


async def end(context):
    context.destroy()
    await context.device_timeline.wait_ended()
    await trio.testing.wait_all_tasks_blocked()


async def add(context, graph, numbers):
    source, target = await filled(context, numbers), await zeroed(context, [len(numbers)])
    context.dispatch(graph, {"x": source}, {"y": target})
    result = await context.read_buffer(target)
    source.destroy()
    target.destroy()
    return result.tolist()


async def test_contexts_that_open_at_once_open_one_device(open_context, opened):
    promises = [open_context(), open_context(), open_context(power_preference="low-power")]
    contexts = [await promise for promise in promises]
    assert len(opened) == 1
    assert {context.device.backend.device for context in contexts} == set(opened)


async def test_the_last_context_destroys_the_device_and_the_next_opens_another(open_context, opened):
    first, second = await open_context(), await open_context()
    await end(first)
    assert not is_lost(opened[0])
    await end(second)
    assert is_lost(opened[0])
    third = await open_context()
    assert len(opened) == 2
    assert await add(third, await build_add_one(third, [2]), [1, 2]) == [2, 3]


@pytest.mark.usefixtures("opened")
async def test_the_end_of_a_context_does_not_disturb_one_in_the_middle_of_its_work(open_context):
    ending, working = await open_context(), await open_context()
    graphs = [await build_add_one(context, [2]) for context in (ending, working)]
    source, target = await filled(working, [1, 2]), await zeroed(working, [2])
    sources = await filled(ending, [5, 6]), await zeroed(ending, [2])
    working.dispatch(graphs[1], {"x": source}, {"y": target})
    ending.dispatch(graphs[0], {"x": sources[0]}, {"y": sources[1]})
    read = working.read_buffer(target)
    ending.destroy()
    building = build_add_number(working, 5, [2])
    np.testing.assert_array_equal(await read, [2, 3])
    await ending.device_timeline.wait_ended()
    assert await add(working, await building, [1, 2]) == [6, 7]
    assert working.lost.state == "pending"


@pytest.mark.usefixtures("opened")
async def test_each_context_counts_its_own_memory(open_context):
    first, second = await open_context(), await open_context()
    kept, held = await zeroed(first, [25]), await zeroed(second, [50])
    await build_add_number(second, 1, [2])
    await second.read_buffer(held)
    counted = [context.statistics() for context in (first, second)]
    assert [(one.live_buffers, one.live_bytes, one.host_copies) for one in counted] == [(1, 100, 0), (1, 200, 1)]
    await end(first)
    assert kept.destroyed
    assert (first.statistics().live_bytes, second.statistics().live_bytes) == (0, 200)


async def test_the_loss_of_the_device_is_told_to_each_of_its_contexts_once_and_the_next_works(open_context, opened):
    contexts = [await open_context() for _ in range(3)]
    told = {context: [] for context in contexts}
    for context in contexts:
        say = context.device.backend.lost
        context.device.backend.lost = lambda message, context=context, say=say: (
            told[context].append(message),
            say(message),
        )
    destroy_and_log(contexts[0])
    fresh = await open_context()  # before anybody has heard of it
    with trio.fail_after(60):
        messages = [(await context.lost).message for context in contexts]
    assert all("the GPU device was lost" in message for message in messages)
    assert [len(messages) for messages in told.values()] == [1, 1, 1]
    assert len(opened) == 2
    assert await add(fresh, await build_add_one(fresh, [2]), [1, 2]) == [2, 3]
    for context in contexts:
        await context.device_timeline.wait_ended()
    assert not is_lost(opened[1])
    assert await open_context() is not None
    assert len(opened) == 2, "the old device's end has not put the fresh one away"


async def test_one_context_noticing_the_loss_tells_the_others(open_context, opened):
    """They need not wait until the thread asks that asks all devices now and then."""
    first, second = await open_context(), await open_context()
    x = await filled(first, [1, 2])
    opened[0].destroy()
    first.device.backend._watch.look()
    await trio.testing.wait_all_tasks_blocked()
    assert [context.lost.state for context in (first, second)] == ["fulfilled", "fulfilled"]
    assert x.destroyed


async def test_an_error_of_one_context_is_not_told_by_another(open_context):
    adapter_device = (await open_context()).device.backend.device
    clumsy, careful = await open_context(), await open_context()
    graphs = [await build_add_one(context, [2]) for context in (clumsy, careful)]
    theirs = adapter_device.create_buffer(size=32, usage=STORAGE)
    source, target = interop.import_buffer(clumsy, theirs, data_type="float32", shape=[2]), await zeroed(clumsy, [2])
    x, y = await filled(careful, [1, 2]), await zeroed(careful, [2])
    theirs.destroy()
    careful.dispatch(graphs[1], {"x": x}, {"y": y})
    clumsy.dispatch(graphs[0], {"x": source}, {"y": target})
    with pytest.raises(UnknownError, match="has been destroyed"):
        await clumsy.read_buffer(target)
    np.testing.assert_array_equal(await careful.read_buffer(y), [2, 3])


@pytest.mark.parametrize("are_two", [False, True], ids=["one context", "two contexts"])
@pytest.mark.usefixtures("opened")
async def test_a_context_that_waits_for_the_gpu_lets_the_others_submit(open_context, monkeypatch, are_two):
    """A native wait would keep them from it; alone on the device, it is what is awake first."""
    waiting = await open_context(power_preference="low-power")
    other = await open_context() if are_two else None
    x = await filled(waiting, [1, 2])
    await waiting.drain()
    queue, its_threads, waits = waiting.device.backend._queue, set(), []
    begun, goes_on = threading.Event(), threading.Event()
    wait, is_done = queue.wait, queue.engine._is_done

    def wait_noted(ticket, *, is_shared):
        its_threads.add(threading.get_ident())
        begun.set()
        wait(ticket, is_shared=is_shared)
        its_threads.remove(threading.get_ident())

    def is_done_noted(device, *, wait=False):
        if threading.get_ident() in its_threads:
            waits.append(wait)
            if wait:
                assert goes_on.wait(LONG_ENOUGH)
            elif not goes_on.is_set():
                return False
        return is_done(device, wait=wait)

    monkeypatch.setattr(queue, "wait", wait_noted)
    monkeypatch.setattr(queue.engine, "_is_done", is_done_noted)
    monkeypatch.setattr(queue, "poll", lambda: None)  # the answer comes while a thread waits for it
    reading = waiting.read_buffer(x)
    assert await trio.to_thread.run_sync(begun.wait, LONG_ENOUGH)
    if other is not None:
        assert await add(other, await build_add_number(other, 3, [2]), [1, 2]) == [4, 5]
    goes_on.set()
    np.testing.assert_array_equal(await reading, [1, 2])
    assert any(waits) == (not are_two)


def test_programs_in_two_threads_share_a_device_and_end_by_themselves(opened):
    """Each thread has its own event loop, as the blocking form of sessions has."""
    may_end, both_are_open = threading.Event(), threading.Barrier(2, timeout=LONG_ENOUGH)
    results = {}

    async def program(name, wait):
        async with webnn_py.open_ml() as ml:
            context = await ml.create_context(backend="wgpu")
            await trio.to_thread.run_sync(both_are_open.wait)
            await trio.to_thread.run_sync(wait)
            graph = await build_add_number(context, 3, [2])
            results[name] = [await add(context, graph, [number, number]) for number in range(20)]
        may_end.set()

    def wait_for_the_end_of_the_other():
        assert may_end.wait(LONG_ENOUGH), "the other program did not end"

    threads = [
        threading.Thread(target=trio.run, args=(program, *arguments))
        for arguments in (("first", lambda: None), ("second", wait_for_the_end_of_the_other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LONG_ENOUGH)
    assert len(opened) == 1
    expected = [[number + 3.0] * 2 for number in range(20)]
    assert results == {"first": expected, "second": expected}


# --- the books, with what happens at the same time -----------------------------------------------------------------


@pytest.fixture
def books():
    """Shared devices whose opening a test can hold: ``begun`` is set when it begins, and waits for ``may_go``."""
    devices = SharedDevices(
        lambda adapter: (devices.begun.set(), devices.may_go.wait(LONG_ENOUGH), open_one(adapter))[2]
    )
    devices.begun, devices.may_go, devices.opened = threading.Event(), threading.Event(), []
    devices.may_go.set()

    def open_one(adapter):
        devices.opened.append(request_device(adapter))
        return devices.opened[-1]

    return devices


def test_a_device_that_is_being_closed_is_not_given_out(books, monkeypatch):
    """Destroying takes long: whoever comes meanwhile gets a fresh one."""
    adapter = choose("default", software=True)
    first = books.take(adapter)
    given = noted(monkeypatch, first, "destroy", lambda: books.take(adapter))
    books.give_back(first)
    assert given == [books.opened[1]]
    assert not is_lost(given[0])
    books.give_back(given[0])


def test_an_adapter_that_fails_to_open_does_so_for_each_and_then_may_work(monkeypatch):
    failures = [wgpu.GPUError("busy"), wgpu.GPUError("still busy")]

    def open_device(adapter):
        if failures:
            raise failures.pop(0)
        return request_device(adapter)

    books = SharedDevices(open_device)
    adapter = choose("default", software=True)
    for text in ("busy", "still busy"):
        with pytest.raises(wgpu.GPUError, match=f"^{text}$"):
            books.take(adapter)
    books.give_back(books.take(adapter))


async def test_a_context_that_cannot_be_made_gives_its_device_back(open_context, opened, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(wgpu_backend, "describe", failing(RuntimeError("no name")))
        with pytest.raises(webnn_py.NotSupportedError, match="no name"):
            await open_context()
    await open_context()
    assert len(opened) == 2
