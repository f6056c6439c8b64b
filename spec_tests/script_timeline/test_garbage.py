"""Dropped buffers and graphs that were never destroyed are released in order, with a warning."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
import trio

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number, build_add_one
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.scene import F32, ONES
from spec_tests.support.watched_device import quiet
from webnn_py import MLGraphBuilder, OperationError, UnknownError, open_ml


def dropped(kind="MLBuffer"):
    """Expect the warning about a thing that was never destroyed."""
    return pytest.warns(ResourceWarning, match=rf"<{kind} .*> was never destroyed")


async def released(context):
    """Wait until collected things have been released."""
    gc.collect()
    await quiet(context)
    await context.drain()
    return context.statistics()


@pytest.mark.parametrize(
    "create",
    [lambda context: zeroed(context, [2]), lambda context: constant(context, [1, 2])],
    ids=["plain", "constant"],
)
async def test_a_dropped_buffer_is_released_with_a_warning(context, device, create):
    buffer = await create(context)
    with dropped():
        del buffer
        statistics = await released(context)
    assert (statistics.live_buffers, statistics.live_bytes, device.log[-1]) == (0, 0, "free")


async def test_a_dropped_graph_is_released_with_a_warning(context, device):
    graph = await build_add_buffer(context, held := await constant(context, [1, 2]))
    held.destroy()
    await context.drain()
    assert context.statistics().live_bytes == 8
    with dropped("MLGraph"):
        del graph
        statistics = await released(context)
    assert (statistics.live_bytes, device.log[-2:]) == (0, ["release_graph", "free"])


async def test_dropped_things_are_released_though_warnings_are_errors(context, device, unraisable):
    things = [await zeroed(context, [2]), await build_add_number(context, 1, [2])]
    with warnings.catch_warnings(action="error"):
        things.clear()
        statistics = await released(context)
    assert [words.endswith("was never destroyed") for words in unraisable] == [True, True]
    assert (statistics.live_buffers, statistics.live_bytes) == (0, 0)


async def test_destroyed_things_are_dropped_without_a_warning(context, device):
    buffer, graph = await zeroed(context, [2]), await build_add_one(context, [2])
    with warnings.catch_warnings(action="error"):
        buffer.destroy()
        graph.destroy()
        del buffer, graph
        await released(context)
    assert device.log.count("free") == device.log.count("release_graph") == 1


async def test_things_that_failed_on_the_device_are_dropped_without_a_warning(context, device):
    device.failing = {"allocate": OSError("no room"), "compile": OSError("no such instruction")}
    with warnings.catch_warnings(action="error"):
        promises = [context.create_buffer(**F32), build_add_number(context, 1, [2])]
        await released(context)
        for promise in promises:
            with pytest.raises((UnknownError, OperationError)):
                await promise
        del promise
        promises.clear()  # their exceptions hold what failed
        await released(context)


async def test_things_that_outlive_their_context_are_dropped_without_a_warning(options):
    async with open_ml() as ml:
        context = await ml.create_context(**options)
        things = [await zeroed(context, [2]), await build_add_one(context, [2])]
    with warnings.catch_warnings(action="error"):
        things.clear()
        gc.collect()


UNTAKEN = {
    "MLBuffer": lambda context: context.create_buffer(**F32),
    "MLGraph": lambda context: build_add_number(context, 1, [2]),
}


@pytest.mark.parametrize("kind", UNTAKEN)
async def test_a_thing_whose_promise_was_dropped_is_released_with_a_warning(context, kind):
    with dropped(kind):
        UNTAKEN[kind](context)
        await context.drain()
        statistics = await released(context)
    assert (statistics.live_buffers, statistics.live_bytes) == (0, 0)


async def test_a_pending_read_keeps_its_buffer(context, device):
    buffer = await filled(context, [1, 2])
    await context.drain()
    alive = weakref.ref(buffer)
    context.device_timeline.pause()
    read = context.read_buffer(buffer)
    del buffer
    gc.collect()
    assert alive() is not None
    with dropped():
        context.device_timeline.resume()
        np.testing.assert_array_equal(await read, [1, 2])
        await released(context)
    assert alive() is None
    assert device.log[-2:] == ["read", "free"]


async def test_a_buffer_holds_nothing_of_a_finished_read(context):
    buffer = await filled(context, [1, 2])
    read = context.read_buffer(buffer)
    await read
    alive = weakref.ref(read)
    del read
    gc.collect()
    assert alive() is None
    assert buffer.readable


async def test_queued_operations_run_before_a_dropped_buffer_or_graph_is_released(context, device):
    graph = await build_add_one(context, [2])
    x, y = await zeroed(context, [2]), await zeroed(context, [2])
    device.log.clear()
    context.device_timeline.pause()
    context.write_buffer(x, ONES)
    context.dispatch(graph, {"x": x}, {"y": y})
    with dropped("ML(Buffer|Graph)"):
        del x, graph
        gc.collect()
        await device.quiet()
    read = context.read_buffer(y)
    context.device_timeline.resume()
    np.testing.assert_array_equal(await read, [2, 2])
    assert device.log[:2] == ["write", "dispatch"]
    assert sorted(device.log[2:]) == ["free", "read", "release_graph"]


async def test_a_builder_keeps_its_constant_buffer_and_a_graph_keeps_its_memory(context, device):
    builder = MLGraphBuilder(context)
    x = builder.input("x", **F32)
    y = builder.add(x, builder.constant(await constant(context, [1, 2])))
    await released(context)
    assert "free" not in device.log
    with dropped():
        graph = await builder.build({"y": y})
        await released(context)
    assert "free" not in device.log
    assert context.statistics().live_bytes == 8
    source, target = await filled(context, [10, 20]), await zeroed(context, [2])
    context.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await context.read_buffer(target), [11, 22])


async def test_a_dropped_builder_releases_its_constant_buffer(context, device):
    builder = MLGraphBuilder(context)
    y = builder.add(builder.input("x", **F32), builder.constant(await constant(context, [1, 2])))
    with dropped():
        del builder, y
        await released(context)
    assert device.log[-1] == "free"


async def test_a_destroyed_builder_releases_its_constants(context):
    builder, buffer = MLGraphBuilder(context), await constant(context, [1, 2])
    alive = weakref.ref(buffer)
    builder.constant(buffer)
    with warnings.catch_warnings(action="ignore"):
        del buffer
        gc.collect()
        assert alive() is not None
        builder.destroy()
        gc.collect()
    assert alive() is None
    assert (await released(context)).live_bytes == 0


async def test_a_buffer_may_be_collected_by_any_thread(context, device):
    things, freed_by = [await zeroed(context, [2])], []
    free = device.backend.free

    def observed_free(data):
        freed_by.append(threading.current_thread())
        return free(data)

    device.backend.free = observed_free
    with dropped():
        await trio.to_thread.run_sync(things.clear)
        statistics = await released(context)
    assert statistics.live_buffers == 0
    assert freed_by == [threading.current_thread()], "the device timeline releases, whoever collects"


async def test_a_buffer_dropped_just_before_the_block_ends_is_released(options):
    with dropped():
        async with open_ml() as ml:
            context = await ml.create_context(**options)
            buffer = await zeroed(context, [2])
            await context.drain()
            del buffer
            gc.collect()
    assert_nothing_lives(context)


async def test_the_timelines_hold_nothing_of_finished_operations(context):
    buffer, graph = await filled(context, [1, 2]), await build_add_one(context, [2])
    output = await zeroed(context, [2])
    context.dispatch(graph, {"x": buffer}, {"y": output})
    await context.read_buffer(output)
    await context.drain()
    alive = [weakref.ref(thing) for thing in (buffer, graph, output)]
    with warnings.catch_warnings(action="ignore"):  # a recorded warning would hold its source
        del buffer, graph, output
        gc.collect()
    assert [thing() for thing in alive] == [None] * 3
    assert (await released(context)).live_bytes == 0
