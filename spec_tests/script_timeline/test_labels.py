"""Labels of contexts, buffers and graphs are shown in reprs, errors, statistics and traces."""

import numpy as np
import pytest

from spec_tests.support.drawing import build_add_one
from spec_tests.support.scene import F32, ONES
from spec_tests.support.trace_format import check_document, of_phase
from webnn_py import DestroyedBufferError, InvalidStateError, MLGraphBuilder, OperationError, UnknownError, tracing
from webnn_py.memory_by_label import memory_by_label


async def labelled(context, label="weights"):
    return await context.create_buffer(**F32, readable=True, writable=True, label=label)


@pytest.mark.parametrize("label", ["weights", "", "ü\n", "é" * 3])
async def test_a_buffer_keeps_the_label_that_it_was_given(context, label):
    buffers = [await labelled(context, label), await context.create_constant_buffer(ONES, **F32, label=label)]
    buffers.append(await context.create_tensor(**F32, label=label))
    assert [buffer.label for buffer in buffers] == [label] * 3
    buffers[0].destroy()
    assert buffers[0].label == label


async def test_a_graph_keeps_its_label(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", **F32)
    with pytest.raises(TypeError, match=r"build\(\): label is 3; it must be a string"):
        await builder.build({"y": builder.relu(x)}, label=3)
    graph = await builder.build({"y": builder.relu(x)}, label="classifier")
    assert graph.label == "classifier"
    assert repr(graph).startswith("<MLGraph 'classifier' 1 operator")


async def test_reprs_and_errors_show_the_label_of_a_buffer(context):
    buffer, other = await labelled(context), await context.create_buffer(data_type="int8", shape=[2], label="wide")
    assert repr(buffer) == "<MLBuffer 'weights' float32 [2] readable writable>"
    graph = await build_add_one(context, [2])
    with pytest.raises(TypeError, match=r"inputs\['x'\] is 'wide' int8 \[2\]; it must be float32"):
        context.dispatch(graph, {"x": other}, {"y": buffer})
    with pytest.raises(TypeError, match=r"write_buffer\(\): 'weights' "):
        context.write_buffer(buffer, b"")
    buffer.destroy()
    with pytest.raises(DestroyedBufferError, match="'weights'"):
        context.write_buffer(buffer, ONES)


async def test_a_trace_shows_the_label_of_a_buffer(ml, context):
    with tracing.trace(ml) as trace:
        buffer = await labelled(context)
        context.write_buffer(buffer, ONES)
        await context.drain()
    write = next(event.operation for event in trace.events if event.kind == "write_buffer")
    assert write.labels == ("weights",)
    events = check_document(trace.document())
    (begin,) = of_phase(events, "b", "buffer")
    assert begin["name"].endswith(" [weights] float32 [2]")
    call = next(event for event in of_phase(events, "X", "call") if event["name"] == "write_buffer()")
    assert call["args"]["labels"] == ["weights"]


def memory(context):
    """Return the buffers, graphs and bytes that live, by label; no read and no release may be pending."""
    statistics, by_label = context.statistics(), memory_by_label(context)
    assert sum(item.live_bytes for item in by_label) == statistics.live_bytes
    assert sum(item.live_buffers for item in by_label) == statistics.live_buffers
    assert [item.live_bytes for item in by_label] == sorted((item.live_bytes for item in by_label), reverse=True)
    return {item.label: (item.live_buffers, item.live_graphs, item.live_bytes) for item in by_label}


async def test_statistics_count_live_things_by_label(context):
    assert memory(context) == {}
    kept = [await labelled(context, label) for label in ("cache", "cache", "scores", "")]
    assert memory(context) == {"cache": (2, 0, 16), "scores": (1, 0, 8), "": (1, 0, 8)}
    assert [item.label for item in memory_by_label(context)] == ["cache", "", "scores"]
    await context.read_buffer(kept[0])
    kept[0].destroy()
    kept[2].destroy()
    await context.drain()
    assert memory(context) == {"cache": (1, 0, 8), "": (1, 0, 8)}


async def test_a_constant_buffer_that_a_graph_holds_is_counted_under_its_own_label(context):
    weights = await context.create_constant_buffer(np.ones(2000, np.float32), **{**F32, "shape": [2000]}, label="table")
    builder = MLGraphBuilder(context)
    x = builder.input("x", **{**F32, "shape": [2000]})
    graph = await builder.build({"y": builder.mul(x, builder.constant(weights))}, label="classifier")
    assert memory(context)["classifier"][:2] == (0, 1)
    weights.destroy()
    await context.drain()
    assert memory(context)["table"] == (0, 0, 8000)
    graph.destroy()
    await context.drain()
    assert memory(context) == {}


async def test_shared_constants_are_counted_under_the_label_of_the_first_graph(context):
    numbers = np.arange(4000, dtype=np.float32)
    graphs = []
    for label in ("one", "other"):
        builder = MLGraphBuilder(context)
        x = builder.input("x", **{**F32, "shape": [4000]})
        graphs.append(await builder.build({"y": builder.mul(x, builder.constant(numbers))}, label=label))
    assert {label: item[:2] for label, item in memory(context).items()} == {"one": (0, 1), "other": (0, 1)}
    assert memory(context)["one"][2] >= numbers.nbytes
    for graph in graphs:
        graph.destroy()
    await context.drain()
    assert memory(context) == {}


async def test_failed_builds_and_buffers_leave_no_entry(context, device):
    device.failing.update({step: MemoryError("none left") for step in ("compile", "allocate")})
    builder = MLGraphBuilder(context)
    with pytest.raises(OperationError):
        await builder.build({"y": builder.relu(builder.input("x", **F32))}, label="classifier")
    with pytest.raises(UnknownError):
        await labelled(context)
    await context.drain()
    assert memory(context) == {}


async def test_a_lost_context_has_no_entries_after_its_releases(context):
    await labelled(context)
    context.destroy()
    await context.device_timeline.wait_ended()
    assert memory(context) == {}


async def test_a_context_keeps_its_label_and_shows_it(ml, options):
    context, plain = await ml.create_context(**options, label="speech"), await ml.create_context(**options)
    assert (context.label, plain.label) == ("speech", "")
    assert repr(context).startswith("<MLContext 'speech' on ")
    assert repr(plain).startswith("<MLContext on ")
    context.destroy()
    assert context.label == "speech"


async def test_errors_name_a_lost_context_by_its_label(ml, options):
    context = await ml.create_context(**options, label="speech")
    buffer, builder = await labelled(context), MLGraphBuilder(context)
    pending = context.read_buffer(buffer)
    context.destroy()
    lost = r"the context \[speech\] is lost: destroy\(\) was called on the context"
    for error, call in (
        (InvalidStateError, lambda: pending),
        (InvalidStateError, lambda: labelled(context)),
        (InvalidStateError, lambda: builder.input("x", **F32)),
        (DestroyedBufferError, lambda: context.write_buffer(buffer, ONES)),
    ):
        with pytest.raises(error, match=lost):
            await call()


async def test_a_trace_names_contexts_by_their_labels(ml, options):
    with tracing.trace(ml) as trace:
        context = await ml.create_context(**options, label="speech")
        await labelled(context)
        context.device_timeline.pause()
        dropped = context.create_buffer(**F32)
        context.destroy()
        context.device_timeline.resume()
        await context.device_timeline.wait_ended()
    number = trace.events[0].context.number
    assert {event.context.label for event in trace.events if event.context is not None} == {"speech"}
    opened, create, *_ = (event for event in trace.events if event.context is not None and event.what != "settled")
    assert str(opened).endswith(f"opened  on context {number} [speech]")
    assert f"on context {number} [speech]" in str(create)
    assert repr(create.operation).endswith(f" create_buffer of context {number} [speech]>")
    with pytest.raises(InvalidStateError, match=r"the context \[speech\] is lost"):
        await dropped
    assert any("the context [speech] is lost" in (event.why or "") for event in trace.events if event.what == "dropped")
    (process,) = (
        event["args"]
        for event in check_document(trace.document())
        if event["ph"] == "M" and event["name"] == "process_name" and event["pid"] == number
    )
    assert process["name"] == f"context {number} [speech]: {context.backend.name}"
    assert process["label"] == "speech"
