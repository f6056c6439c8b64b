"""The script timeline: the queue of tasks that settle promises (the spec's "queue an ML task")."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import attrs

from webnn_py.core.timelines.timeline import Entry, Timeline
from webnn_py.core.trio_run import TrioRun


class ScriptEntry(Entry, Protocol):
    """An entry of the script timeline: a task, or an entry of a device timeline whose outcome is to be reported."""

    @property
    def kind(self) -> str:
        """The method that asked for it."""

    def __call__(self) -> None:
        """Run it."""


class ScriptWatch(Protocol):
    """An observer of the script timeline."""

    def enqueued(self, task: ScriptEntry, /) -> None:
        """A task is put behind all others."""

    def run(self, task: ScriptEntry, /) -> None:
        """Run a task."""


@attrs.define(eq=False)
class ScriptTask:
    """An entry of the script timeline that answers no entry of a device timeline.

    Attributes:
        kind: what asked for it, for eyes.
        run: the task, a function of ``args``.
    """

    kind: str
    run: Callable[..., object]
    args: tuple[Any, ...] = ()

    held_bytes: ClassVar[int] = 0

    def __call__(self) -> None:
        """Run it."""
        self.run(*self.args)


class ScriptTimeline(Timeline[ScriptEntry]):
    """Runs the answers of devices to scripts, in the order in which they came."""

    watch: ScriptWatch | None

    def __init__(self) -> None:
        super().__init__("script timeline", TrioRun("open_ml()"))

    def answer(self, entry: ScriptEntry) -> None:
        """Run a device timeline's entry: on the fast path at once if nothing waits here, which spares a turn of trio's.

        To be called by the task that drains the device timeline, or runs what waits there.
        """
        if self._parked is None or not self._is_undisturbed:
            self.enqueue(entry)
            return
        entry()
        self._done += 1
        if self._waiters:
            self._wake_waiters()

    def _run_entry(self, entry: ScriptEntry) -> None:
        if self.watch is None:
            entry()
        else:
            self.watch.run(entry)
