"""A trace has every event of the timelines, in order, with its causes."""

import json
import sys
from inspect import getsource

import numpy as np
import pytest

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.support.trace_format import check_document, first, of_phase, told
from webnn_py import InvalidStateError, UnknownError, tracing

ONE = np.ones(1, np.float32)
F32 = {"data_type": "float32", "shape": [1]}


async def test_a_buffer_destroyed_in_flight_is_traced(ml, context, program):
    graph, x, y = program
    with tracing.trace(ml) as trace:
        context.device_timeline.pause()
        ml.script_timeline.pause()
        context.write_buffer(x, ONE)
        context.dispatch(graph, {"x": x}, {"y": y})
        promise = context.read_buffer(y)  # this line
        y.destroy()  # and this one
        for _ in range(4):  # one by one, since some devices begin several
            assert await context.device_timeline.step() == 1
        await ml.script_timeline.step(9)
        ml.script_timeline.resume()
        context.device_timeline.resume()

    assert told(trace) == [
        "enqueued write_buffer",
        "enqueued dispatch",
        "enqueued read_buffer",
        "rejected read_buffer",
        "enqueued release",
        "started write_buffer",
        "finished write_buffer",
        "started dispatch",
        "finished dispatch",
        "started read_buffer",
        "finished read_buffer",
        "started release",
        "finished release",
        "released release",
        "task_started read_buffer",
        "task_finished read_buffer",
    ]
    write, dispatch, read, release = (
        first(trace, "enqueued", kind).operation for kind in ("write_buffer", "dispatch", "read_buffer", "release")
    )
    (number_x,), (number_y,) = write.writes, read.reads
    assert number_x != number_y
    assert [write.number, dispatch.number, read.number, release.number] == [*range(write.number, write.number + 4)]
    assert (dispatch.reads, dispatch.writes, release.writes) == ((number_x,), (number_y,), (number_y,))
    assert (write.byte_length, dispatch.byte_length) == (4, 8)
    assert {operation.outcome for operation in (write, dispatch, read, release)} == {"done"}

    rejected = first(trace, "rejected")
    assert rejected.operation is read
    assert (rejected.cause, rejected.caused_by) == ("destroy()", release.number)
    assert rejected.why.startswith("InvalidStateError: read_buffer(): destroy() was called on the buffer")
    lines = getsource(sys.modules[__name__]).splitlines()
    assert "# this line" in lines[read.source.line - 1]
    assert "# and this one" in lines[release.source.line - 1]
    assert (read.source.file, read.source.function) == (__file__, "test_a_buffer_destroyed_in_flight_is_traced")
    with pytest.raises(InvalidStateError):
        await promise
    events = check_document(trace.document())
    (rejection,) = of_phase(events, "i", "rejection")
    assert rejection["name"] == "reject read_buffer()"
    calls = {event["args"]["operation"]: event["name"] for event in of_phase(events, "X", "call")}
    assert calls[rejection["args"]["cause"]] == "destroy()"
    (settled,) = of_phase(events, "X", "settlement")
    assert (settled["args"]["promise"], settled["args"]["before"]) == ("rejected", True)


async def test_a_whole_life_is_a_valid_document(ml, options, tmp_path):
    with tracing.trace(ml) as trace:
        context = await ml.create_context(**options)
        graph = await build_add_one(context, [1])
        x, y = await filled(context, [1]), await zeroed(context, [1])
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.read_buffer(y)
        for thing in (x, y, graph):
            thing.destroy()
        await context.drain()
    trace.save(tmp_path / "life.json")

    document = json.loads((tmp_path / "life.json").read_text(encoding="utf-8"))
    assert document["otherData"]["events"] == len(trace.events)
    events = check_document(document)
    calls = ["build()", "create_buffer()", "write_buffer()", "create_buffer()", "dispatch()", "read_buffer()"]
    assert [event["name"] for event in of_phase(events, "X", "call")] == [*calls, *["destroy()"] * 3]
    assert {event["args"]["outcome"] for event in of_phase(events, "X", "operation")} == {"done"}
    settled = of_phase(events, "X", "settlement")
    assert [event["args"]["promise"] for event in settled] == ["fulfilled"] * 4
    of_x = first(trace, "enqueued", "write_buffer").operation.writes[0]
    marks = [event["name"] for event in of_phase(events, "n", "buffer") if event["id"] == of_x]
    assert marks == ["allocated", "written", "read", "destroyed", "released"]
    begin = next(event for event in of_phase(events, "b", "buffer") if event["id"] == of_x)
    assert begin["name"] == f"buffer {of_x} float32 [1]"
    of_graph = [event["name"] for event in of_phase(events, "n", "graph")]
    assert of_graph == ["built", "dispatched", "destroyed", "released"]
    assert len(of_phase(events, "s")) == len(of_phase(events, "X", "operation"))
    sources = {event["args"]["source"] for event in of_phase(events, "X", "call")}
    assert any("test_trace.py:" in source for source in sources)


