"""A trace has the method, reason, line and arguments of refused calls."""

import pytest
import trio

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_one
from spec_tests.support.scene import F32, ONES
from spec_tests.support.trace_format import check_document, of_phase
from webnn_py import MLGraphBuilder, tracing
from webnn_py.buffer_copies import clear_buffer, copy_buffer
from webnn_py.devices.wgpu import interop


class Scene:
    """A context with two destroyed buffers, one of them with a label, a graph, and a builder that has built."""

    @classmethod
    async def set(cls, context):
        self = cls()
        self.context, self.graph = context, await build_add_one(context, [2])
        self.buffer = await context.create_buffer(**F32, readable=True, writable=True, label="weights")
        self.other = await filled(context, [1, 2])
        self.constant = await constant(context, [1, 2])
        self.builder, self.finished = MLGraphBuilder(context), MLGraphBuilder(context)
        self.input = self.finished.input("x", **F32)
        self.graph_of_finished = await self.finished.build({"y": self.finished.relu(self.input)})
        self.buffer.destroy()
        await context.drain()
        return self


RAISE = {
    "write_buffer": lambda s: s.context.write_buffer(s.buffer, ONES),
    "dispatch": lambda s: s.context.dispatch(s.graph, {"x": s.buffer}, {"y": s.other}),
    "copy_buffer": lambda s: copy_buffer(s.context, s.buffer, s.other),
    "clear_buffer": lambda s: clear_buffer(s.context, s.buffer),
    "input": lambda s: s.builder.input("", **F32),
    "constant": lambda s: s.builder.constant(s.other),
    "relu": lambda s: s.finished.relu(s.input, label="rectified"),
}
REJECT = {
    "create_buffer": lambda s: s.context.create_buffer(data_type="float32", shape=[0]),
    "create_constant_buffer": lambda s: s.context.create_constant_buffer(b"", **F32),
    "read_buffer": lambda s: s.context.read_buffer(s.buffer),
    "build": lambda s: s.builder.build({}),
    "export_to_gpu": lambda s: interop.export_to_gpu(s.context, s.buffer),
    "create_context": lambda s: s.context._ml.create_context(power_preference="most"),
}


async def call(scene, method):
    """Make the call, await what it returns, and return the error."""
    try:
        if method in RAISE:
            RAISE[method](scene)
        else:
            await REJECT[method](scene)
    except Exception as error:  # noqa: BLE001 - whichever is told
        return error
    raise AssertionError(f"{method}() was not refused")


@pytest.mark.parametrize("method", [*RAISE, *REJECT])
async def test_a_refused_call_is_in_the_trace(ml, context, method):
    scene = await Scene.set(context)
    with tracing.trace(ml) as trace:
        error = await call(scene, method)
    (event,) = trace.events
    assert (event.what, event.kind, event.operation) == ("refused", method, None)
    assert event.why == f"{type(error).__name__}: {error}"
    assert event.refusal.source.file == __file__
    assert event.refusal.call_ns >= 0
    assert (event.context is None) == (method == "create_context")
    (drawn,) = of_phase(check_document(trace.document()), "X", "refusal")
    assert drawn["name"] == f"{method}()"
    assert (drawn["args"]["outcome"], drawn["args"]["why"]) == ("refused", event.why)
    assert "test_refused_calls.py:" in drawn["args"]["source"]


async def test_a_refused_call_has_its_buffers_its_graph_and_their_labels(ml, context):
    scene = await Scene.set(context)
    with tracing.trace(ml) as trace:
        for method in ("dispatch", "relu", "input"):
            await call(scene, method)
    dispatch, relu, named = (event.refusal for event in trace.events)
    assert (dispatch.labels, len(dispatch.buffers), dispatch.graph) == (("weights",), 2, scene.graph.handle.number)
    assert (relu.labels, relu.buffers, relu.graph) == (("rectified",), (), None)
    assert named.labels == ()
    drawn = of_phase(check_document(trace.document()), "X", "refusal")
    assert drawn[0]["args"]["labels"] == ["weights"]
    assert drawn[0]["args"]["buffers"] == list(dispatch.buffers)


async def test_use_after_the_context_was_destroyed_is_in_the_trace(ml, context):
    buffer = await zeroed(context, [2])
    with tracing.trace(ml) as trace:
        context.destroy()
        with pytest.raises(TypeError):
            context.write_buffer(buffer, ONES)
        assert context.create_buffer(**F32).outcome is not None, "so that it does not warn"
        await context.drain()
    refused = [event for event in trace.events if event.what == "refused"]
    assert [event.kind for event in refused] == ["write_buffer", "create_buffer"]
    assert all("destroy() was called on the context" in event.why for event in refused)


async def test_a_call_that_is_refused_in_another_thread_is_not_traced(ml, context):
    builder = MLGraphBuilder(context)
    with tracing.trace(ml) as trace:

        def draw():
            with pytest.raises(TypeError):
                builder.input("", **F32)

        await trio.to_thread.run_sync(draw)
    assert trace.events == ()
