"""A device that keeps the order itself begins the next operation at once; answers still come in call order."""

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from spec_tests.device_timeline.test_drain import drained
from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.drawing import build_add_number
from spec_tests.support.fake_device import FakeDevice
from spec_tests.support.releases import assert_nothing_lives
from spec_tests.support.watched_device import context_on
from webnn_py import InvalidStateError, UnknownError
from webnn_py.core.in_flight import InFlight


class OverlappingDevice(FakeDevice):
    """A read copies when it begins and answers when its event is set, while other steps run."""

    overlapping = True

    def __init__(self):
        super().__init__()
        self.ready = []

    def read(self, storage):
        self.log.append("read")
        ready = trio.Event()
        self.ready.append(ready)
        self._held.append(ready)
        return InFlight(self._answer(ready, storage.data.copy()))

    async def _answer(self, ready, data):
        await ready.wait()
        self._fail("read")
        return data


@pytest.fixture
async def fake():
    device = OverlappingDevice()
    yield device
    device.let_go()


@pytest.fixture
async def fake_context(ml, fake):
    return await context_on(ml, fake)


async def test_the_next_operation_begins_while_an_answer_is_on_its_way(fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    first = fake_context.read_buffer(buffer)
    fake_context.write_buffer(buffer, np.array([3, 4], np.float32))
    second = fake_context.read_buffer(buffer)
    await wait_all_tasks_blocked()

    assert fake.log == ["allocate", "write", "read", "write", "read"]
    assert (first.state, second.state) == ("pending", "pending")
    fake.let_go()
    np.testing.assert_array_equal(await first, [1, 2])
    np.testing.assert_array_equal(await second, [3, 4])


async def test_promises_settle_in_call_order_whatever_finishes_first(ml, fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    promises = [
        fake_context.read_buffer(buffer),
        fake_context.create_buffer(data_type="float32", shape=[2]),
        fake_context.read_buffer(buffer),
        build_add_number(fake_context, 1, [2]),
    ]
    fake.waiting["compile"] = compiled = trio.Event()
    compiled.set()
    await wait_all_tasks_blocked()
    fake.ready[1].set()
    await wait_all_tasks_blocked()
    assert [promise.state for promise in promises] == ["pending"] * 4

    ml.script_timeline.pause()
    fake.ready[0].set()
    await wait_all_tasks_blocked()
    for settled in range(1, 5):
        await ml.script_timeline.step()
        states = [promise.state for promise in promises]
        assert states == ["fulfilled"] * settled + ["pending"] * (4 - settled)


async def test_drain_waits_for_the_answers_of_earlier_operations(fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    promise = fake_context.read_buffer(buffer)
    await wait_all_tasks_blocked()
    async with drained(fake_context, promise, wait_all_tasks_blocked) as waits:
        await waits()
        for _ in range(3):
            fake_context.write_buffer(buffer, np.zeros(2, np.float32))
        await waits()
        fake.let_go()


async def test_a_step_ends_with_the_answers_of_its_operations(fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    await fake_context.drain()
    fake_context.device_timeline.pause()
    promises = [fake_context.read_buffer(buffer) for _ in range(3)]
    ran = []

    async def step():
        ran.append(await fake_context.device_timeline.step(2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step)
        await wait_all_tasks_blocked()
        assert fake.log.count("read") == 2
        fake.ready[0].set()
        await wait_all_tasks_blocked()
        assert promises[0].state == "fulfilled"
        assert ran == [], "one of the two answers is still on its way"
        fake.ready[1].set()
    assert ran == [2]
    assert [promise.state for promise in promises] == ["fulfilled", "fulfilled", "pending"]


async def test_operations_whose_answers_are_on_their_way_count_as_queued(fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    await fake_context.drain()
    promises = [fake_context.read_buffer(buffer) for _ in range(2)]
    await wait_all_tasks_blocked()
    assert fake_context.statistics().queued_operations == 2
    fake.ready[0].set()
    await promises[0]
    assert fake_context.statistics().queued_operations == 1
    fake.ready[1].set()
    await promises[1]
    assert fake_context.statistics().queued_operations == 0


async def test_an_answer_that_fails_rejects_its_own_promise_only(fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    fake.failing["read"] = RuntimeError("the bus is down")
    first, second = fake_context.read_buffer(buffer), fake_context.read_buffer(buffer)
    await wait_all_tasks_blocked()
    fake.let_go()
    with pytest.raises(UnknownError, match="the bus is down"):
        await first
    np.testing.assert_array_equal(await second, [1, 2])


async def test_answers_that_come_after_the_loss_are_dropped_and_releases_run(fake, fake_context):
    buffer = await filled(fake_context, [1, 2])
    promises = [fake_context.read_buffer(buffer) for _ in range(2)]
    creating = fake_context.create_buffer(data_type="float32", shape=[2])
    await wait_all_tasks_blocked()

    fake_context.destroy()
    await wait_all_tasks_blocked()
    fake.let_go()

    for promise in (*promises, creating):
        with pytest.raises(InvalidStateError, match=r"destroy\(\) was called on the context"):
            await promise
    await fake_context.drain()
    assert_nothing_lives(fake_context)


async def test_leaving_the_block_waits_for_the_answers(fake, fake_context, ml):
    buffer = await zeroed(fake_context, [2])
    promise = fake_context.read_buffer(buffer)
    await wait_all_tasks_blocked()

    async def let_go():
        assert not fake_context.device_timeline.ended
        fake.let_go()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fake_context.device_timeline.wait_ended)
        fake_context.destroy()
        await wait_all_tasks_blocked()
        nursery.start_soon(let_go)
    assert promise.state == "rejected"
    assert fake_context.statistics().live_bytes == 0