async def test_operations_are_dropped_when_the_context_is_lost(ml, context, program):
    graph, x, y = program
    with tracing.trace(ml) as trace:
        context.device_timeline.pause()
        context.dispatch(graph, {"x": x}, {"y": y})
        promise = context.read_buffer(y)
        context.create_buffer(**F32)
        context.destroy()
        context.device_timeline.resume()
        await context.drain()
    assert promise.state == "rejected"
    dropped = [event for event in trace.events if event.what == "dropped"]
    assert [event.kind for event in dropped] == ["dispatch", "read_buffer", "create_buffer"]
    lost = "the context is lost: destroy() was called on the context"
    assert {event.why for event in dropped} == {lost}
    assert first(trace, "lost").why == "destroy() was called on the context"
    rejected = first(trace, "rejected", "create_buffer")
    assert (rejected.cause, rejected.why) == ("destroy()", f"InvalidStateError: create_buffer(): {lost}")
    events = check_document(trace.document())
    assert sum(event["args"]["outcome"] == "dropped" for event in of_phase(events, "X", "operation")) == 3
    (lost,) = of_phase(events, "i", "context")
    assert lost["name"] == "lost: destroy() was called on the context"
    assert lost["args"] == {"destroyed": True}


async def test_a_failed_step_and_its_consequences_have_their_reason(ml, context, device, program):
    graph, x, y = program
    device.failing["dispatch"] = RuntimeError("kernel panic")
    with tracing.trace(ml) as trace:
        context.dispatch(graph, {"x": x}, {"y": y})
        with pytest.raises(UnknownError):
            await context.read_buffer(y)
        context.write_buffer(x, ONE)
        await context.drain()
    finished = {event.kind: event for event in trace.events if event.what == "finished"}
    assert finished["dispatch"].why == "dispatch() failed: kernel panic"
    assert "kernel panic" in finished["read_buffer"].why
    assert finished["write_buffer"].why is None
    assert "kernel panic" in first(trace, "rejected", "read_buffer").why
    outcomes = [event["args"]["outcome"] for event in of_phase(check_document(trace.document()), "X", "operation")]
    assert outcomes == ["failed", "failed", "done"]


async def test_operations_in_flight_when_a_trace_begins_are_in_it(ml, context, program):
    graph, x, y = program
    context.device_timeline.pause()
    ml.script_timeline.pause()
    context.write_buffer(x, ONE)
    context.dispatch(graph, {"x": x}, {"y": y})
    context.read_buffer(y)
    await context.device_timeline.step()
    with tracing.trace(ml) as trace:
        await context.device_timeline.step(2)
        ml.script_timeline.resume()
        await context.drain()
    context.device_timeline.resume()

    assert told(trace) == [
        "started dispatch",
        "finished dispatch",
        "started read_buffer",
        "finished read_buffer",
        "task_started read_buffer",
        "settled read_buffer",
        "task_finished read_buffer",
    ]
    dispatch = first(trace, "started", "dispatch").operation
    assert (dispatch.source, dispatch.began_ns, dispatch.enqueued_ns) == (None, None, None)
    assert (len(dispatch.reads), len(dispatch.writes)) == (1, 1)
    events = check_document(trace.document())
    assert {event["args"].get("before") for event in of_phase(events, "b")} == {True}
    assert len(of_phase(events, "b", "buffer")) == 2


async def test_operations_in_flight_when_a_trace_ends_are_drawn_to_its_end(ml, context, program):
    graph, x, y = program
    with tracing.trace(ml) as trace:
        context.device_timeline.pause()
        context.dispatch(graph, {"x": x}, {"y": y})
        promise = context.read_buffer(y)
        await context.device_timeline.step()
    before = told(trace)
    context.device_timeline.resume()
    assert (await promise).tolist() == [1]
    assert (
        told(trace) == before == ["enqueued dispatch", "enqueued read_buffer", "started dispatch", "finished dispatch"]
    )
    events = check_document(trace.document())
    assert len(of_phase(events, "X", "operation")) == 1
    assert len(of_phase(events, "s")) == 1, "what has not run has no arrow"


async def test_contexts_have_lanes_of_their_own(ml, context, options, elsewhere):
    with tracing.trace(ml) as trace:
        other = await ml.create_context(**elsewhere)
        await filled(context, [1])
        await filled(other, [2])
        await other.drain()
    events = check_document(trace.document())
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    backend = context.backend.name
    assert names == ["script", f"context 1: {backend}", f"context 2: {other.backend.name}"]
    assert {event["pid"] for event in of_phase(events, "X", "operation")} == {1, 2}


async def test_an_exception_ends_a_trace(ml, context):
    with pytest.raises(ZeroDivisionError), tracing.trace(ml) as trace:  # noqa: PT012 - the block is what is tested
        await zeroed(context, [1])
        raise ZeroDivisionError
    count = len(trace.events)
    await zeroed(context, [1])
    assert len(trace.events) == count > 0


async def test_a_trace_may_outlive_the_api():
    import webnn_py  # noqa: PLC0415 - only here

    async with webnn_py.open_ml() as ml:
        trace = tracing.trace(ml).__enter__()
        context = await ml.create_context(backend="numpy")
        buffer = await zeroed(context, [1])
    trace.__exit__(None, None, None)
    del buffer
    assert told(trace)[-2:] == ["finished release", "released release"]
    events = check_document(trace.document())
    assert len(of_phase(events, "e", "buffer")) == 1


async def test_a_trace_keeps_at_most_a_given_number_of_events(ml, context, program):
    _graph, x, _y = program
    with tracing.trace(ml, most_events=10) as trace:
        for _ in range(20):
            context.write_buffer(x, ONE)
        await context.drain()
    assert len(trace.events) == 10
    assert trace.is_cut
    assert trace.events[-1].what == "finished"
    document = trace.document()
    assert document["otherData"]["cut"] == "only the latest 10 events were kept: see most_events of trace()"
    check_document(document)


async def test_a_trace_is_entered_once(ml):
    with tracing.trace(ml) as trace:
        pass
    with pytest.raises(RuntimeError, match="call trace\\(\\) again"), trace:
        pass
