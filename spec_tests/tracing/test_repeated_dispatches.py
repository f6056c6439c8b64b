"""Repeated dispatches share their buffers in a trace, and each has its own line."""

import gc
from inspect import currentframe

import pytest

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_one
from webnn_py import tracing
from webnn_py.core.unreported_errors import is_users


@pytest.fixture
async def program(numpy_context):
    """Return a graph, its input, its output and a second output."""
    graph = await build_add_one(numpy_context, [1])
    return graph, await filled(numpy_context, [1]), await zeroed(numpy_context, [1]), await zeroed(numpy_context, [1])


def dispatches(trace):
    return [event.operation for event in trace.events if event.what == "enqueued" and event.kind == "dispatch"]


async def test_each_dispatch_has_the_line_and_the_buffers_of_its_own_call(ml, numpy_context, program):
    graph, x, y, other = program
    with tracing.trace(ml) as trace:
        begin = currentframe().f_lineno
        numpy_context.dispatch(graph, {"x": x}, {"y": y})
        for output in (y, y, other, y):
            numpy_context.dispatch(graph, {"x": x}, {"y": output})
        numpy_context.dispatch(graph, {"x": x}, {"y": y})
        await numpy_context.drain()
    found = dispatches(trace)
    assert [operation.source.line - begin for operation in found] == [1, 3, 3, 3, 3, 4]
    numbers = [operation.writes for operation in found]
    assert numbers[0] == numbers[1] == numbers[2] == numbers[4] == numbers[5] != numbers[3]
    assert {operation.reads for operation in found} == {found[0].reads}
    assert {operation.graph for operation in found} == {found[0].graph}


async def test_calls_that_the_library_makes_have_the_lines_that_asked_it_to(ml, numpy_context, program, monkeypatch):
    """The library dispatches at one line of its own for many lines of users."""
    graph, x, y, _ = program
    made = compile("def through(dispatch, *given):\n    dispatch(*given)\n", gc.__name__, "exec")
    names = {}
    exec(made, names)  # noqa: S102 - a function whose file counts as the library's
    monkeypatch.setitem(is_users, gc.__name__, False)
    with tracing.trace(ml) as trace:
        begin = currentframe().f_lineno
        names["through"](numpy_context.dispatch, graph, {"x": x}, {"y": y})
        names["through"](numpy_context.dispatch, graph, {"x": x}, {"y": y})
        await numpy_context.drain()
    assert [operation.source.line - begin for operation in dispatches(trace)] == [1, 2]


async def test_repeated_dispatches_create_one_tracked_object_each(ml, numpy_context, program):
    graph, x, y, _ = program
    many = 200
    with tracing.trace(ml):
        counts = []
        for count in (1, many, many):
            for _ in range(count):
                numpy_context.dispatch(graph, {"x": x}, {"y": y})
            await numpy_context.drain()
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < 1.2 * many


async def test_a_dispatch_enqueued_before_the_trace_names_its_buffers(ml, numpy_context, program):
    graph, x, y, _ = program
    numpy_context.device_timeline.pause()
    numpy_context.dispatch(graph, {"x": x}, {"y": y})
    numpy_context.write_buffer(x, bytes(4))
    with tracing.trace(ml) as trace:
        numpy_context.device_timeline.resume()
        await numpy_context.drain()
    dispatch, write = [event.operation for event in trace.events if event.what == "started"]
    assert (dispatch.kind, dispatch.source, len(dispatch.reads), len(dispatch.writes)) == ("dispatch", None, 1, 1)
    assert (dispatch.reads, write.writes) == (write.writes, dispatch.reads)
