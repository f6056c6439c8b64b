"""Observers receive the events of the timelines in their order, and one that raises is removed."""

import logging
import weakref

import numpy as np
import pytest
import trio

import webnn_py
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.support.scene import F32, ONES
from webnn_py import InvalidStateError, Observer, UnknownError

HOOKS = [name for name in vars(Observer) if not name.startswith("_")]


class Log(Observer):
    """Writes down what happens, each event with the kind of operation or the name of the call."""

    def __init__(self, *wanted):
        self.seen, self.given = [], []
        for hook in HOOKS:
            if wanted and hook not in wanted:
                setattr(self, hook, None)  # as if it had no such method

    def opened(self, context):
        self._note("opened", context.backend)

    def called(self, call):
        self._note("called", call)

    def refused(self, refusal):
        self._note("refused", refusal.method, refusal)

    def enqueued(self, context, operation):
        self._note("enqueued", operation.kind, operation)

    def started(self, context, operation):
        self._note("started", operation.kind, operation)

    def finished(self, context, operation, error):
        self._note("finished", operation.kind, error)

    def dropped(self, context, operation, why):
        self._note("dropped", operation.kind, why)

    def task_started(self, kind, operation):
        self._note("task_started", kind, operation)

    def settled(self, context, operation, error, value):
        self._note("settled", operation.kind, error if value is None else value)

    def task_finished(self, kind, operation):
        self._note("task_finished", kind, operation)

    def lost(self, context, why):
        self._note("lost", context.backend, why)

    def _note(self, hook, what, given=None):
        self.seen.append(f"{hook} {what}")
        self.given.append(given)

    def of(self, event):
        """Return what the only event of that name was given."""
        (index,) = (index for index, seen in enumerate(self.seen) if seen == event)
        return self.given[index]


@pytest.fixture
def log(ml):
    """Return an observer that has been added."""
    log = Log()
    ml.observers.add(log)
    return log


async def test_an_observer_receives_every_event_of_a_program_in_order(ml):
    log = Log()
    ml.observers.add(log)
    context = await ml.create_context(backend="numpy")
    buffer = await context.create_buffer(**F32, readable=True, writable=True)
    context.write_buffer(buffer, ONES)
    read = await context.read_buffer(buffer)
    buffer.destroy()
    await context.drain()
    context.destroy()
    assert log.seen == [
        "called create_context()",
        "opened numpy",
        "task_started create_context",
        "task_finished create_context",
        "called create_buffer()",
        "enqueued create_buffer",
        "started create_buffer",
        "finished create_buffer",
        "task_started create_buffer",
        "settled create_buffer",
        "task_finished create_buffer",
        "called write_buffer()",
        "enqueued write_buffer",
        "called read_buffer()",
        "enqueued read_buffer",
        "started write_buffer",
        "finished write_buffer",
        "started read_buffer",
        "finished read_buffer",
        "task_started read_buffer",
        "settled read_buffer",
        "task_finished read_buffer",
        "called destroy()",
        "enqueued release",
        "called drain()",
        "started release",
        "finished release",
        "called destroy()",
        "lost numpy",
    ]
    assert log.of("settled create_buffer") is buffer
    assert log.of("settled read_buffer") is read
    operation = log.of("enqueued read_buffer")
    assert operation.number == 3
    assert log.of("started read_buffer") is log.of("task_finished read_buffer") is operation


async def test_an_observer_is_called_from_when_it_is_added_until_it_is_removed(ml, context):
    log = Log("enqueued", "finished")
    ml.observers.add(log)
    buffer = await zeroed(context, [1])
    ml.observers.remove(log)
    buffer.destroy()
    await context.drain()
    assert log.seen == ["enqueued create_buffer", "finished create_buffer"]


async def test_an_observer_may_be_any_object_with_some_of_the_methods(ml, numpy_context):
    class Losses:
        __hash__ = None

        def lost(self, context, why):
            told.append((str(context), why))

    told = []
    ml.observers.add(Losses())
    numpy_context.destroy()
    assert told == [("context 1", "destroy() was called on the context")]


async def test_operations_that_were_enqueued_before_have_numbers_and_settle(ml, context):
    buffer = await zeroed(context, [1])
    context.device_timeline.pause()
    context.write_buffer(buffer, bytes(4))
    promise = context.read_buffer(buffer)
    log = Log("started", "settled")
    ml.observers.add(log)
    context.device_timeline.resume()
    await promise
    assert log.seen == ["started write_buffer", "started read_buffer", "settled read_buffer"]
    assert [operation.number for operation in log.given[:2]] == [1, 2]


async def test_a_promise_is_settled_at_once_by_destroy(ml, context):
    buffer = await zeroed(context, [1])
    context.device_timeline.pause()
    log = Log("called", "enqueued", "settled")
    ml.observers.add(log)
    promise = context.read_buffer(buffer)
    buffer.destroy()
    expected = ["read_buffer()", "enqueued read_buffer", "destroy()", "settled read_buffer", "enqueued release"]
    assert [seen.removeprefix("called ") for seen in log.seen] == expected
    context.device_timeline.resume()
    with pytest.raises(InvalidStateError) as raised:
        await promise
    assert str(log.of("settled read_buffer")) == str(raised.value)


