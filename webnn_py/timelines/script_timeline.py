"""The script timeline: the queue of tasks that settle promises (the spec's "queue an ML task")."""

from collections.abc import Callable
from typing import Any

import attrs

from webnn_py.timelines.timeline import Timeline
from webnn_py.tracing.instruments import ScriptWatch
from webnn_py.tracing.operation import Operation
from webnn_py.trio_run import TrioRun


@attrs.define(eq=False)
class ScriptTask:
    """An entry of the script timeline.

    Attributes:
        kind: what asked for it, for eyes: the method whose promise it settles, or what an embedder calls it.
        run: the task, a function of ``args``.
        answers: the entry of a device timeline that it tells the outcome of; None when it tells that of none.
    """

    kind: str
    run: Callable[..., None]
    args: tuple[Any, ...] = ()
    answers: Operation | None = None


class ScriptTimeline(Timeline[ScriptTask]):
    """Runs what devices have to say to scripts, in the order in which they said it."""

    watch: ScriptWatch | None = None

    def __init__(self) -> None:
        super().__init__("script timeline", TrioRun("open_ml()"))
        self.after_task: Callable[[], None] | None = None
        """Called after each task: where an embedder runs what its platform runs there, such as microtasks."""

    def _run_entry(self, entry: ScriptTask) -> None:
        if self.watch is None:
            entry.run(*entry.args)
        else:
            self.watch.run(entry)
        if self.after_task is not None:
            self.after_task()

    def _byte_length(self, entry: ScriptTask) -> int:
        return 0
