"""A failure of the device that nothing reports is a warning at the line of the call that failed."""

import gc
import linecache
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number, build_sum_and_difference
from spec_tests.support.scene import F32, ONES
from spec_tests.support.watched_device import WatchedDevice, quiet
from webnn_py import MLGraphBuilder, UnknownError, checking, open_ml
from webnn_py.saved_graphs import SavedGraphs


@pytest.fixture
def heard():
    """Return the warnings about failures, each as its text and the line of the program that it points at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [
            (str(warning.message), linecache.getline(warning.filename, warning.lineno).strip())
            for warning in caught
            if warning.category is RuntimeWarning
        ]


async def settle(context):
    """Wait until nothing more happens, and collect garbage."""
    await context.drain()
    await quiet(context)
    gc.collect()


@pytest.fixture(autouse=True)
def _no_other_warnings():
    """Collect the garbage of other tests."""
    gc.collect()


# --- promises --------------------------------------------------------------------------------------------------------


UNHEARD = {
    "create_buffer": (
        "allocate",
        "UnknownError that was never awaited: create_buffer() failed on the device: cable cut",
        lambda context, _buffer, _builder, _x: context.create_buffer(**F32),
    ),
    "read_buffer": (
        "read",
        "UnknownError that was never awaited: read_buffer() failed on the device: cable cut",
        lambda context, buffer, _builder, _x: context.read_buffer(buffer, out=np.empty(2, np.float32)),
    ),
    "build": (
        "compile",
        "OperationError that was never awaited: build(): the graph cannot be compiled: cable cut",
        lambda _context, _buffer, builder, x: builder.build({"y": builder.add(x, x)}),
    ),
    "check_finite": (
        "compile",
        "UnknownError that was never awaited: check_finite() failed on the device: cable cut",
        lambda _context, _buffer, builder, x: checking.check_finite({"y": builder.add(x, x)}, {"x": ONES}),
    ),
}
NO_ROOM = MemoryError("no room")


@pytest.mark.parametrize("method", UNHEARD)
async def test_a_failed_call_that_nobody_awaits_warns_at_its_line(context, device, heard, method):
    buffer, builder = await filled(context, [1, 2]), MLGraphBuilder(context)
    x = builder.input("x", **F32)
    await context.drain()
    step, message, call = UNHEARD[method]
    device.failing[step] = OSError("cable cut")
    call(context, buffer, builder, x)
    await settle(context)
    code = call.__code__
    assert heard() == [(message, linecache.getline(code.co_filename, code.co_firstlineno).strip())]


async def test_the_warning_comes_when_the_promise_is_dropped_and_not_before(context, device, heard):
    device.failing["allocate"] = NO_ROOM
    promise = context.create_buffer(**F32)
    await settle(context)
    assert heard() == []
    del promise
    gc.collect()
    assert len(heard()) == 1


async def test_an_awaited_failure_does_not_warn(context, device, heard):
    device.failing["allocate"] = NO_ROOM
    promise = context.create_buffer(**F32)
    with pytest.raises(UnknownError):
        await promise
    device.failing["allocate"] = NO_ROOM
    late = context.create_buffer(**F32)
    await settle(context)
    with pytest.raises(UnknownError):
        await late
    del promise, late
    gc.collect()
    assert heard() == []


async def test_a_failure_with_a_callback_does_not_warn(context, device, heard):
    device.failing["allocate"] = NO_ROOM
    context.create_buffer(**F32).on_settled(lambda: None)
    await settle(context)
    assert heard() == []


async def test_a_failure_after_a_cancelled_await_warns(context, device, heard):
    device.waiting["allocate"], device.failing["allocate"] = trio.Event(), NO_ROOM
    ready, promise = device.waiting["allocate"], context.create_buffer(**F32)
    with trio.move_on_after(0):
        await promise
    ready.set()
    del promise
    await settle(context)
    ((message, _line),) = heard()
    assert message == "UnknownError that was never awaited: create_buffer() failed on the device: no room"


async def test_a_rejection_by_destroy_does_not_warn(context, heard):
    buffer = await filled(context, [1, 2])
    context.read_buffer(buffer)
    buffer.destroy()
    other = await filled(context, [1, 2])
    context.read_buffer(other)
    build_add_number(context, 1, [2])
    context.destroy()
    del buffer, other
    await settle(context)
    assert heard() == []


async def test_a_failure_before_a_loss_of_the_device_and_rejections_by_it_do_not_warn(ml, backend, heard):
    context = await ml.create_context(backend=backend)  # on no device of other tests: it will be lost
    device = WatchedDevice(context)
    buffer, unread = await filled(context, [1, 2]), await fail_a_write(context, device)
    context.device_timeline.pause()
    context.read_buffer(buffer)
    context.create_buffer(**F32)
    await device.lose()
    await context.lost
    context.device_timeline.resume()
    del unread
    await settle(context)
    assert heard() == []
    device.let_go()


REFUSED = {
    "create_buffer": ("InvalidStateError", lambda s: s.context.create_buffer(**F32)),
    "create_constant_buffer": ("InvalidStateError", lambda s: s.context.create_constant_buffer(ONES, **F32)),
    "read_buffer": ("TypeError", lambda s: s.context.read_buffer(None)),
    "build": ("InvalidStateError", lambda s: s.builder.build({})),
    "create_context": ("TypeError", lambda s: s.ml.create_context(backend="none")),
}


@pytest.mark.parametrize("method", REFUSED)
async def test_a_refused_call_that_nobody_awaits_warns(ml, context, heard, method):
    builder = MLGraphBuilder(context)
    context.destroy()
    error, call = REFUSED[method]
    call(SimpleNamespace(ml=ml, context=context, builder=builder))
    ((words, line),) = heard()
    assert words.startswith(f"{error} that was never awaited: {method}(): ")
    assert f".{method}(" in line


async def test_a_refused_call_that_is_awaited_does_not_warn(context, heard):
    for promise in (context.read_buffer(None), context.read_buffer(None)):
        with pytest.raises(TypeError):
            await promise
    del promise
    gc.collect()
    assert heard() == []


async def test_an_out_that_changes_during_the_read_warns(context, heard):
    buffer, out = await filled(context, [1, 2]), np.zeros(2, np.float32)
    context.device_timeline.pause()
    context.read_buffer(buffer, out=out)  # this line
    out.flags.writeable = False
    context.device_timeline.resume()
    await settle(context)
    ((words, line),) = heard()
    assert words.startswith("TypeError that was never awaited: read_buffer(): out changed while the read was pending")
    assert line == "context.read_buffer(buffer, out=out)  # this line"


async def test_a_file_that_cannot_be_removed_warns_though_the_context_is_destroyed(tmp_path, heard):
    (path := tmp_path / "no folder").touch()
    async with open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        SavedGraphs(path).delete(context, "k")
        context.destroy()
        await settle(context)
    ((text, _line),) = heard()
    assert text.startswith(
        "UnknownError that was never awaited: SavedGraphs.delete() failed on the device: [Errno 20] "
    )


# --- writes and dispatches -------------------------------------------------------------------------------------------

FAILED_WRITE = (
    "write_buffer() failed: cable cut; this was not reported, since nothing that it should have written was read",
    "context.write_buffer(buffer, ONES)  # this line",
)
FAILED_DISPATCH = (
    "dispatch() failed: kernel panic; this was not reported, since nothing that it should have written was read",
    "context.dispatch(graph, inputs, outputs)  # this line",
)


async def fail_a_write(context, device):
    """Create a buffer whose write fails."""
    buffer = await filled(context, [1, 2])
    await context.drain()
    device.failing["write"] = OSError("cable cut")
    context.write_buffer(buffer, ONES)  # this line
    await context.drain()
    return buffer


async def fail_a_dispatch(context, device):
    """Return the two outputs of a dispatch that fails."""
    graph = await build_sum_and_difference(context, [2])
    inputs = {"a": await filled(context, [5, 6]), "b": await filled(context, [1, 2])}
    outputs = {"s": await zeroed(context, [2]), "d": await zeroed(context, [2])}
    await context.drain()
    device.failing["dispatch"] = OSError("kernel panic")
    context.dispatch(graph, inputs, outputs)  # this line
    await context.drain()
    for thing in (graph, *inputs.values()):
        thing.destroy()
    return outputs.values()


@pytest.mark.filterwarnings("ignore:.* was never destroyed:ResourceWarning")
@pytest.mark.parametrize("end", ["destroyed", "collected"])
async def test_a_failed_write_warns_when_its_buffer_ends_unread(context, device, heard, end):
    buffer = await fail_a_write(context, device)
    assert heard() == []
    if end == "destroyed":
        buffer.destroy()
    else:
        del buffer
    await settle(context)
    assert heard() == [FAILED_WRITE]


async def test_a_failed_dispatch_warns_once_when_its_last_output_ends(context, device, heard):
    s, d = await fail_a_dispatch(context, device)
    s.destroy()
    await settle(context)
    assert heard() == []
    d.destroy()
    await settle(context)
    assert heard() == [FAILED_DISPATCH]


async def test_a_failure_that_a_read_has_reported_does_not_warn(context, device, heard):
    s, d = await fail_a_dispatch(context, device)
    s.destroy()
    with pytest.raises(UnknownError, match="kernel panic"):
        await context.read_buffer(d)
    d.destroy()
    await settle(context)
    assert heard() == []


@pytest.mark.parametrize("is_read", [True, False])
async def test_a_failure_that_propagated_warns_once_unless_a_read_has_reported_it(context, device, heard, is_read):
    graph = await build_add_number(context, 1, [2])
    first, second = await fail_a_write(context, device), await zeroed(context, [2])
    context.dispatch(graph, {"x": first}, {"y": second})
    first.destroy()
    if is_read:
        with pytest.raises(UnknownError, match="cable cut"):
            await context.read_buffer(second)
    second.destroy()
    await settle(context)
    assert heard() == ([] if is_read else [FAILED_WRITE])


async def test_a_failure_that_is_overwritten_does_not_warn(context, device, heard):
    buffer = await fail_a_write(context, device)
    context.write_buffer(buffer, ONES)
    buffer.destroy()
    await settle(context)
    assert heard() == []


async def test_a_failure_in_a_context_that_ends_warns(options, heard):
    async with open_ml() as ml:
        context = await ml.create_context(**options)
        kept = await fail_a_write(context, WatchedDevice(context))
    assert heard() == [FAILED_WRITE]
    assert kept.shape == (2,)


# --- the warning -----------------------------------------------------------------------------------------------------


async def test_the_line_is_that_of_the_call_and_not_of_its_statement(context, device, heard):
    buffers = [await filled(context, [1, 2]) for _ in range(2)]
    await context.drain()
    device.failing["read"] = OSError("cable cut")
    promises = [
        context.read_buffer(buffers[0]),  # this line
        context.read_buffer(buffers[1]),
    ]
    promises.clear()
    await settle(context)
    assert [line for _, line in heard()] == ["context.read_buffer(buffers[0]),  # this line"]


async def test_warnings_that_are_errors_change_nothing(context, device, unraisable):
    with warnings.catch_warnings(action="error"):
        buffer = await fail_a_write(context, device)
        buffer.destroy()
        await settle(context)
    assert unraisable == [FAILED_WRITE[0]]
    assert context.statistics().live_buffers == 0
