"""Nothing grows: hundreds of rounds leave no bytes on the device and no objects in the process."""

import gc

import numpy as np
import pytest
from trio.testing import wait_all_tasks_blocked

from webnn_py import MLGraphBuilder

ROUNDS = 200


async def whole_round(context):
    """Create, build, dispatch, read and destroy, also with a failed and an abandoned read."""
    weights = await context.create_constant_buffer(bytes(range(4)), data_type="uint8", shape=[4])
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="uint8", shape=[4])
    graph = await builder.build({"y": builder.mul(builder.add(x, builder.constant(weights)), x)})
    source = await context.create_buffer(data_type="uint8", shape=[4], writable=True)
    target = await context.create_buffer(data_type="uint8", shape=[4], readable=True)
    context.write_buffer(source, bytes([1, 1, 2, 2]))
    context.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(await context.read_buffer(target), [1, 2, 8, 10])
    abandoned = context.read_buffer(target)
    for thing in (graph, weights, source, target):
        thing.destroy()
    assert abandoned.state == "rejected"
    await context.drain()
    assert context.statistics().live_bytes == 0
    assert context.statistics().live_buffers == 0


async def count_objects():
    await wait_all_tasks_blocked()
    gc.collect()
    return len(gc.get_objects())


async def test_rounds_in_one_context_leave_nothing_behind(context):
    for _ in range(20):
        await whole_round(context)
    before = await count_objects()
    for _ in range(ROUNDS):
        await whole_round(context)
    grown = await count_objects() - before
    assert grown < ROUNDS / 4, f"{grown} objects more after {ROUNDS} rounds"


@pytest.mark.parametrize("end", ["destroyed", "lost"])
async def test_contexts_that_end_leave_nothing_behind(ml, end):
    async def one_context():
        context = await ml.create_context(backend="numpy")
        await whole_round(context)
        await context.create_buffer(data_type="float32", shape=[2])
        if end == "destroyed":
            context.destroy()
        else:
            context._device.backend.lost("driver reset")
            await context.lost
        await context.drain()
        assert context.statistics().live_bytes == 0

    for _ in range(20):
        await one_context()
    before = await count_objects()
    for _ in range(ROUNDS):
        await one_context()
    await wait_all_tasks_blocked()
    assert len(ml._contexts) == 0
    grown = await count_objects() - before
    assert grown < ROUNDS / 4, f"{grown} objects more after {ROUNDS} rounds"


async def test_a_finished_operation_keeps_nothing_alive(context):
    """A buffer that nobody holds any more is collected and released without a further operation."""
    promise = context.create_buffer(data_type="float32", shape=[2])
    await promise
    assert context.statistics().live_bytes == 8
    del promise
    gc.collect()
    await wait_all_tasks_blocked()
    assert context.statistics().live_bytes == 0
