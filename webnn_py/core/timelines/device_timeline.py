"""The device timeline: every operation on a context's device, in the order of the calls that asked for it."""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.in_flight import InFlight
from webnn_py.core.timelines.script_timeline import ScriptTimeline
from webnn_py.core.timelines.timeline import Timeline, never_cancelled

Work = Callable[[], Awaitable[None] | None]
"""A device step: done when it returns None, else when what it returns has been awaited.

The next one begins when it is done; with ``InFlight``, it begins at once, and only the answers wait for each other.
"""


@attrs.define(eq=False, repr=False)
class DeviceOperation:
    """An entry of the device timeline, and then, if anything awaits it, of the script timeline.

    Attributes:
        kind: the method that asked for it, or ``"release"``, for ``destroy()`` and the garbage collector.
        work: the device step: a partial of a method of :class:`Device` with the device's own objects.
        settled: called by the script timeline afterwards, with the exception that ended ``work``, or None.
        abortable: whether it is dropped once the context is lost (the spec's "abort when lost"); releases are not.
        aborted: called instead of ``settled`` when the operation is dropped: a function and the promise that it is
            given first. By the call or task that loses the context, or, if that promise was settled before, by the
            script timeline when the operation's turn has come.
        held_bytes: bytes of user data that it holds.
        is_collected: whether it is the release of something that was collected as garbage, not destroyed.
        number: 1 for the first operation of an ``open_ml()`` block that an observer has seen, and so on; 0 before.
        error: what ``settled`` is called with.
    """

    kind: str
    work: Work
    settled: Callable[[Exception | None], None] | None = None
    abortable: bool = True
    aborted: partial[None] | None = None
    held_bytes: int = 0
    is_collected: bool = False
    number: int = 0
    error: Exception | None = attrs.field(init=False)

    @property
    def is_answered(self) -> bool:
        """Return whether a task of the script timeline is still to answer it."""
        return self.settled is not None or self.aborted is not None

    def __call__(self) -> None:
        """Settle the promise; the script timeline calls this once."""
        settled, aborted = self.settled, self.aborted
        self.settled = self.aborted = None
        if settled is not None:
            error, self.error = self.error, None
            settled(error)
        elif aborted is not None:
            aborted()


class DeviceWatch(Protocol):
    """An observer of a device timeline."""

    def enqueued(self, operation: DeviceOperation, /) -> None:
        """An operation is put behind all others."""

    def started(self, operation: DeviceOperation, /) -> None:
        """The device begins an operation."""

    def finished(self, operation: DeviceOperation, error: Exception | None, /) -> None:
        """The device has ended an operation."""

    def dropped(self, operation: DeviceOperation, /) -> None:
        """An operation ends without a result, because the context is lost."""

    def lost(self, why: str, /) -> None:
        """The context is lost."""


