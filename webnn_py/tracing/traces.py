"""``trace()``: records every event of the timelines."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from sys import _getframe
from time import perf_counter_ns
from typing import Any, Final, Self, final

from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.ml import ML
from webnn_py.core.descriptors import converted
from webnn_py.core.device.backend import KernelTiming, Storage
from webnn_py.core.message_text import shown
from webnn_py.core.observer import CallRefusal, ObservedContext
from webnn_py.core.operators.idl import boolean
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.tracing.events import KernelRecord, Note, RefusedCall, TraceEvent, What, events_of
from webnn_py.tracing.lifetimes import Present
from webnn_py.tracing.operation import Operation, Operations
from webnn_py.tracing.source import calling_place, source_at

MOST_EVENTS: Final = 500_000
"""The default number of events that are kept: some hundred megabytes."""

ENDINGS: Final = (".json", ".html")
"""The endings of the names of files that a trace can be written to."""


def trace(ml: ML, *, kernels: bool = False, most_events: int = MOST_EVENTS) -> Trace:
    """Record what happens on the timelines of an ``open_ml()`` block.

    Args:
        ml: the block's ``ML``.
        kernels: whether dispatches are timed kernel by kernel, on devices that can; they then take longer, and
            those on a GPU no longer overlap.
        most_events: so many events are kept, the latest.

    Returns:
        The trace, a block: ``with tracing.trace(ml) as trace``.

    Raises:
        TypeError: an argument has the wrong type.
    """
    if type(ml) is not ML:
        raise TypeError(f"trace(): ml is {shown(ml)}; it must be the ML of an open_ml() block")
    if isinstance(most_events, bool) or not isinstance(most_events, int) or most_events < 1:
        raise TypeError(f"trace(): most_events is {shown(most_events)}; it must be an integer from 1")
    return Trace(ml, most_events=most_events, kernels=converted("trace(): kernels", boolean, kernels))


@final
class Trace:
    """Everything that happens on the timelines while it is open; made by :func:`trace`.

    It is a block, ``with tracing.trace(ml) as trace``, that can be entered once. Any number may be open at a time.
    What a trace has recorded can be inspected and saved while it is open, and after. Some work may go on when the calls
    that asked for it have returned: ``await context.drain()`` within the block waits for it.

    It is an observer; see :class:`webnn_py.Observer` for its methods.
    """

    def __init__(self, ml: ML, *, most_events: int, kernels: bool) -> None:
        self._ml = ml
        self._observers = ml.observers
        self._operations = Operations(ml.observers)
        self._seen = self._operations.seen
        self.called = self._operations.called
        self._most_events = most_events
        self._taken: deque[Operation | Note] = deque(maxlen=most_events + 1)
        self._began_ns = 0
        self._ended_ns = 0
        self._before: list[Present] = []
        if not kernels:
            vars(self)["kernels"] = None  # as if it had no such method

    @enable_ki_protection
    def __enter__(self) -> Self:
        if self._began_ns:
            raise RuntimeError("trace(): this block has been entered before; call trace() again for another one")
        self._began_ns = perf_counter_ns()
        self._observers.add(self)
        self._before = [Present.on(context, self._observers) for context in self._ml.contexts]
        return self

    @enable_ki_protection
    def __exit__(self, *_error: object) -> None:
        self._ended_ns = perf_counter_ns()
        with suppress(KeyError):  # it may have been removed by hand
            self._observers.remove(self)
        self._operations.clear()

    # --- the hooks of an observer ------------------------------------------------------------------------------

    def opened(self, context: ObservedContext) -> None:
        """A context was created."""
        self._note("opened", context=context)

    def refused(self, refusal: CallRefusal) -> None:
        """A call is refused."""
        now = perf_counter_ns()
        buffers = [handle for handle in refusal.handles if isinstance(handle, Storage)]
        graphs = [handle for handle in refusal.handles if not isinstance(handle, Storage)]
        call = RefusedCall(
            method=refusal.method,
            context=refusal.context,
            error=_words(refusal.error),
            source=source_at(calling_place(_getframe(1))),
            labels=tuple(filter(None, [refusal.label, *(handle.label for handle in refusal.handles)])),
            buffers=tuple(map(self._observers.number_of, buffers)),
            graph=self._observers.number_of(graphs[0]) if graphs else None,
            call_ns=now - self._operations.began_ns if self._operations.call == f"{refusal.method}()" else 0,
        )
        self._note(
            "refused", context=call.context, kind=call.method, why=call.error, call_ns=call.call_ns, refusal=call
        )

    def enqueued(self, context: ObservedContext, operation: DeviceOperation) -> None:
        """A call has asked for an operation; what happens to it then is noted in the record of it."""
        self._taken.append(self._operations.enqueued(context, operation))

    def _adopt(self, context: ObservedContext, operation: DeviceOperation) -> Operation:
        seen = self._operations.adopt(context, operation)
        self._taken.append(seen)
        return seen

    def started(self, context: ObservedContext, operation: DeviceOperation) -> None:
        """The device begins an operation."""
        seen = self._seen.get(operation) or self._adopt(context, operation)
        seen.started_ns = perf_counter_ns()

    def kernels(self, context: ObservedContext, operation: DeviceOperation, timings: Sequence[KernelTiming]) -> None:
        """The kernels of a dispatch have run."""
        seen = self._seen.get(operation) or self._adopt(context, operation)
        for timing in timings:
            self._note("kernel", seen, kernel=KernelRecord.from_timing(timing, self._began_ns))

    def finished(self, context: ObservedContext, operation: DeviceOperation, error: Exception | None) -> None:
        """The device has ended an operation."""
        seen = self._seen.get(operation) or self._adopt(context, operation)
        seen.ended_ns = perf_counter_ns()
        seen.why = _failure(seen, error)
        seen.outcome = "done" if seen.why is None else "failed"
        if seen.kind == "release":
            self._note("released", seen)
        self._operations.ended(operation)

    def dropped(self, context: ObservedContext, operation: DeviceOperation, why: str) -> None:
        """An operation ends without a result."""
        seen = self._seen.get(operation) or self._adopt(context, operation)
        seen.ended_ns, seen.why, seen.outcome = perf_counter_ns(), why, "dropped"
        self._operations.ended(operation)

    def task_started(self, kind: str, operation: DeviceOperation | None) -> None:
        """The script timeline begins a task."""
        self._note("task_started", self._operations.task_started(operation), kind=kind)

    def settled(
        self, context: ObservedContext, operation: DeviceOperation, error: Exception | None, _value: object
    ) -> None:
        """A promise is settled; not the error is kept, which would hold frames and what is in them."""
        seen = self._seen.get(operation) or self._adopt(context, operation)
        if error is None:
            self._note("settled", seen)
        else:
            call = None if self._operations.answering is seen else self._operations.call or None
            self._note("rejected", seen, why=_words(error), cause=call)

    def task_finished(self, kind: str, operation: DeviceOperation | None) -> None:
        """The script timeline has ended a task."""
        self._note("task_finished", self._operations.task_finished(operation), kind=kind)

    def lost(self, context: ObservedContext, why: str) -> None:
        """A context is lost."""
        self._note("lost", context=context, why=why)

    def _note(self, what: What, operation: Operation | None = None, **details: Any) -> None:
        self._taken.append((what, perf_counter_ns(), operation, details))

    # --- what has been recorded ------------------------------------------------------------------------------

    @property
    def events(self) -> tuple[TraceEvent, ...]:
        """The latest ``most_events`` events so far, in order."""
        return self._events()[-self._most_events :]

    @property
    def is_cut(self) -> bool:
        """Return whether more than ``most_events`` have happened, of which the first were forgotten."""
        return len(self._events()) > self._most_events

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
            raise RuntimeError(
                "trace(): it has not begun, and there is nothing in it: with tracing.trace(ml) as trace: …"
            )
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


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _failure(operation: Operation, error: Exception | None) -> str | None:
    """Return the reason why an operation failed, or left a buffer without data; None if it did not."""
    if error is not None:
        return str(error) or type(error).__name__
    if operation.kind == "release":
        return None
    for storage in operation.accesses.writes:
        if storage.failure is not None:
            return str(storage.failure)
    return None


def check_ending(path: Path) -> None:
    """Refuse a file whose name does not end as a trace's must.

    Raises:
        ValueError: it does not.
    """
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path.name!r} does not end in {' or '.join(ENDINGS)}")
