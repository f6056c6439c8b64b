"""Instruments receive the events of the timelines, and one that raises is removed."""

import logging

import pytest

from spec_tests.support.buffers import filled, zeroed
from webnn_py.tracing import Instrument


class Counts:
    """An instrument with two of the methods."""

    def __init__(self):
        self.seen = []

    def enqueued(self, operation):
        self.seen.append(("enqueued", operation.kind, operation.outcome))

    def finished(self, operation, why):
        self.seen.append(("finished", operation.kind, why))


async def test_an_instrument_has_the_methods_that_it_wants(ml, context):
    counts = Counts()
    ml.add_instrument(counts)
    buffer = await zeroed(context, [1])
    ml.remove_instrument(counts)
    buffer.destroy()
    await context.drain()
    assert counts.seen == [("enqueued", "create_buffer", None), ("finished", "create_buffer", None)]


async def test_the_base_class_may_be_derived_from(ml, numpy_context):
    class Losses(Instrument):
        def __init__(self):
            self.why = []

        def lost(self, context, why):
            self.why.append((context.backend, why))

    losses = Losses()
    ml.add_instrument(losses)
    numpy_context.destroy()
    assert losses.why == [("numpy", "destroy() was called on the context")]
    assert ml._instruments.methods["started"] == ()


@pytest.mark.parametrize("hook", ["enqueued", "started", "finished", "released", "task_started", "settled"])
async def test_an_instrument_that_raises_is_removed_and_the_timelines_go_on(ml, numpy_context, caplog, hook):
    def fail(*_arguments):
        calls.append(hook)
        raise ZeroDivisionError("a defect of the instrument")

    calls, counts = [], Counts()
    instrument = type("Faulty", (), {hook: fail})()
    ml.add_instrument(instrument)
    ml.add_instrument(counts)
    with caplog.at_level(logging.WARNING, logger="webnn_py.instruments"):
        for _ in range(2):
            (await filled(numpy_context, [1])).destroy()
            await numpy_context.drain()
    assert calls == [hook]
    (record,) = caplog.records
    assert f"{hook}() of the instrument" in record.message
    assert record.exc_info[0] is ZeroDivisionError
    assert len(counts.seen) == 12, "others receive all events"
    with pytest.raises(KeyError):
        ml.remove_instrument(instrument)


async def test_an_instrument_is_added_once(ml):
    counts = Counts()
    ml.add_instrument(counts)
    with pytest.raises(ValueError, match="was added before"):
        ml.add_instrument(counts)
    ml.remove_instrument(counts)
    with pytest.raises(KeyError):
        ml.remove_instrument(counts)


async def test_timelines_are_watched_only_while_there_are_instruments(ml, context):
    counts = Counts()
    for watched in (False, True, False):
        if watched:
            ml.add_instrument(counts)
        elif counts.seen:
            ml.remove_instrument(counts)
        timelines = (context.device_timeline, ml.script_timeline, ml.script_timeline.trio_run)
        assert [timeline.watch is not None for timeline in timelines] == [watched] * 3
        await zeroed(context, [1])
    assert context._device.watch_kernels is None
