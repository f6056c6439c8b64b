"""The script timeline: the queue of tasks that settle promises (the spec's "queue an ML task")."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import attrs

from webnn_py.timelines.timeline import Timeline
from webnn_py.tracing.instruments import ScriptWatch
from webnn_py.tracing.operation import Operation
from webnn_py.trio_run import TrioRun


@attrs.define(eq=False)
class ScriptTask:
    """An entry of the script timeline that answers no entry of a device timeline.

    Attributes:
        kind: what asked for it, for eyes.
        run: the task, a function of ``args``.
    """

    kind: str
    run: Callable[..., None]
    args: tuple[Any, ...] = ()

    answers: ClassVar[None] = None

    def __call__(self) -> None:
        """Run it."""
        self.run(*self.args)


class Settlement(partial[None]):
    """An entry of the script timeline that tells what became of an entry of a device timeline, its first argument.

    A partial function is a record that takes no longer to make than the function which it is instead of.
    """

    __slots__ = ()

    @property
    def answers(self) -> Operation:
        """The entry."""
        entry: Operation = self.args[0]
        return entry

    @property
    def kind(self) -> str:
        """The method whose promise it settles."""
        return self.answers.kind


class ScriptTimeline(Timeline[ScriptTask | Settlement]):
    """Runs what devices have to say to scripts, in the order in which they said it."""

    watch: ScriptWatch | None

    def __init__(self) -> None:
        super().__init__("script timeline", TrioRun("open_ml()"))
        self.after_task: Callable[[], None] | None = None
        """Called after each task: where an embedder runs what its platform runs there, such as microtasks."""

    def _run_entry(self, entry: ScriptTask | Settlement) -> None:
        if self.watch is None:
            entry()
        else:
            self.watch.run(entry)
        if self.after_task is not None:
            self.after_task()

    def _byte_length(self, entry: ScriptTask | Settlement) -> int:
        return 0
