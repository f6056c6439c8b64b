"""Where a device of the processor computes what takes long: in a thread of its own, unless nobody waits meanwhile."""

import sys
from collections.abc import Callable
from time import perf_counter, thread_time
from types import FrameType
from typing import Any, ClassVar, Final, TypeVar

import trio

T = TypeVar("T")

LATE_SECONDS: Final = 0.02
"""How late at most somebody may be whom no look has found."""

LOOK_SECONDS: Final = 0.02
"""How often is looked whether there is somebody: a look takes 0.1 to 0.2 ms while caches are cold."""

CAREFUL_SECONDS: Final = 1.0
"""For how long all that takes long is in the thread after somebody has been found."""

COUNTS: Final = (
    "tasks_waiting",
    "tasks_waiting_read",
    "tasks_waiting_write",
    "tasks_waiting_overlapped",
    "completion_key_monitors",
    "monitors",
)
"""How many wait for the system, in the statistics of trio's loops for Linux, macOS and Windows."""

SHORT_SECONDS: Final = 0.0003
"""Runs that are expected to take less are measured by the clock, which is looked at faster."""

computing_time: Final[Callable[[], float]] = thread_time if sys.platform != "win32" else perf_counter
"""The clock for the lengths of runs: on a busy machine what the processor does for others does not count.

Windows' counts by its clock's ticks of 16 ms.
"""


class WorkerThread:
    """The one worker thread of a device.

    The task that waits for it sleeps, and wakes with cold caches. So what is not too long is done in the loop's thread
    instead, while nobody else could go on there. A loop that is the guest of another one has no such time.
    """

    _away: ClassVar[set[object]] = set()
    """Who is in the thread of any device at the moment."""

    def __init__(self) -> None:
        # Its own limiter: threads of the user's must not keep a device from finishing.
        self._limiter = trio.CapacityLimiter(1)
        self._is_guest: bool | None = None
        self._alone_until = 0.0
        self._careful_until = 0.0

    async def run(self, call: Callable[[], T]) -> T:
        """Call ``call`` in the thread."""
        me = object()
        self._away.add(me)
        try:
            return await trio.to_thread.run_sync(call, limiter=self._limiter)
        finally:
            self._away.discard(me)

    def is_needless(self, seconds: float) -> bool:
        """Whether what is expected to take so long may be done at once, because nobody was there a moment ago."""
        return seconds <= LATE_SECONDS and not self._away and perf_counter() < self._alone_until

    async def run_unless_alone(self, call: Callable[[], T], expected_seconds: float) -> T:
        """Call ``call``: here, if that is short enough and nobody could go on meanwhile, else in the thread."""
        if expected_seconds > LATE_SECONDS or perf_counter() < self._careful_until or not await self._is_alone():
            return await self.run(call)
        self._alone_until = perf_counter() + LOOK_SECONDS
        try:
            return call()
        finally:
            if trio.lowlevel.current_statistics().run_sync_soon_queue_size:  # another thread has called, and may again
                self._be_careful()

    def _be_careful(self) -> None:
        self._alone_until = 0.0
        self._careful_until = perf_counter() + CAREFUL_SECONDS

    async def _is_alone(self) -> bool:
        """Whether no task, deadline, file or thread that trio knows of could go on before the next look has ended."""
        if self._is_guest is None:
            self._is_guest = not _is_on_stack(trio.run)
        is_alone = not (self._is_guest or self._away) and _is_quiet() and not await _others_step()
        if not is_alone:
            self._be_careful()
        return is_alone


async def _others_step() -> bool:
    """Whether other tasks have their turn: those that trio has taken off its queue are in none of its statistics."""
    steps = _Steps()
    trio.lowlevel.add_instrument(steps)
    try:
        await trio.lowlevel.cancel_shielded_checkpoint()
    finally:
        trio.lowlevel.remove_instrument(steps)
    return steps.count > 1


class _Steps(trio.abc.Instrument):
    """Counts the turns of tasks, the last of which is that of who asks."""

    count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


def _is_quiet() -> bool:
    """Whether trio's statistics tell of nobody who could go on soon."""
    now = trio.lowlevel.current_statistics()
    return (
        not now.tasks_runnable
        and not now.run_sync_soon_queue_size
        and now.seconds_to_next_deadline > LATE_SECONDS + LOOK_SECONDS
        and _waiting(now.io_statistics) <= 1  # trio itself, for calls from other threads
        and not trio.to_thread.current_default_thread_limiter().borrowed_tokens
    )


def _waiting(statistics: Any) -> int:
    return sum(getattr(statistics, name, 0) for name in COUNTS)


def _is_on_stack(function: Callable[..., object]) -> bool:
    code = function.__code__
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None
