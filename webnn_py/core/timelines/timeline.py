"""``Timeline``: a first-in, first-out queue that one task drains, and that can be stepped."""

from collections import deque
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Generic, Protocol, TypeVar

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.message_text import shown
from webnn_py.core.trio_run import TrioRun

EntryT = TypeVar("EntryT", bound="Entry")
EntryT_contra = TypeVar("EntryT_contra", contravariant=True)

INLINE_SECONDS = 0.002
"""After so long without a pause the draining task lets other tasks run."""

GRACE_SECONDS = 0.0002
"""After a slow step, the fast path keeps serving reads for so long."""


@attrs.frozen
class TimelineStatistics:
    """Counts of a timeline at one time.

    Attributes:
        queued_operations: entries that wait or run.
        queued_bytes: bytes of user data that those entries hold.
        done: entries finished since the timeline began.
    """

    queued_operations: int
    queued_bytes: int
    done: int


class Entry(Protocol):
    """An entry of a timeline."""

    @property
    def held_bytes(self) -> int:
        """The bytes of user data that it holds."""


class Watch(Protocol[EntryT_contra]):
    """An observer of a timeline's entries."""

    def enqueued(self, entry: EntryT_contra, /) -> None:
        """An entry is put behind all others."""


class Timeline(Generic[EntryT]):
    """A queue of entries and the one task that runs them in order.

    A timeline runs by itself until :meth:`pause`; then entries run only by :meth:`step`, until :meth:`resume`.
    """

    watch: Watch[EntryT] | None
    """The observer of the entries, if there is one."""

    def __init__(self, name: str, trio_run: TrioRun) -> None:
        self._name = name
        self.watch = None
        self.trio_run = trio_run
        """The run of trio in which its methods must be called."""
        self._queue: deque[EntryT] = deque()
        self._queued_bytes = 0
        self._done = 0
        self._running: EntryT | None = None
        self._in_flight = 0
        self._permits: int | None = None
        self._stepping = False
        self._closing = False
        self._ended = False
        self._end = trio.Event()
        self._parked: trio.lowlevel.Task | None = None
        self._is_woken = False
        self._handed_over: tuple[EntryT, Awaitable[None]] | None = None
        self._waiters: dict[Callable[[], bool], trio.Event] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self._states())}>"

    def _states(self) -> list[str]:
        """Return the parts of the repr."""
        states = {"paused": self.paused, "closing": self._closing and not self.ended, "ended": self.ended}
        return [f"{self.queued_operations} queued", *(name for name, holds in states.items() if holds)]

    # --- overridden by the two kinds of timeline --------------------------------------------------------------

    def _run_entry(self, entry: EntryT) -> Awaitable[None] | None:
        """Run one entry, or begin to; what is returned is awaited."""
        raise NotImplementedError

    def _rest(self) -> None:
        """Nothing is to be run for now: no entry waits, or one has to be awaited first."""

    def _set_aside(self, entry: EntryT, pending: Awaitable[None]) -> bool:
        """Let the next entry begin while ``pending`` is awaited elsewhere; False when it must be awaited first."""
        return False

    def _reads(self, entry: EntryT) -> bool:
        """Return whether an entry only reads what others have made."""
        return False

    # --- the queue -------------------------------------------------------------------------------------------

    @enable_ki_protection
    def enqueue(self, entry: EntryT) -> None:
        """Put an entry behind all others. Never blocks."""
        if self._ended:
            raise RuntimeError(f"the {self._name} has ended")
        if self.watch is not None:
            self.watch.enqueued(entry)
        if self._parked is not None and self._permits != 0:
            trio.lowlevel.reschedule(self._parked)
            self._parked = None
            self._is_woken = True
        self._queue.append(entry)
        self._queued_bytes += entry.held_bytes

    def entries(self) -> list[EntryT]:
        """Those that have not finished, in order."""
        return [*(() if self._running is None else (self._running,)), *self._queue]

    @property
    def queued_bytes(self) -> int:
        """Bytes of user data in entries that have not finished."""
        return self._queued_bytes

    @property
    def queued_operations(self) -> int:
        """Entries that have not finished."""
        return len(self._queue) + (self._running is not None) + self._in_flight

    def statistics(self) -> TimelineStatistics:
        """Return a frozen look at the queue; costs nothing and changes nothing."""
        return TimelineStatistics(self.queued_operations, self._queued_bytes, self._done)

    @enable_ki_protection
    async def run(self) -> None:
        """Drain the queue until :meth:`close`; the body of the timeline's one task.

        Shielded: releases must run even when the surrounding scope is cancelled. It ends because
        :meth:`close` is always called.
        """
        try:
            with trio.CancelScope(shield=True):
                await self._drain_queue()
        finally:
            self._ended = True
            self._end.set()

    async def _drain_queue(self) -> None:
        pending: Awaitable[None] | None
        me = trio.lowlevel.current_task()
        since = perf_counter()
        while self._queue or self._handed_over is not None or not self._closing:
            if self._handed_over is not None:
                (entry, pending), self._handed_over = self._handed_over, None
            elif not self._queue or self._permits == 0:
                self._rest()
                self._parked = me
                await trio.lowlevel.wait_task_rescheduled(never_cancelled)
                self._is_woken = False
                since = perf_counter()
                continue
            else:
                if self._permits is not None:
                    self._permits -= 1
                entry = self._running = self._queue.popleft()
                pending = self._run_entry(entry)
            if pending is not None and self._set_aside(entry, pending):
                self._in_flight += 1
                self._running = None
            else:
                if pending is not None:
                    self._rest()
                    await pending
                self._running = None
                self._finished(entry)
            has_paused = pending is not None
            del entry, pending  # while others run it must not keep what an entry refers to
            if has_paused:
                since = perf_counter()
            elif perf_counter() - since > INLINE_SECONDS:
                await trio.lowlevel.checkpoint()
                since = perf_counter()

    # --- the fast path ---------------------------------------------------------------------------------------

    @property
    def _is_undisturbed(self) -> bool:
        """Return whether nothing steps or observes it: else the fast path is off."""
        return self._permits is None and self.watch is None

    @enable_ki_protection
    def run_waiting(self) -> None:
        """Run what waits, in the task that calls and would wait for it, which spares a turn of trio's.

        That is what the timeline's own task does in its next turn, which it has been woken for. A step that has to be
        awaited is left to it, and so is all that comes behind; behind a slow step, all but reads.
        """
        if not self._is_woken or self._running is not None or not self._is_undisturbed:
            return
        queue, until, is_late = self._queue, perf_counter() + INLINE_SECONDS, False
        while queue and not self._closing:
            entry = self._running = queue.popleft()
            try:
                pending = self._run_entry(entry)
            except BaseException as error:  # noqa: BLE001 - it ends the timeline, not the task that called
                pending = _raise(error)
            if pending is not None:
                self._handed_over = entry, pending
                if not queue:  # the device may have collected work, which need not wait for the task's turn
                    self._rest()
                return
            self._running = None
            self._finished(entry)
            now = perf_counter()
            if now > until:
                if is_late:
                    return
                until, is_late = now + GRACE_SECONDS, True
            if is_late and not (queue and self._reads(queue[0])):
                return

    # --- its task, and its end -------------------------------------------------------------------------------

    def _finished(self, entry: EntryT) -> None:
        self._queued_bytes -= entry.held_bytes
        self._done += 1
        if self._waiters:
            self._wake_waiters()

    @enable_ki_protection
    def close(self) -> None:
        """Let the task end once the queue is empty. Entries that come later still run before it does."""
        self._closing = True
        self._unpark()

    @property
    def ended(self) -> bool:
        """Return whether the task that drains it has ended."""
        return self._ended

    @enable_ki_protection  # trio.Event.wait() has none: an interrupted task would be woken as if it still waited
    async def wait_ended(self) -> None:
        """Wait until the task that drains it has ended."""
        self.trio_run.check("wait_ended()", is_call=False)
        await self._end.wait()

    # --- stepping --------------------------------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        """Return whether entries run only by :meth:`step`."""
        return self._permits is not None

    @enable_ki_protection
    def pause(self) -> None:
        """Run no further entry; one that is running finishes."""
        self.trio_run.check("pause()", is_call=False)
        if self._permits is None:
            self._permits = 0

    @enable_ki_protection
    def resume(self) -> None:
        """Run by itself again."""
        self.trio_run.check("resume()", is_call=False)
        self._permits = None
        self._unpark()

    @enable_ki_protection
    async def step(self, count: int = 1) -> int:
        """Run the next ``count`` entries of a paused timeline and return how many ran: fewer, if fewer wait.

        Raises:
            RuntimeError: the timeline is not paused, or another task is stepping it.
            TypeError: ``count`` is no int.
            ValueError: ``count`` is less than 1.
        """
        self.trio_run.check("step()", is_call=False)
        if self._permits is None:
            raise RuntimeError(f"step() needs a paused timeline: call pause() on the {self._name} first")
        if self._stepping:
            raise RuntimeError(f"another task is stepping the {self._name}")
        if not isinstance(count, int):
            raise TypeError(f"count is {shown(count)}; it must be an int")
        if count < 1:
            raise ValueError(f"count is {shown(count)}; it must be at least 1")
        before = self._done + (self._running is not None) + self._in_flight
        self._stepping = True
        self._permits = min(count, len(self._queue))
        self._unpark()
        try:
            await self.wait_until(lambda: not self._permits and self._running is None and not self._in_flight)
        finally:
            self._stepping = False
            if self._permits:  # cancelled: what has not begun waits for the next step
                self._permits = 0
        return self._done - before

    # --- waiting ---------------------------------------------------------------------------------------------

    @enable_ki_protection
    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition``, checked after each entry, is true."""
        self.trio_run.check("wait_until()", is_call=False)
        if condition():
            await trio.lowlevel.checkpoint()
            return
        # A function of its own per call, so that two waits for the same condition are two entries.
        key = lambda: condition()  # noqa: E731, PLW0108 - a fresh object is the point
        event = self._waiters[key] = trio.Event()
        try:
            await event.wait()
        finally:
            self._waiters.pop(key, None)

    async def drain(self) -> None:
        """Wait until every entry that is queued now has finished."""
        self.trio_run.check("drain()", is_call=False)
        target = self._done + self.queued_operations
        await self.wait_until(lambda: self._done >= target)

    def _wake_waiters(self) -> None:
        for condition in [condition for condition in self._waiters if condition()]:
            self._waiters.pop(condition).set()

    def _unpark(self) -> None:
        if self._parked is not None:
            trio.lowlevel.reschedule(self._parked)
            self._parked = None
            self._is_woken = True


async def _raise(error: BaseException) -> None:
    raise error


def never_cancelled(_raise_cancel: object) -> trio.lowlevel.Abort:
    """Abort the wait of a shielded task: trio never calls this, unless the shield were gone."""
    return trio.lowlevel.Abort.SUCCEEDED
