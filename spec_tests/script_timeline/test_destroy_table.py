"""Destroy a buffer, a graph or a context while an operation is in flight, on the device or for the script."""

import numpy as np
import pytest

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number, build_add_one, build_sum_and_difference
from spec_tests.support.in_flight import RUNNING, SAID, STAGES, WAITING, InFlight, stages
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.scene import F32, ONES
from webnn_py import DestroyedBufferError, InvalidStateError


@pytest.fixture
async def flight(ml, context, device, stage):
    return InFlight(ml, context, device, stage)


# --- a read in flight ------------------------------------------------------------------------------------------------


@stages(*STAGES)
@pytest.mark.parametrize("into", [False, True], ids=["a fresh array", "into out"])
@pytest.mark.parametrize("destroyed", ["buffer", "context"])
async def test_a_read_is_rejected_at_once_by_destroying(flight, context, device, *, into, destroyed):
    buffer, out = await filled(context, [1, 2]), np.full(2, -1, np.float32)
    read = await flight.start("read", lambda: context.read_buffer(buffer, **({"out": out} if into else {})))

    (buffer if destroyed == "buffer" else context).destroy()

    assert read.state == "rejected"
    words = r"(the context is lost: )?destroy\(\) was called on the " + destroyed
    with pytest.raises(InvalidStateError, match=rf"read_buffer\(\): {words}") as caught:
        await read
    assert caught.type is InvalidStateError
    await flight.land()
    began = [] if (destroyed, flight.stage) == ("context", WAITING) else ["read"]
    assert [step for step in device.log if step not in ("stop", "close")] == [*began, "free"]
    np.testing.assert_array_equal(out, [-1, -1])
    assert_nothing_lives(context)


@stages(*STAGES)
async def test_a_read_goes_on_when_a_graph_is_destroyed(flight, context, device):
    graph, buffer = await build_add_one(context, [2]), await filled(context, [1, 2])
    read = await flight.start("read", lambda: context.read_buffer(buffer))

    graph.destroy()

    assert read.state == "pending"
    await flight.land()
    np.testing.assert_array_equal(await read, [1, 2])
    assert device.log == ["read", "release_graph"]


# --- a write in flight -----------------------------------------------------------------------------------------------


@stages(WAITING, RUNNING)
async def test_a_write_runs_before_its_destroyed_buffer_is_released(flight, context, device):
    buffer = await zeroed(context, [2])
    await flight.start("write", lambda: context.write_buffer(buffer, ONES))

    buffer.destroy()
    await flight.land()

    assert device.log == ["write", "free"]
    assert_nothing_lives(context)


@stages(WAITING, RUNNING)
async def test_a_write_that_has_not_begun_is_dropped_by_destroying_the_context(flight, context, device):
    buffer = await zeroed(context, [2])
    await flight.start("write", lambda: context.write_buffer(buffer, ONES))
    assert context.statistics().queued_bytes == 8

    context.destroy()
    await flight.land()

    began = [] if flight.stage == WAITING else ["write"]
    assert [step for step in device.log if step != "stop"] == [*began, "free", "close"]
    assert context.statistics().queued_bytes == 0
    assert_nothing_lives(context)


# --- a dispatch in flight --------------------------------------------------------------------------------------------


@stages(WAITING, RUNNING)
@pytest.mark.parametrize("destroyed", [["a"], ["d"], ["graph"], ["a", "b", "graph", "d"]], ids="-".join)
async def test_a_dispatch_runs_to_its_end_before_destroyed_things_are_released(flight, context, device, destroyed):
    graph = await build_sum_and_difference(context, [2])
    inputs = {"a": await filled(context, [5, 6]), "b": await filled(context, [1, 2])}
    outputs = {"s": await zeroed(context, [2]), "d": await zeroed(context, [2])}
    await flight.start("dispatch", lambda: context.dispatch(graph, inputs, outputs))

    for name in destroyed:
        (inputs | outputs | {"graph": graph})[name].destroy()
    read = context.read_buffer(outputs["s"])
    assert read.state == "pending"
    await flight.land()

    np.testing.assert_array_equal(await read, [6, 8])
    releases = ["release_graph" if name == "graph" else "free" for name in destroyed]
    assert device.log == ["dispatch", *releases, "read"]
    assert context.statistics().live_buffers == 4 - releases.count("free")