async def test_what_is_left_when_a_context_is_lost_is_dropped(ml, context, log):
    context.device_timeline.pause()
    promise = context.create_buffer(**F32)
    context.destroy()
    context.device_timeline.resume()
    await context.device_timeline.wait_ended()
    assert promise.state == "rejected"
    assert log.seen.index("settled create_buffer") < log.seen.index(f"lost {context.backend.name}")
    assert "started create_buffer" not in log.seen
    why = "the context is lost: destroy() was called on the context"
    assert log.of("dropped create_buffer") == why


async def test_a_failed_step_has_its_error_with_the_next_read(ml, context, device, log):
    graph, x, y = await build_add_one(context, [1]), await filled(context, [1]), await zeroed(context, [1])
    device.failing["dispatch"] = RuntimeError("kernel panic")
    context.dispatch(graph, {"x": x}, {"y": y})
    with pytest.raises(UnknownError, match="kernel panic"):
        await context.read_buffer(y)
    assert log.of("finished dispatch") is None
    assert "kernel panic" in str(log.of("finished read_buffer"))
    assert "kernel panic" in str(log.of("settled read_buffer"))


async def test_an_observer_receives_refused_calls(ml, context):
    log = Log("called", "refused")
    buffer = await context.create_buffer(**F32, label="weights")
    ml.observers.add(log)
    with pytest.raises(TypeError) as raised:
        context.write_buffer(buffer, ONES)
    assert log.seen == ["called write_buffer()", "refused write_buffer"]
    refusal = log.of("refused write_buffer")
    assert refusal.error is raised.value
    assert refusal.context.backend == context.backend.name
    assert [handle.label for handle in refusal.handles] == ["weights"]


async def test_the_release_of_a_collected_buffer_says_so(ml, context):
    class Releases(Observer):
        def enqueued(self, context, operation):
            if operation.kind == "release":
                seen.append(operation.is_collected)

    seen = []
    ml.observers.add(Releases())
    await zeroed(context, [1])  # dropped at once
    await trio.testing.wait_all_tasks_blocked()
    (await zeroed(context, [1])).destroy()
    assert seen == [True, False]


@pytest.mark.parametrize(
    "hook", [hook for hook in HOOKS if hook not in {"opened", "refused", "kernels", "dropped", "lost"}]
)
async def test_an_observer_that_raises_is_removed_and_the_timelines_go_on(ml, numpy_context, caplog, hook):
    def fail(*_arguments):
        calls.append(hook)
        raise ZeroDivisionError("a defect of the observer")

    calls, log = [], Log("enqueued", "finished")
    faulty = type("Faulty", (), {hook: fail})()
    ml.observers.add(faulty)
    ml.observers.add(log)
    with caplog.at_level(logging.WARNING, logger="webnn_py.observers"):
        for _ in range(2):
            buffer = await filled(numpy_context, [1])
            assert (await numpy_context.read_buffer(buffer)).tolist() == [1]
            buffer.destroy()
            await numpy_context.drain()
    assert calls == [hook]
    (record,) = caplog.records
    assert f"{hook}() of the observer" in record.message
    assert record.exc_info[0] is ZeroDivisionError
    assert len(log.seen) == 16, "others receive all events"
    with pytest.raises(KeyError):
        ml.observers.remove(faulty)


async def test_an_observer_is_added_once(ml):
    log = Log()
    ml.observers.add(log)
    with pytest.raises(ValueError, match="was added before"):
        ml.observers.add(log)
    ml.observers.remove(log)
    with pytest.raises(KeyError):
        ml.observers.remove(log)


async def test_an_observer_may_remove_itself_when_it_is_called(ml, context):
    class Once(Observer):
        def enqueued(self, context, operation):
            seen.append(operation.kind)
            ml.observers.remove(self)

    seen = []
    ml.observers.add(Once())
    await filled(context, [1])
    assert seen == ["create_buffer"]


async def test_what_was_observed_is_not_kept_alive(ml, context):
    log = Log("opened")
    ml.observers.add(log)
    buffer = await filled(context, [1])
    await context.read_buffer(buffer)
    ml.observers.remove(log)
    gone = weakref.ref(buffer)
    buffer.destroy()
    await context.drain()
    del buffer
    assert gone() is None


async def test_observers_of_one_block_see_nothing_of_another(ml, log):
    async with webnn_py.open_ml() as other:
        context = await other.create_context(backend="numpy")
        await filled(context, [1])
    assert log.seen == []


async def test_results_are_the_same_while_observed(ml, context, log):
    graph, x, y = await build_add_one(context, [2]), await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"x": x}, {"y": y})
    assert np.array_equal(await context.read_buffer(y), [2, 3])
