"""``Trace``: the instrument that records every event."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final, Protocol, Self, final

import attrs
from trio.lowlevel import enable_ki_protection

from webnn_py.tracing.events import Note, RefusedCall, TraceEvent, events_of
from webnn_py.tracing.operation import Operation, Present, TracedContext

MOST_EVENTS: Final = 500_000
"""The default number of events that are kept: some hundred megabytes."""

ENDINGS: Final = (".json", ".html")
"""The endings of the names of files that a trace can be written to."""


class Watched(Protocol):
    """An object that has instruments: ``ML``."""

    def add_instrument(self, instrument: object) -> None:
        """Add an instrument."""

    def remove_instrument(self, instrument: object) -> None:
        """Remove an instrument."""

    def _present(self) -> list[Present]:
        """Return the contexts and their objects."""


@final
class Trace:
    """Everything that happens on the timelines while it is open; made by :meth:`webnn_py.ML.trace`.

    It is a block, ``with ml.trace() as trace``, that can be entered once. Any number may be open at a time. What a
    trace has recorded can be inspected and saved while it is open, and after. Some work may go on when the calls
    that asked for it have returned: ``await context.drain()`` within the block waits for it.

    It is an instrument itself; see :class:`webnn_py.tracing.Instrument` for its methods.
    """

    def __init__(self, watched: Watched, *, most_events: int, kernels: bool) -> None:
        self._watched = watched
        self._most_events = most_events
        self._taken: deque[Operation | Note] = deque(maxlen=most_events + 1)
        self._began_ns = 0
        self._ended_ns = 0
        self._before: list[Present] = []
        self.enqueued: Callable[[Operation], None] = self._taken.append
        """An operation was enqueued; what happens to it then, it knows itself."""
        if not kernels:
            vars(self)["kernels"] = None  # as if it had no such method

    @enable_ki_protection
    def __enter__(self) -> Self:
        if self._began_ns:
            raise RuntimeError("trace(): this block has been entered before; call trace() again for another one")
        self._began_ns = perf_counter_ns()
        self._watched.add_instrument(self)
        for present in self._watched._present():
            self._taken.extend(present.operations)
            self._before.append(attrs.evolve(present, operations=()))
        return self

    @enable_ki_protection
    def __exit__(self, *_error: object) -> None:
        self._ended_ns = perf_counter_ns()
        with suppress(KeyError):  # it may have been removed by hand
            self._watched.remove_instrument(self)
        for index, taken in enumerate(self._taken):
            if isinstance(taken, Operation) and taken.outcome is None:
                self._taken[index] = taken.remembered()  # else the trace would hold what it works on

    # --- hooks of an instrument --------------------------------------------------------------------------------

    def opened(self, context: TracedContext) -> None:
        """A context was opened."""
        self._taken.append(("opened", perf_counter_ns(), None, (context, None), None))

    def refused(self, call: RefusedCall) -> None:
        """A call is refused."""
        self._taken.append(("refused", perf_counter_ns(), None, call, None))

    def kernels(self, operation: Operation, timings: Sequence[Any]) -> None:
        """The kernels of a dispatch have run."""
        now = perf_counter_ns()
        self._taken.extend(("kernel", now, operation, timing, None) for timing in timings)

    def released(self, operation: Operation) -> None:
        """It has given memory back."""
        self._taken.append(("released", perf_counter_ns(), operation, None, None))

    def task_started(self, kind: str, operation: Operation | None) -> None:
        """The script timeline begins a task."""
        self._taken.append(("task_started", perf_counter_ns(), operation, kind, None))

    def settled(self, operation: Operation) -> None:
        """Its promise is fulfilled."""
        self._taken.append(("settled", perf_counter_ns(), operation, None, None))

    def rejected(self, operation: Operation, error: Exception, call: str | None) -> None:
        """Its promise is rejected; not the error is kept, which would hold frames and what is in them."""
        words = f"{type(error).__name__}: {error}"
        self._taken.append(("rejected", perf_counter_ns(), operation, words, call))

    def task_finished(self, kind: str, operation: Operation | None) -> None:
        """The script timeline has ended a task."""
        self._taken.append(("task_finished", perf_counter_ns(), operation, kind, None))

    def lost(self, context: TracedContext, why: str) -> None:
        """A context is lost."""
        self._taken.append(("lost", perf_counter_ns(), None, (context, why), None))

    # --- what has been recorded ------------------------------------------------------------------------------

    @property
    def events(self) -> tuple[TraceEvent, ...]:
        """The latest ``most_events`` events so far, in order."""
        return self._events()[-self._most_events :]

    @property
    def is_cut(self) -> bool:
        """Return whether more than ``most_events`` have happened, of which the first were forgotten."""
        return len(self._events()) > self._most_events

    @property
    def seconds(self) -> float:
        """The seconds that it has been open."""
        return ((self._ended_ns or perf_counter_ns()) - self._began_ns) / 1e9 if self._began_ns else 0.0

    def _events(self) -> tuple[TraceEvent, ...]:
        return events_of(self._taken, self._began_ns, self._ended_ns or perf_counter_ns())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file.

        ``.json`` is Chrome's trace-event format, which Perfetto and ``chrome://tracing`` open; ``.html`` is one page,
        complete in itself, that shows the timelines.

        Raises:
            RuntimeError: it has not begun.
            ValueError: the file's name has another ending.
            OSError: it cannot be written.
        """
        target = Path(path)
        try:
            check_ending(target)
        except ValueError as error:
            raise ValueError(f"save(): {error}") from None
        document = self.document()
        if target.suffix.lower() == ".json":
            import json  # noqa: PLC0415 - imported when it is used

            text = json.dumps(document, separators=(",", ":"))
        else:
            from webnn_py.tracing.page import page_of  # noqa: PLC0415 - imported when it is used

            text = page_of(document, target.stem)
        from webnn_py.written_files import written_whole  # noqa: PLC0415 - imported when it is used

        with written_whole(target) as (fresh,):
            fresh.write_text(text, encoding="utf-8")

    def document(self) -> dict[str, Any]:
        """Return the document that ``save()`` writes: the object form of Chrome's trace-event format.

        Raises:
            RuntimeError: it has not begun.
        """
        if not self._began_ns:
            raise RuntimeError("trace(): it has not begun, and there is nothing in it: with ml.trace() as trace: …")
        events = self._events()
        from webnn_py.tracing.chrome import chrome_document  # noqa: PLC0415 - imported when it is used

        return chrome_document(
            events[-self._most_events :],
            self._before,
            length_ns=(self._ended_ns or perf_counter_ns()) - self._began_ns,
            most_events=self._most_events if len(events) > self._most_events else None,
        )

    def __repr__(self) -> str:
        state = "not begun" if not self._began_ns else "ended" if self._ended_ns else "open"
        return f"<Trace {state}, {len(self.events)} events>"


def check_ending(path: Path) -> None:
    """Refuse a file whose name does not end as a trace's must.

    Raises:
        ValueError: it does not.
    """
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path.name!r} does not end in {' or '.join(ENDINGS)}")
