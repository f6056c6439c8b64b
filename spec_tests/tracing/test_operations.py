"""Operations in a trace have the properties of their calls, and hold no buffers and no data."""

import gc
import weakref
from functools import partial

import attrs
import numpy as np
import pytest
import trio

import webnn_py
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.trace_format import check_document, first, of_phase
from webnn_py import tracing
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.devices.wgpu import interop
from webnn_py.saved_graphs import SavedGraphs

ONE = np.ones(1, np.float32)
F32 = {"data_type": "float32", "shape": [1]}


async def test_a_trace_holds_neither_data_nor_buffers(ml, context):
    x = await filled(context, [1])

    buffer = await zeroed(context, [4])
    gone = weakref.ref(buffer)
    with tracing.trace(ml) as trace:
        await context.read_buffer(buffer)
        context.write_buffer(x, ONE)
        context.device_timeline.pause()
        context.read_buffer(buffer)
    with tracing.trace(ml) as another:  # which finds that read there
        pass
    context.device_timeline.resume()
    await context.drain()
    buffer.destroy()
    del buffer
    gc.collect()
    assert gone() is None
    assert len(trace.events) > len(another.events) == 0


async def test_every_kind_of_operation_names_its_buffers_and_graph(ml, options, tmp_path):
    saved = SavedGraphs(tmp_path)
    async with webnn_py.open_ml() as ml:  # noqa: PLR1704 - with a folder
        context = await ml.create_context(**options)
        with tracing.trace(ml) as trace:
            x, y = await filled(context, [1]), await zeroed(context, [1])
            constant = await context.create_constant_buffer(ONE, **F32)
            builder = webnn_py.MLGraphBuilder(context)
            operand = builder.input("x", **F32)
            graph = await builder.build({"y": builder.add(operand, builder.constant(constant))}, keep_source=True)
            await saved.save("a", graph)
            loaded = await saved.load(context, "a")
            clear_buffer(context, x)
            copy_buffer(context, x, y)
            context.dispatch(loaded, {"x": x}, {"y": y})
            for thing in (x, y, constant, graph, loaded):
                thing.destroy()
            await context.drain()
    touched = {
        event.kind: (len(event.operation.reads), len(event.operation.writes), event.operation.graph is not None)
        for event in trace.events
        if event.what == "finished" and event.kind != "release"
    }
    assert touched == {
        "create_buffer": (0, 1, False),
        "write_buffer": (0, 1, False),
        "create_constant_buffer": (0, 1, False),
        "build": (0, 0, True),
        "SavedGraphs.save": (0, 0, True),
        "SavedGraphs.load": (0, 0, True),
        "clear_buffer": (0, 1, False),
        "copy_buffer": (1, 1, False),
        "dispatch": (1, 1, True),
    }
    assert sum(event.what == "released" for event in trace.events) == 5
    check_document(trace.document())


async def test_an_export_reads_a_buffer_and_its_return_writes_it(ml, context):
    with tracing.trace(ml) as trace:
        x = await interop.create_exported_elsewhere(
            context, **F32, readable=True, writable=False, usage=interop.DEFAULT_USAGE
        )
        assert await interop.begin_copy(context, x) == 0
        interop.deliver(interop.end_copy(x), ONE)
        assert await context.read_buffer(x) == 1
    found = {
        event.kind: (len(event.operation.reads), len(event.operation.writes))
        for event in trace.events
        if event.what == "finished"
    }
    exported = {"create_exportable_buffer": (0, 1), "export_to_gpu": (1, 0), "return_from_gpu": (0, 1)}
    assert found == exported | {"read_buffer": (1, 0)}


@pytest.mark.parametrize("end", ["drained", "destroyed"])
async def test_the_release_of_a_collected_buffer_has_no_line_of_a_program(ml, context, end):
    with tracing.trace(ml) as trace:
        await zeroed(context, [1])  # dropped at once
        if end == "drained":
            await trio.testing.wait_all_tasks_blocked()
            await context.drain()
        else:
            context.destroy()
    release = first(trace, "enqueued", "release").operation
    assert release.was_collected
    assert release.source is None
    calls = of_phase(check_document(trace.document()), "X", "call")
    assert [call["name"] for call in calls] == ["create_buffer()", "garbage collection"]


async def test_events_are_records_that_can_be_read(ml, context):
    with tracing.trace(ml) as trace:
        await build_add_number(context, 1, [1])
    event = first(trace, "finished", "build")
    assert str(event).endswith(f"finished build {event.operation.number}")
    assert repr(event.operation) == f"<Operation {event.operation.number} build of context {event.context.number}>"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.why = "no"
    assert repr(trace) == f"<Trace ended, {len(trace.events)} events>"
    assert partial(trace.document)()["displayTimeUnit"] == "ms"


async def test_a_trace_holds_nothing_of_operations_that_run_when_it_ends(ml, context, device):
    buffer = await zeroed(context, [4])
    gone = weakref.ref(buffer)
    finish = device.waiting["read"] = trio.Event()
    with tracing.trace(ml) as trace:
        promise = context.read_buffer(buffer)
        await device.quiet()
    finish.set()
    await promise
    buffer.destroy()
    await context.drain()
    del buffer, promise
    gc.collect()
    assert gone() is None
    assert [event.what for event in trace.events] == ["enqueued", "started"]
