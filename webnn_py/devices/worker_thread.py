"""The worker thread of a device on the processor, for long steps that other tasks should not wait for."""

import sys
from collections.abc import Callable
from time import perf_counter, thread_time
from types import FrameType
from typing import Any, ClassVar, Final, TypeVar

import trio

T = TypeVar("T")

LATE_SECONDS: Final = 0.02
"""The longest delay of a task that no check has found."""

LOOK_SECONDS: Final = 0.02
"""The interval of checks for other tasks: a check takes 0.1 to 0.2 ms while caches are cold."""

CAREFUL_SECONDS: Final = 1.0
"""The time for which all long steps run in the thread after another task has been found."""

COUNTS: Final = (
    "tasks_waiting",
    "tasks_waiting_read",
    "tasks_waiting_write",
    "tasks_waiting_overlapped",
    "completion_key_monitors",
    "monitors",
)
"""The numbers of waits for the system, in the statistics of trio's loops for Linux, macOS and Windows."""

SHORT_SECONDS: Final = 0.0003
"""Runs that are expected to take less are measured by the wall clock, which is faster to read."""

computing_time: Final[Callable[[], float]] = thread_time if sys.platform != "win32" else perf_counter
"""The clock that measures runs: on a busy machine, it excludes the time that the processor spends on other processes.

On Windows, its resolution is 16 ms only, so that the wall clock is used.
"""


class WorkerThread:
    """The one worker thread of a device.

    The task that waits for it sleeps, and wakes with cold caches. So steps that are not too long run in the loop's
    thread instead, while no other task could run there. This does not apply to a loop in guest mode.
    """

    _away: ClassVar[set[object]] = set()
    """The calls in the threads of all devices at the moment."""

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

    def may_skip_check(self, seconds: float) -> bool:
        """Return whether a step may run inline without a check, because no other task was found a moment ago."""
        return seconds <= LATE_SECONDS and not self._away and perf_counter() < self._alone_until

    async def run_unless_alone(self, call: Callable[[], T], expected_seconds: float) -> T:
        """Call ``call``: inline, if it is short enough and no other task is waiting to run, else in the thread."""
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
        """Return whether no task, deadline, file or thread that trio knows of can go on before the next check ends."""
        if self._is_guest is None:
            self._is_guest = not _is_on_stack(trio.run)
        is_alone = not (self._is_guest or self._away) and _is_quiet() and not await _others_step()
        if not is_alone:
            self._be_careful()
        return is_alone


async def _others_step() -> bool:
    """Return whether other tasks run: those that trio has taken off its queue are in none of its statistics."""
    steps = _Steps()
    trio.lowlevel.add_instrument(steps)
    try:
        await trio.lowlevel.cancel_shielded_checkpoint()
    finally:
        trio.lowlevel.remove_instrument(steps)
    return steps.count > 1


class _Steps(trio.abc.Instrument):
    """Counts the steps of tasks; the last one is the calling task's."""

    count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


def _is_quiet() -> bool:
    """Return whether trio's statistics show no task that could run soon."""
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