@stages(WAITING, RUNNING)
async def test_a_dispatch_is_dropped_or_stopped_by_destroying_the_context(flight, context, device):
    graph, buffers = await build_add_one(context, [2]), [await zeroed(context, [2]) for _ in "xy"]
    await flight.start("dispatch", lambda: context.dispatch(graph, {"x": buffers[0]}, {"y": buffers[1]}))

    context.destroy()

    began = [] if flight.stage == WAITING else ["dispatch"]
    assert device.log == [*began, "stop"], "nothing may be released under a dispatch that runs"
    await flight.land()
    assert sorted(device.log[len(began) + 1 : -1]) == ["free", "free", "release_graph"]
    assert device.log[-1] == "close"
    assert_nothing_lives(context)


# --- a creation in flight --------------------------------------------------------------------------------------------

CREATIONS = {
    "create_buffer": lambda context: context.create_buffer(**F32),
    "create_constant_buffer": lambda context: context.create_constant_buffer(ONES, **F32),
}


@stages(WAITING, RUNNING)
@pytest.mark.parametrize("method", CREATIONS)
async def test_a_creation_is_rejected_at_once_by_destroying_the_context(flight, context, device, method):
    creation = await flight.start("allocate", lambda: CREATIONS[method](context))

    context.destroy()

    assert creation.state == "rejected"
    await flight.land()
    with pytest.raises(InvalidStateError, match=rf"^{method}\(\): the context is lost: destroy\(\)") as caught:
        await creation
    assert caught.type is InvalidStateError
    assert device.log.count("allocate") == device.log.count("free") == (0 if flight.stage == WAITING else 1)
    assert_nothing_lives(context)


@pytest.mark.parametrize("method", CREATIONS)
async def test_a_creation_that_succeeded_before_the_context_was_destroyed_gives_a_destroyed_buffer(
    ml, context, device, method
):
    ml.script_timeline.pause()
    creation = CREATIONS[method](context)
    await device.quiet()
    assert (creation.state, device.log[0]) == ("pending", "allocate")

    context.destroy()
    await device.quiet()
    assert_nothing_lives(context)
    ml.script_timeline.resume()

    buffer = await creation
    assert (buffer.data_type, buffer.shape) == ("float32", (2,))
    with pytest.raises(DestroyedBufferError, match="context is lost"):
        context.write_buffer(buffer, ONES)


# --- a build in flight -----------------------------------------------------------------------------------------------


@stages(*STAGES)
async def test_a_build_keeps_the_constant_buffer_that_is_destroyed_after_it(flight, context, device):
    held = await constant(context, [10, 20])
    building = await flight.start("compile", lambda: build_add_buffer(context, held))

    held.destroy()
    await flight.land()

    graph, x, y = await building, await filled(context, [1, 2]), await zeroed(context, [2])
    context.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_array_equal(await context.read_buffer(y), [11, 22])
    assert "free" not in device.log, "the graph holds the memory"
    graph.destroy()
    await context.drain()
    assert device.log.count("free") == 1, "with the graph the memory goes"


@stages(WAITING, RUNNING)
async def test_a_build_is_rejected_at_once_by_destroying_the_context(flight, context, device):
    building = await flight.start("compile", lambda: build_add_number(context, 1, [2]))

    context.destroy()

    assert building.state == "rejected"
    await flight.land()
    with pytest.raises(InvalidStateError, match=r"^build\(\): the context is lost: destroy\(\)") as caught:
        await building
    assert caught.type is InvalidStateError
    assert device.log.count("compile") == (0 if flight.stage == WAITING else 1)
    is_ended = device.backend.info.name == "wgpu" and flight.stage == RUNNING  # then there is no graph
    assert device.log.count("release_graph") == (0 if is_ended else device.log.count("compile"))
    assert_nothing_lives(context)


@stages(SAID)
async def test_a_build_that_succeeded_before_the_context_was_destroyed_gives_a_destroyed_graph(flight, context, device):
    building = await flight.start("compile", lambda: build_add_number(context, 1, [2]))

    context.destroy()
    await flight.land()

    graph = await building
    assert list(graph.input_descriptors) == ["x"]
    with pytest.raises(InvalidStateError, match=r"dispatch\(\): the graph is destroyed: the context is lost"):
        context.dispatch(graph, {}, {})
    assert_nothing_lives(context)
