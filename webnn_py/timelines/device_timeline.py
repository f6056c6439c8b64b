"""The device timeline: every operation on a context's device, in the order of the calls that asked for it."""

from collections.abc import Awaitable, Callable
from functools import partial

import attrs

from webnn_py.timelines.script_timeline import ScriptTimeline
from webnn_py.timelines.timeline import Timeline

Work = Callable[[], Awaitable[None] | None]
"""A device step: done when it returns None, else when what it returns has been awaited."""


@attrs.define(eq=False)
class DeviceOperation:
    """An entry of the device timeline.

    Attributes:
        kind: the method that asked for it, for eyes.
        work: the device step.
        settled: queued to the script timeline afterwards, with the exception that ended ``work``, or None.
        abortable: whether it is dropped once the context is lost (the spec's "abort when lost"); releases are not.
        aborted: queued to the script timeline instead of ``settled`` when the operation was dropped.
        byte_length: bytes of user data that it holds.
    """

    kind: str
    work: Work
    settled: Callable[[Exception | None], None] | None = None
    abortable: bool = True
    aborted: Callable[[], None] | None = None
    byte_length: int = 0


class DeviceTimeline(Timeline[DeviceOperation]):
    """One context's operations, first in, first out.

    It outlives the loss of its context: releases are ordinary entries and always run.
    """

    def __init__(self, script: ScriptTimeline) -> None:
        super().__init__("device timeline")
        self._script = script
        self._lost = False

    def lose(self) -> None:
        """The context is lost: drop operations that can be dropped, run releases, then end."""
        self._lost = True
        self.close()

    def _byte_length(self, entry: DeviceOperation) -> int:
        return entry.byte_length

    def _run_entry(self, entry: DeviceOperation) -> Awaitable[None] | None:
        if self._lost and entry.abortable:
            self._say_aborted(entry)
            return None
        try:
            pending = entry.work()
        except Exception as error:  # noqa: BLE001 - whatever a device raises goes to the promise
            self._say_settled(entry, error)
            return None
        if pending is None:
            self._say_settled(entry, None)
            return None
        return self._finish(entry, pending)

    async def _finish(self, entry: DeviceOperation, pending: Awaitable[None]) -> None:
        try:
            await pending
        except Exception as error:  # noqa: BLE001 - whatever a device raises goes to the promise
            self._say_settled(entry, error)
        else:
            self._say_settled(entry, None)

    def _say_settled(self, entry: DeviceOperation, error: Exception | None) -> None:
        if self._lost and entry.abortable:
            self._say_aborted(entry)
        elif entry.settled is not None:
            self._script.enqueue(partial(entry.settled, error))
        elif error is not None:
            raise error  # nobody to tell: a defect of the library, and never silent

    def _say_aborted(self, entry: DeviceOperation) -> None:
        if entry.aborted is not None:
            self._script.enqueue(entry.aborted)

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
        """Wait until every operation that is queued now has finished and its promise is settled.

        A timeline that is paused, be it this one or the script timeline, must be resumed or stepped meanwhile.
        """
        await super().drain()
        await self._script.drain()
