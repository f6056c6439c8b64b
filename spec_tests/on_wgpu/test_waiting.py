"""Waits for the GPU look and sleep by policy and by the known time of the graph; on a clock of their own."""

from types import SimpleNamespace

import pytest

from spec_tests.support.four_floats import buffers
from spec_tests.support.stand_ins import beside_a_busy_task, noted
from webnn_py.devices.wgpu.runtime import waiting
from webnn_py.devices.wgpu.runtime.native import (
    FIRST_SUBMITTED,
    LEAST_LAUNCHES,
    MOST_COLLECTED,
    BufferClear,
    NativeQueue,
    Ticket,
)
from webnn_py.devices.wgpu.runtime.waiting import POLICIES, Waiting

pytestmark = pytest.mark.sampled(1)

LOOK = 0.00001


class Gpu:
    """A GPU that takes ``seconds`` for each graph, and a clock: looks and sleeps take the time that they take."""

    def __init__(self, monkeypatch, policy, seconds):
        self.now = 1.0
        self.seconds = seconds
        self.looked = self.slept = self.in_thread = 0.0
        self.graph = SimpleNamespace(seconds=None, ahead=None)
        self.waiting = Waiting(self, POLICIES[policy], SimpleNamespace(are_shared=False))
        monkeypatch.setattr(waiting, "perf_counter", lambda: self.now)
        monkeypatch.setattr(waiting.trio, "sleep", self.sleep)
        monkeypatch.setattr(waiting.trio.to_thread, "run_sync", self.run_in_thread)

    async def sleep(self, seconds):
        self.now += seconds
        self.slept += seconds

    async def run_in_thread(self, look, **_):
        look()

    def poll(self, *, wait):
        if wait:
            self.in_thread += self.end - self.now
            self.now = self.end + 0.0003  # such a thread is late
        else:
            self.now += LOOK
            self.looked += LOOK
        if self.now >= self.end:
            self.ticket.done = ""

    def answered(self, ticket):
        assert ticket.done == ""

    async def run(self, dispatches=1):
        """Runs the graph; returns how late the answer is noticed."""
        self.looked = self.slept = self.in_thread = 0.0
        self.ticket = Ticket()
        self.end = self.now + dispatches * self.seconds
        for _ in range(dispatches):
            self.waiting.launched(self.graph)
        self.waiting.expect(self.ticket)
        await self.waiting.wait(self.ticket)
        return self.now - self.end


@pytest.mark.parametrize("policy", ["default", "high-performance"])
@pytest.mark.parametrize("seconds", [0.0002, 0.001, 0.003, 0.02])
async def test_a_graph_that_is_known_is_noticed_at_once(monkeypatch, policy, seconds):
    gpu = Gpu(monkeypatch, policy, seconds)
    for _ in range(6):
        await gpu.run()
    for dispatches in (1, 3):
        assert await gpu.run(dispatches) <= 2 * LOOK
        assert gpu.in_thread == 0
        assert gpu.looked <= POLICIES[policy].ahead + waiting.SLEEP_STEP + 2 * LOOK


async def test_low_power_looks_once_and_never_again(monkeypatch):
    gpu = Gpu(monkeypatch, "low-power", 0.002)
    for _ in range(3):
        await gpu.run()
        assert gpu.looked <= LOOK
        assert gpu.slept == 0


async def test_a_graph_that_has_become_faster_is_not_slept_through_for_long(monkeypatch):
    gpu = Gpu(monkeypatch, "default", 0.05)
    for _ in range(4):
        await gpu.run()
    gpu.seconds = 0.001
    late = [await gpu.run() for _ in range(8)]
    assert late[-1] <= 2 * LOOK
    assert sum(late) < 0.1


async def test_the_first_run_tells_nothing(monkeypatch):
    gpu = Gpu(monkeypatch, "default", 0.05)
    await gpu.run()
    gpu.seconds = 0.001
    await gpu.run()
    assert gpu.slept == 0


async def test_a_wait_that_slept_looks_with_other_tasks_in_between(monkeypatch):
    gpu = Gpu(monkeypatch, "default", 0.004)
    for _ in range(4):
        await gpu.run()
    turns = []
    async with beside_a_busy_task(turns):
        await gpu.run()
    assert len(turns) > 10


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_context_waits_as_its_power_preference_says(ml, policy):
    context = await ml.create_context(backend="wgpu", power_preference=policy)
    assert context._device.backend._waiting._policy is POLICIES[policy]


async def test_a_gpu_that_has_nothing_to_do_gets_the_first_launches_at_once(gpu, monkeypatch):
    submitted = noted(monkeypatch, NativeQueue, "_submit", lambda _self, _what, launches, *_: len(launches))
    (x,) = await buffers(gpu, 1)
    await gpu.read_buffer(x)
    queue, clear = gpu._device.backend._queue, BufferClear(x._storage.data, 16)

    def launched(count):
        submitted.clear()
        queue.launch([clear] * count)
        return list(submitted)

    assert launched(LEAST_LAUNCHES - 1) == []
    await gpu.read_buffer(x)
    assert launched(LEAST_LAUNCHES) == [FIRST_SUBMITTED]
    assert launched(LEAST_LAUNCHES) == []  # it is busy
    await gpu.drain()
    assert launched(LEAST_LAUNCHES) == [FIRST_SUBMITTED]
    await gpu.drain()
    assert launched(4 * MOST_COLLECTED) == [8, 16, 32, 32, 32]
    queue.submit()
