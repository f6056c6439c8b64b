"""``statistics()`` proves destruction: memory is released in its turn on the device timeline, no sooner, no later."""

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.support.buffers import constant, filled, zeroed
from spec_tests.support.drawing import build_add_buffer, build_add_number, build_sum_and_difference
from webnn_py import InvalidStateError, MLGraphBuilder


def live(context):
    """The live buffers and the live bytes."""
    statistics = context.statistics()
    return statistics.live_buffers, statistics.live_bytes


async def test_every_step_changes_what_lives_when_it_runs_and_not_when_it_is_called(fake_context):
    timeline = fake_context.device_timeline
    timeline.pause()
    first = fake_context.create_buffer(data_type="float32", shape=[25])
    second = fake_context.create_constant_buffer(bytes(10), data_type="uint8", shape=[10])
    assert live(fake_context) == (0, 0)
    await timeline.step()
    assert live(fake_context) == (1, 100)
    await timeline.step()
    assert live(fake_context) == (2, 110)
    (await first).destroy()
    (await second).destroy()
    assert live(fake_context) == (2, 110)
    await timeline.step()
    assert live(fake_context) == (1, 10)
    await timeline.step()
    assert live(fake_context) == (0, 0)


async def test_destroying_twice_releases_once(fake, fake_context):
    buffer = await zeroed(fake_context, [2])
    graph = await build_add_number(fake_context, 1, [2])
    for _ in range(2):
        buffer.destroy()
        graph.destroy()
    await fake_context.drain()
    assert live(fake_context) == (0, 0)
    assert fake.log == ["allocate", "compile", "free", "release_graph"]


async def test_buffers_and_graph_of_a_dispatch_in_flight_are_released_after_it(fake, fake_context):
    graph = await build_sum_and_difference(fake_context, [2])
    a, b = await filled(fake_context, [5, 6]), await filled(fake_context, [1, 2])
    s, d = await zeroed(fake_context, [2]), await zeroed(fake_context, [2])
    await fake_context.drain()
    fake.log.clear()
    finish = fake.waiting["dispatch"] = trio.Event()
    fake_context.dispatch(graph, {"a": a, "b": b}, {"s": s, "d": d})
    await wait_all_tasks_blocked()

    a.destroy()
    graph.destroy()
    s.destroy()
    promise = fake_context.read_buffer(d)
    await wait_all_tasks_blocked()
    assert live(fake_context) == (4, 32)
    finish.set()

    np.testing.assert_array_equal(await promise, [4, 4])
    assert fake.log == ["dispatch", "free", "release_graph", "free", "read"]
    assert live(fake_context) == (2, 16)


async def test_operations_enqueued_before_destroy_still_have_the_buffer(fake, fake_context):
    source, target = await zeroed(fake_context, [2]), await zeroed(fake_context, [2])
    graph = await build_add_number(fake_context, 1, [2])
    fake_context.device_timeline.pause()
    fake_context.write_buffer(source, np.array([1, 2], np.float32))
    fake_context.dispatch(graph, {"x": source}, {"y": target})
    source.destroy()
    promise = fake_context.read_buffer(target)

    seen = []
    while await fake_context.device_timeline.step():
        seen.append(fake_context.statistics().live_buffers)

    assert seen == [2, 2, 1, 1]
    np.testing.assert_array_equal(await promise, [2, 3])


async def test_what_a_read_brought_counts_until_the_script_has_it(ml, fake_context):
    buffer = await zeroed(fake_context, [25])
    ml.script_timeline.pause()
    fake_context.device_timeline.pause()
    promise = fake_context.read_buffer(buffer)
    assert live(fake_context) == (1, 100)
    await fake_context.device_timeline.step()
    assert live(fake_context) == (1, 200)
    await ml.script_timeline.step()
    assert promise.state == "fulfilled"
    assert live(fake_context) == (1, 100)


@pytest.mark.parametrize("end", ["the buffer is destroyed", "the context is lost"])
async def test_what_an_abandoned_read_brought_is_dropped(ml, fake, fake_context, end):
    buffer = await zeroed(fake_context, [25])
    ml.script_timeline.pause()
    fake_context.device_timeline.pause()
    promise = fake_context.read_buffer(buffer)
    await fake_context.device_timeline.step()
    assert live(fake_context) == (1, 200)

    buffer.destroy() if "buffer" in end else fake_context.destroy()
    assert promise.state == "rejected"
    assert live(fake_context) == (1, 200)
    await ml.script_timeline.step()
    assert live(fake_context) == (1, 100)
    await fake_context.device_timeline.step()
    assert live(fake_context) == (0, 0)


@pytest.mark.parametrize("end", ["the buffer is destroyed", "the context is lost"])
async def test_what_a_read_brings_after_it_was_abandoned_is_dropped(fake, fake_context, end):
    buffer = await zeroed(fake_context, [25])
    out = np.full(25, 9, np.float32)
    finish = fake.waiting["read"] = trio.Event()
    promise = fake_context.read_buffer(buffer, out=out)
    await wait_all_tasks_blocked()

    buffer.destroy() if "buffer" in end else fake_context.destroy()
    with pytest.raises(InvalidStateError, match="while the read was pending"):
        await promise
    assert live(fake_context) == (1, 100)
    finish.set()
    await fake_context.drain()

    assert live(fake_context) == (0, 0)
    np.testing.assert_array_equal(out, np.full(25, 9))


