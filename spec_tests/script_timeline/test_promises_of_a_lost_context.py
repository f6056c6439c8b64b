"""Every promise of a context that is pending is rejected by the call, or the task, that loses the context."""

import inspect

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_add_one
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.scene import F32, ONES
from spec_tests.support.watched_device import WatchedDevice
from webnn_py import InvalidStateError, MLContext, MLGraph, MLGraphBuilder, open_ml, profiling, tracing
from webnn_py.checking import check_finite
from webnn_py.core.device.backend import TimesKernels
from webnn_py.devices.lending import Lends
from webnn_py.devices.wgpu import interop
from webnn_py.saved_graphs import SavedGraphs

FEEDS = {"x": ONES}
OUT = np.full(2, 9, np.float32)


def finite_check(context, _graph, _buffer):
    builder = MLGraphBuilder(context)
    x = builder.input("x", **F32)
    return check_finite({"y": builder.add(x, x)}, FEEDS)


ASKED = {
    "create_buffer": lambda context, _graph, _buffer: context.create_buffer(**F32),
    "create_constant_buffer": lambda context, _graph, _buffer: context.create_constant_buffer(ONES, **F32),
    "create_exportable_buffer": lambda context, _graph, _buffer: interop.create_exportable_buffer(
        context, context.device.backend.device, **F32
    ),
    "read_buffer": lambda context, _graph, buffer: context.read_buffer(buffer),
    "read_buffer into out": lambda context, _graph, buffer: context.read_buffer(buffer, out=OUT),
    "export_to_gpu": lambda context, _graph, buffer: interop.export_to_gpu(context, buffer),
    "build": lambda context, _graph, _buffer: build_add_number(context, 1, [2]),
    "check_finite": finite_check,
    "profile": lambda _context, graph, _buffer: profiling.profile(graph, FEEDS, repeat=1),
    "SavedGraphs.save": lambda _context, graph, _buffer: SavedGraphs("graphs").save("other", graph),
    "SavedGraphs.load": lambda context, _graph, _buffer: SavedGraphs("graphs").load(context, "kept"),
    "SavedGraphs.keys": lambda context, _graph, _buffer: SavedGraphs("graphs").keys(context),
}
"""Calls whose promises wait for the device timeline."""
TOOLS = {
    *("create_exportable_buffer", "export_to_gpu", "check_finite", "profile"),
    *("SavedGraphs.save", "SavedGraphs.load", "SavedGraphs.keys"),
}
"""Those of them that enqueue by ``context.enqueue()`` or ``add_graph()``."""
OTHERS = {"add_graph", "enqueue"}
"""Methods that tools call."""

NEEDS = {"create_exportable_buffer": Lends, "export_to_gpu": Lends, "profile": TimesKernels}
STATES = ["paused", "stepped", "busy"]


@pytest.fixture
def options(backend):
    """Return options for a device of its own, which a test may lose."""
    return {"backend": backend}


@pytest.fixture
async def context(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with open_ml(experimental={"webgpu-interop"}) as ml:
        yield await ml.create_context(**options)


@pytest.fixture
async def things(context, device):
    """Return a graph, which is saved, and two buffers."""
    graph = await build_add_one(context, [2], keep_source=True)
    await SavedGraphs("graphs").save("kept", graph)
    buffers = await filled(context, [1, 2]), await zeroed(context, [2])
    await context.drain()
    device.log.clear()
    return graph, *buffers


@pytest.fixture
def device(context):
    return WatchedDevice(context)


async def hold(context, device, state, busy_with):
    """Keep the device timeline from coming to what is enqueued from now on."""
    if state == "busy":
        device.waiting["write"] = trio.Event()
        context.write_buffer(busy_with, ONES)
        await device.quiet()
        assert device.log == ["write"]
        return
    context.device_timeline.pause()
    context.write_buffer(busy_with, ONES)
    context.write_buffer(busy_with, ONES)
    if state == "stepped":
        assert await context.device_timeline.step() == 1


async def lose(context, device, way):
    if way == "destroy()":
        context.destroy()
    else:
        await device.lose()
        await context.lost


def test_every_method_that_returns_a_promise_is_listed():
    given = {
        name
        for of in (MLContext, MLGraph, MLGraphBuilder)
        for name, method in inspect.getmembers(of, inspect.isfunction)
        if not name.startswith("_") and "MLPromise" in str(inspect.signature(method).return_annotation)
    }
    asked = {name.split()[0] for name in ASKED} - TOOLS
    aliases = {"create_tensor", "create_constant_tensor", "read_tensor"}
    assert given == asked | aliases | OTHERS


@pytest.mark.parametrize("way", ["destroy()", "the device"])
@pytest.mark.parametrize("state", STATES)
async def test_every_promise_is_rejected_while_the_device_timeline_cannot_go_on(context, device, things, state, way):
    graph, *buffers = things
    await hold(context, device, state, buffers[1])
    promises = {
        name: ask(context, graph, buffers[0])
        for name, ask in ASKED.items()
        if isinstance(device.backend, NEEDS.get(name, object))
    }
    deletion = SavedGraphs("graphs").delete(context, "kept")
    waited = {}

    async def wait(name):
        try:
            await promises[name]
        except InvalidStateError as error:
            waited[name] = str(error)

    assert {promise.state for promise in promises.values()} == {"pending"}
    async with trio.open_nursery() as nursery:
        for name in promises:
            nursery.start_soon(wait, name)
        await device.quiet()
        await lose(context, device, way)

        assert {name: promise.state for name, promise in promises.items()} == dict.fromkeys(promises, "rejected")
    assert waited.keys() == promises.keys()
    for name, words in waited.items():
        reason = device.reason if way == "the device" else r"destroy() was called on the context"
        assert words.startswith(f"{name.split()[0]}(): the context is lost: {reason}")

    assert deletion.state == "pending"
    device.let_go()
    context.device_timeline.resume()
    assert await deletion is None
    await context.drain()
    assert not {"allocate", "read", "compile", "dispatch"} & {*device.log}, "what had not begun is dropped"
    assert OUT.tolist() == [9, 9]
    assert_nothing_lives(context)


@pytest.mark.parametrize("way", ["destroy()", "the device"])
async def test_a_trace_names_the_call_that_rejected_a_promise(options, way):
    async with open_ml() as ml:
        context = await ml.create_context(**options)
        device = WatchedDevice(context)
        buffer = await zeroed(context, [2])
        with tracing.trace(ml) as trace:
            context.device_timeline.pause()
            promises = [context.create_buffer(**F32), context.read_buffer(buffer)]
            await lose(context, device, way)
            assert [promise.state for promise in promises] == ["rejected", "rejected"]
            context.device_timeline.resume()
            await context.drain()
        causes = {event.kind: event.cause for event in trace.events if event.what == "rejected"}
        expected = "destroy()" if way == "destroy()" else None
        assert causes == {"create_buffer": expected, "read_buffer": expected}
