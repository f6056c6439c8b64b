"""Waiting for the GPU: looking for its answer while it is near, and sleeping before that, or in a worker thread.

A thread that waits is awake again hundreds of µs after the GPU has answered. So a wait looks, other tasks in between,
when the answer is near; how long a graph takes is known from its last runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import floor
from time import perf_counter
from typing import Final, Protocol

import attrs
import trio

from webnn_py.devices.wgpu.engines.engine import Ticket
from webnn_py.devices.wgpu.runtime.commands_ahead import CommandsAhead
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue
from webnn_py.devices.wgpu.runtime.pipelines import Pipelines

BLOCK_SECONDS: Final = 0.0001
"""How long the event loop may be kept waiting for an answer that is about to come."""

LEARNED: Final = 0.25
"""How much the last run of a graph counts among those before."""

SLEEP_STEP: Final = 0.001
"""Sleeps are whole multiples of this: shorter ones take hundreds of µs too long."""

MOST_WAITS: Final = 100
WAIT_SECONDS: Final = 0.01
"""The number of polls, and the time between them, for an answer that all submitted work must have given."""


@attrs.frozen
class WaitPolicy:
    """A policy of how long waits look and sleep, in seconds.

    Attributes:
        unknown: how long to look for an answer of which nothing is known.
        ahead: how long before an expected answer to begin to look; before that, the wait sleeps.
        beyond: how long to look for one that should have come.
    """

    unknown: float
    ahead: float
    beyond: float

    @property
    def looks(self) -> bool:
        """Return whether it ever looks more than once."""
        return self.unknown > 0


POLICIES: Final[Mapping[str, WaitPolicy]] = {
    "default": WaitPolicy(0.0005, ahead=0.0026, beyond=0.0005),
    "high-performance": WaitPolicy(0.002, ahead=0.005, beyond=0.002),
    "low-power": WaitPolicy(0, 0, 0),
}
"""By ``power_preference``."""


class Timed(Protocol):
    """A compiled graph.

    Attributes:
        seconds: what a run of it is known to take, launching included; 0 after the first run, which says little, and
            None before it.
        ahead: the commands of its next run; None where they differ from run to run.
    """

    seconds: float | None

    @property
    def ahead(self) -> CommandsAhead | None: ...


class Work:
    """The graphs launched between two answers of the GPU."""

    __slots__ = ("began", "count", "graph", "is_known", "seconds")

    def __init__(self) -> None:
        self.began = self.seconds = 0.0
        self.count = 0
        self.graph: Timed | None = None  # when it is one and the same
        self.is_known = True

    def add(self, graph: Timed) -> None:
        """A run of a graph that is launched now."""
        if self.count == 0:
            self.began, self.graph = perf_counter(), graph
        elif graph is not self.graph:
            self.graph = None
        self.count += 1
        self.seconds += graph.seconds or 0
        self.is_known = self.is_known and bool(graph.seconds)

    def learn(self, began: float, ended: float, *, is_late: bool) -> None:
        """Remember what a run took; less than is known where a wait has slept for too long."""
        if self.graph is None:
            return
        taken, known = (ended - began) / self.count, self.graph.seconds
        if known is None:
            self.graph.seconds = 0
        elif is_late:
            self.graph.seconds = known / 2
        else:
            self.graph.seconds = known + LEARNED * (min(taken, 2 * known) - known) if known else taken


class Waiting:
    """Waits for answers of one context's queue.

    Args:
        queue: whose.
        policy: how.
        pipelines: of the device; they know whether other contexts use it, which a wait in a thread would keep from
            submitting.
    """

    def __init__(self, queue: ContextQueue, policy: WaitPolicy, pipelines: Pipelines) -> None:
        self._queue = queue
        self._policy = policy
        self._pipelines = pipelines
        self._limiter = trio.CapacityLimiter(2)
        self._work = Work()
        self._given: dict[Ticket, Work] = {}
        self._answered = 0.0

    def launched(self, graph: Timed) -> None:
        """Take note of a run of a graph."""
        self._work.add(graph)

    def expect(self, ticket: Ticket) -> None:
        """Take note that a ticket is answered when all that has been launched since the last such ticket is done."""
        if self._work.count and self._policy.looks:
            self._given[ticket] = self._work
        self._work = Work()

    async def wait(self, ticket: Ticket) -> None:
        """Wait for an answer of the GPU."""
        work = self._given.pop(ticket, None)
        if work is not None and work.is_known and work.count == 1:
            await self._encode_ahead(work)
        is_late = await self._sleep_before(work) if work is not None and work.is_known else False
        self._queue.poll()
        is_late = is_late and ticket.done is not None
        if ticket.done is None and self._policy.looks:
            await self._look(ticket, work)
        if ticket.done is None:
            await self._wait_in_thread(ticket)
        self._queue.answered(ticket)
        ended = perf_counter()
        if work is not None:
            work.learn(max(work.began, self._answered), ended, is_late=is_late)
        self._answered = ended

    def _end(self, work: Work) -> float:
        """Return the time at which all of it should be done."""
        return max(work.began, self._answered) + work.seconds

    async def _encode_ahead(self, work: Work) -> None:
        """Encode the graph's next run while there is time, with other tasks in between."""
        ahead = None if work.graph is None else work.graph.ahead
        while ahead is not None and ahead.encode_within(self._end(work) - perf_counter() - BLOCK_SECONDS):
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def _sleep_before(self, work: Work) -> bool:
        """Sleep while the answer is far; whether there was a need to."""
        pause = floor((self._end(work) - self._policy.ahead - perf_counter()) / SLEEP_STEP) * SLEEP_STEP
        if pause > 0:
            await trio.sleep(pause)
        return pause > 0

    async def _look(self, ticket: Ticket, work: Work | None) -> None:
        now = perf_counter()
        until, may_block_until = now + self._policy.unknown, now + BLOCK_SECONDS
        if work is not None and work.is_known:
            until = max(until, self._end(work) + self._policy.beyond)
        while ticket.done is None and (now := perf_counter()) < until:
            if now > may_block_until:
                await trio.lowlevel.cancel_shielded_checkpoint()
            self._queue.poll()

    async def _wait_in_thread(self, ticket: Ticket) -> None:
        wait = partial(self._queue.wait, ticket, is_shared=self._pipelines.are_shared)
        for number in range(MOST_WAITS):
            if ticket.done is not None:
                return
            if number:  # another thread may have taken the answer, and be about to give it
                await trio.sleep(WAIT_SECONDS)
            await trio.to_thread.run_sync(wait, limiter=self._limiter, abandon_on_cancel=True)
        if ticket.done is None:
            ticket.done = "the GPU has finished, but its answer was lost on the way"