class DeviceTimeline(Timeline[DeviceOperation]):
    """One context's operations, first in, first out.

    It outlives the loss of its context: releases are ordinary entries and always run.
    """

    watch: DeviceWatch | None

    def __init__(
        self, script: ScriptTimeline, *, overlapping: bool = False, rest: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__("device timeline", script.trio_run)
        self._overlapping = overlapping
        self._on_rest = rest
        self._script = script
        self._lost = False
        self._answers: deque[tuple[DeviceOperation, Awaitable[None]]] = deque()
        self._answering: trio.lowlevel.Task | None = None
        self._no_more_answers = False

    def _states(self) -> list[str]:
        return [*super()._states(), "context lost"] if self._lost else super()._states()

    @enable_ki_protection
    def lose(self, why: str) -> None:
        """The context is lost: reject what is pending, at once; drop operations in their turn, run releases, then end.

        What the script timeline was asked to settle before is settled by it.
        """
        self._lost = True
        # spec: MLContext.createTensor 6.1; MLContext.createConstantTensor 10.1
        # spec: MLContext.readTensor(tensor) 8.1; MLContext.readTensor(tensor, outputData) 9.1
        # spec: MLContext.writeTensor 7.1; MLContext.dispatch 8.1; build 18.1
        for entry in self.entries():
            aborted = entry.aborted
            if entry.abortable and aborted is not None and aborted.args[0].state == "pending":
                entry.aborted = None
                aborted()
        if self.watch is not None:
            self.watch.lost(why)
        self.close()

    async def _drain_queue(self) -> None:
        if not self._overlapping:
            await super()._drain_queue()
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._give_answers)
            await super()._drain_queue()
            self._no_more_answers = True
            self._wake_answers()

    @enable_ki_protection
    async def _give_answers(self) -> None:
        """Await, in order, what operations that overlap have begun."""
        while self._answers or not self._no_more_answers:
            if not self._answers:
                self._answering = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(never_cancelled)
                continue
            entry, pending = self._answers[0]
            await pending
            self._answers.popleft()
            self._in_flight -= 1
            self._finished(entry)
            del entry, pending  # while the task is parked it must not keep what an entry refers to

    def _wake_answers(self) -> None:
        if self._answering is not None:
            trio.lowlevel.reschedule(self._answering)
            self._answering = None

    def _rest(self) -> None:
        self._on_rest()

    def _set_aside(self, entry: DeviceOperation, pending: Awaitable[None]) -> bool:
        if not isinstance(pending, InFlight):
            return False
        self._answers.append((entry, pending))
        self._wake_answers()
        return True

    def _reads(self, entry: DeviceOperation) -> bool:
        return entry.kind == "read_buffer"

    def entries(self) -> list[DeviceOperation]:
        """Those that have not finished, in order."""
        return [*(entry for entry, _ in self._answers), *super().entries()]

    def _run_entry(self, entry: DeviceOperation) -> Awaitable[None] | None:
        if self._lost and entry.abortable:
            return self._answer(entry, None)
        if self.watch is not None:
            self.watch.started(entry)
        work = entry.work  # on a line of its own, which Python 3.11 is faster with
        try:
            pending = work()
        except Exception as error:  # noqa: BLE001 - whatever a device raises goes to the promise
            return self._answer(entry, _from_device(error))
        if pending is None:
            if self._in_flight:
                return InFlight(self._answer_later(entry, None))
            if entry.settled is not None or self.watch is not None:  # else there is nothing to report it to
                self._say_settled(entry, None)
            return None
        if isinstance(pending, InFlight):
            return InFlight(self._finish(entry, pending))
        return self._finish(entry, pending)

    def _answer(self, entry: DeviceOperation, error: Exception | None) -> InFlight[None] | None:
        """Report the outcome of a finished entry: now, or after all that began before it."""
        if self._in_flight:
            return InFlight(self._answer_later(entry, error))
        self._say_settled(entry, error)
        return None

    async def _answer_later(self, entry: DeviceOperation, error: Exception | None) -> None:
        self._say_settled(entry, error)

    async def _finish(self, entry: DeviceOperation, pending: Awaitable[None]) -> None:
        error: Exception | None = None
        try:
            await pending
        except Exception as raised:  # noqa: BLE001 - whatever a device raises goes to the promise
            error = _from_device(raised)
        if self._in_flight and not isinstance(pending, InFlight):
            await self.wait_until(lambda: not self._in_flight)
        self._say_settled(entry, error)

    def _say_settled(self, entry: DeviceOperation, error: Exception | None) -> None:
        if self._lost and entry.abortable:
            self._say_aborted(entry)
            return
        if entry.settled is not None:
            entry.error = error
            self._script.answer(entry)
        elif error is not None:
            raise error  # a defect of the library, which must not be silent
        if self.watch is not None:
            self.watch.finished(entry, error)

    def _say_aborted(self, entry: DeviceOperation) -> None:
        entry.settled = None
        if entry.aborted is not None:
            self._script.enqueue(entry)
        if self.watch is not None:
            self.watch.dropped(entry)

    @enable_ki_protection
    async def step(self, count: int = 1) -> int:
        """Run the next ``count`` operations of a paused timeline and return how many ran: fewer, if fewer wait.

        On return they have finished and, unless the script timeline is paused, their promises are settled.

        Raises:
            RuntimeError: the timeline is not paused, or another task is stepping it.
            ValueError: ``count`` is less than 1.
        """
        ran = await super().step(count)
        if not self._script.paused:
            await self._script.drain()
        return ran

    async def drain(self) -> None:
        """Wait until every operation queued so far has finished and its promise is settled.

        A timeline that is paused, be it this one or the script timeline, must be resumed or stepped meanwhile.
        """
        await super().drain()
        await self._script.drain()


def _from_device(error: Exception) -> Exception:
    """Return an error without the frame that caught it, which would refer to the entry, and so to itself."""
    return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
