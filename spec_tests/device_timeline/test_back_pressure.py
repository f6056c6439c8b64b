"""``max_queued_bytes`` and ``wait_for_capacity()`` bound the bytes that a producer may queue."""

import numpy as np
import pytest
import trio
from trio.testing import assert_checkpoints

from spec_tests.support.buffers import zeroed
from spec_tests.support.watched_device import quiet

WRITE = np.zeros(25, np.float32)
"""The data of each write: 100 bytes."""


@pytest.fixture
async def context(ml, options):
    """Create a context that has room while at most 250 bytes wait."""
    return await ml.create_context(**options, max_queued_bytes=250)


class Producer:
    """Writes ``count`` times, awaiting room before each write, and remembers the most bytes that were queued."""

    def __init__(self, context, buffer, count):
        self.context, self.buffer, self.count = context, buffer, count
        self.written = self.peak = 0

    async def run(self):
        for _ in range(self.count):
            await self.context.wait_for_capacity()
            self.context.write_buffer(self.buffer, WRITE)
            self.written += 1
            self.peak = max(self.peak, self.context.statistics().queued_bytes)


@pytest.mark.parametrize("stride", [1, 2, 3, 50])
async def test_a_producer_that_awaits_room_never_queues_more_than_the_limit_and_one_write(context, device, stride):
    producer = Producer(context, await zeroed(context, [25]), 20)
    context.device_timeline.pause()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(producer.run)
        await device.quiet()
        assert producer.written == 3, "there is room while 0, 100 and 200 bytes wait, and none while 300 do"
        for _ in range(20):
            await context.device_timeline.step(stride)
            await device.quiet()
        assert producer.written == 20

    assert producer.peak == 300
    assert device.log == ["allocate"] + ["write"] * 20


async def wait_for_room(context, returned):
    await context.wait_for_capacity()
    returned.set()


async def write(context, count):
    """Queue ``count`` writes of 100 bytes to a new buffer, and return it."""
    buffer = await zeroed(context, [25])
    context.device_timeline.pause()
    for _ in range(count):
        context.write_buffer(buffer, WRITE)
    assert context.statistics().queued_bytes == 100 * count
    return buffer


@pytest.mark.parametrize(
    ("limit", "queued", "has_room"),
    [(0, 0, True), (0, 1, False), (100, 1, True), (99, 1, False), (250, 2, True), (250, 3, False)],
)
async def test_there_is_room_while_queued_operations_hold_at_most_the_limit(ml, options, limit, queued, has_room):
    context = await ml.create_context(**options, max_queued_bytes=limit)
    _held = await write(context, queued)
    returned = trio.Event()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_room, context, returned)
        await quiet(context)
        assert returned.is_set() == has_room
        context.device_timeline.resume()


async def test_a_write_that_runs_still_takes_room(context, device):
    buffer = await zeroed(context, [25])
    finish = device.waiting["write"] = trio.Event()
    for _ in range(3):
        context.write_buffer(buffer, WRITE)
    returned = trio.Event()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_room, context, returned)
        await device.quiet()
        assert not returned.is_set()
        finish.set()


async def test_without_a_limit_there_is_always_room(ml, options):
    context = await ml.create_context(**options)
    _held = await write(context, 20)
    with assert_checkpoints():
        await context.wait_for_capacity()
    assert context.statistics().queued_operations == 20


async def test_waiting_for_room_is_a_checkpoint_even_when_there_is_room(context):
    with assert_checkpoints():
        await context.wait_for_capacity()


async def test_two_producers_exceed_the_limit_by_one_write_each_at_most_and_both_finish(context, device):
    buffers = [await zeroed(context, [25]) for _ in range(2)]
    producers = [Producer(context, buffer, 20) for buffer in buffers]
    context.device_timeline.pause()

    async with trio.open_nursery() as nursery:
        for producer in producers:
            nursery.start_soon(producer.run)
        await device.quiet()
        while await context.device_timeline.step():
            await device.quiet()

    assert [producer.written for producer in producers] == [20, 20]
    assert max(producer.peak for producer in producers) <= 250 + 2 * 100
    assert device.log.count("write") == 40


async def test_a_cancelled_wait_for_room_disturbs_no_other(context):
    _held = await write(context, 3)
    returned = trio.Event()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_room, context, returned)
        async with trio.open_nursery() as cancelled:
            cancelled.start_soon(context.wait_for_capacity)
            await quiet(context)
            cancelled.cancel_scope.cancel()
        assert not returned.is_set()
        await context.device_timeline.step()
        await quiet(context)
        assert returned.is_set()


async def test_a_wait_for_room_ends_when_the_context_is_lost(context, device):
    buffer = await zeroed(context, [25])
    finish = device.waiting["write"] = trio.Event()
    for _ in range(5):
        context.write_buffer(buffer, WRITE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(context.wait_for_capacity)
        await device.quiet()
        context.destroy()
        finish.set()

    assert device.log.count("write") == 1, "the writes that waited are dropped"


async def test_a_lost_context_has_room(context):
    context.destroy()
    await context.wait_for_capacity()
    await context.lost
    await context.wait_for_capacity()