async def test_a_constant_buffer_stays_as_long_as_a_graph_that_reads_it(fake, fake_context):
    weights = await constant(fake_context, np.arange(25))
    promises = [build_add_buffer(fake_context, weights) for _ in range(2)]
    weights.destroy()
    first, second = [await promise for promise in promises]
    await fake_context.drain()
    assert live(fake_context) == (0, 100), "the buffer is gone, its memory is the graphs'"

    first.destroy()
    await fake_context.drain()
    assert live(fake_context) == (0, 100)
    assert "free" not in fake.log
    source, target = await zeroed(fake_context, [25]), await zeroed(fake_context, [25])
    fake_context.dispatch(second, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await fake_context.read_buffer(target), np.arange(25))

    second.destroy()
    await fake_context.drain()
    assert live(fake_context) == (2, 200)
    assert fake.log.count("free") == 1


async def test_a_constant_buffer_outlives_the_graph_when_the_graph_goes_first(fake, fake_context):
    weights = await constant(fake_context, np.arange(25))
    graph = await build_add_buffer(fake_context, weights)
    graph.destroy()
    await fake_context.drain()
    assert live(fake_context) == (1, 100)
    weights.destroy()
    await fake_context.drain()
    assert live(fake_context) == (0, 0)


async def test_a_graph_counts_the_constants_it_keeps_and_its_intermediates(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[100])
    weights = builder.constant(np.ones(100, np.float32))
    folded = builder.add(weights, builder.constant(np.ones((1, 1), np.float32)))
    y = builder.mul(builder.add(x, folded), builder.constant(2, data_type="float32"))

    graph = await builder.build({"y": y})

    folded_bytes, scalar_bytes, intermediate_bytes = 400, 4, 448
    assert live(context) == (0, folded_bytes + scalar_bytes + intermediate_bytes)
    graph.destroy()
    await context.drain()
    assert live(context) == (0, 0)


async def test_every_copy_between_host_and_device_is_counted(fake_context):
    def copies():
        return fake_context.statistics().host_copies

    source, target = await zeroed(fake_context, [2]), await zeroed(fake_context, [2])
    graph = await build_add_number(fake_context, 1, [2])
    assert copies() == 0
    weights = await constant(fake_context, [1, 2])
    assert copies() == 1
    fake_context.write_buffer(source, np.ones(2, np.float32))
    await fake_context.drain()
    assert copies() == 2
    fake_context.dispatch(graph, {"x": source}, {"y": target})
    await fake_context.drain()
    assert copies() == 2
    await fake_context.read_buffer(target)
    await fake_context.read_buffer(target, out=np.zeros(2, np.float32))
    assert copies() == 4
    weights.destroy()


async def test_a_destroyed_context_drops_what_waits_and_drains_its_releases(fake, fake_context):
    graph = await build_add_number(fake_context, 1, [2])
    source, target = await zeroed(fake_context, [2]), await zeroed(fake_context, [2])
    weights = await constant(fake_context, [1, 2])
    await fake_context.drain()
    fake.log.clear()
    finish = fake.waiting["write"] = trio.Event()
    fake_context.write_buffer(source, np.ones(2, np.float32))
    fake_context.dispatch(graph, {"x": source}, {"y": target})
    fake_context.write_buffer(source, np.ones(2, np.float32))
    await wait_all_tasks_blocked()
    lives = live(fake_context)

    fake_context.destroy()
    await wait_all_tasks_blocked()
    assert live(fake_context) == lives == (3, 28)
    finish.set()
    await fake_context.drain()

    assert fake.log == ["write", "stop", "release_graph", "free", "free", "free", "close"]
    assert live(fake_context) == (0, 0)
    assert weights.constant
    assert fake_context.statistics().queued_bytes == 0


async def test_a_buffer_whose_allocation_runs_when_the_context_is_lost_is_released(fake, fake_context):
    finish = fake.waiting["allocate"] = trio.Event()
    promise = fake_context.create_buffer(data_type="float32", shape=[2])
    await wait_all_tasks_blocked()
    fake_context.destroy()
    finish.set()
    with pytest.raises(InvalidStateError, match=r"create_buffer\(\): the context is lost"):
        await promise
    await fake_context.drain()
    assert live(fake_context) == (0, 0)
    assert fake.log == ["allocate", "stop", "free", "close"]


async def test_a_graph_whose_compilation_runs_when_the_context_is_lost_is_released(fake, fake_context):
    weights = await constant(fake_context, [1, 2])
    finish = fake.waiting["compile"] = trio.Event()
    promise = build_add_buffer(fake_context, weights)
    await wait_all_tasks_blocked()
    fake_context.destroy()
    finish.set()
    with pytest.raises(InvalidStateError, match=r"build\(\): the context is lost"):
        await promise
    await fake_context.drain()
    assert live(fake_context) == (0, 0)
    assert fake.log == ["allocate", "write", "compile", "stop", "release_graph", "free", "close"]


async def test_a_buffer_that_was_collected_is_released_before_the_device_closes(fake, fake_context):
    await zeroed(fake_context, [2])
    fake_context.destroy()
    await fake_context.drain()
    assert live(fake_context) == (0, 0)
    assert fake.log == ["allocate", "stop", "free", "close"]
