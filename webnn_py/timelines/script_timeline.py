"""The script timeline: the queue of tasks that settle promises (the spec's "queue an ML task")."""

from collections.abc import Callable

from webnn_py.timelines.timeline import Timeline
from webnn_py.trio_run import TrioRun


class ScriptTimeline(Timeline[Callable[[], None]]):
    """Runs what devices have to say to scripts, in the order in which they said it."""

    def __init__(self) -> None:
        super().__init__("script timeline", TrioRun("open_ml()"))
        self.after_task: Callable[[], None] | None = None
        """Called after each task: where an embedder runs what its platform runs there, such as microtasks."""

    def _run_entry(self, entry: Callable[[], None]) -> None:
        entry()
        if self.after_task is not None:
            self.after_task()

    def _byte_length(self, entry: Callable[[], None]) -> int:
        return 0
