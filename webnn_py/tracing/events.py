"""The events of a trace, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, Self, get_args

import attrs

from webnn_py.core.device.backend import KernelTiming
from webnn_py.core.observer import ObservedContext
from webnn_py.tracing.operation import Operation
from webnn_py.tracing.source import Source

What = Literal[
    "opened",
    "enqueued",
    "refused",
    "started",
    "kernel",
    "finished",
    "dropped",
    "released",
    "task_started",
    "settled",
    "rejected",
    "task_finished",
    "lost",
]


@attrs.frozen
class KernelRecord:
    """A kernel of a dispatch.

    Attributes:
        name: the kernel's.
        operators: the operators that it computes.
        start_ns: when it began: from the begin of the trace for the clock "host", after the first kernel of the
            dispatch for "gpu".
        duration_ns: how long it took.
        byte_length: bytes that it reads and writes.
        clock: "gpu" or "host".
    """

    name: str
    operators: tuple[str, ...]
    start_ns: int
    duration_ns: int
    byte_length: int
    clock: str

    @classmethod
    def from_timing(cls, timing: KernelTiming, began_ns: int) -> Self:
        """Return the record of a timing, in a trace that began then."""
        start = timing.start_ns - (began_ns if timing.clock == "host" else 0)
        return cls(timing.name, timing.operators, start, timing.duration_ns, timing.bytes_moved, timing.clock)


@attrs.frozen
class RefusedCall:
    """A call that is refused, by an exception or by a promise that is rejected at once; nothing is enqueued.

    Attributes:
        method: the method, as ``"write_buffer"``.
        context: on which; None for ``create_context()`` and the like.
        error: why: the error's type and text.
        source: the user's line that made the call; None if no user's line did.
        labels: those of the buffers, the graph or the operator of the call, as far as they have some.
        buffers: the numbers of the buffers that it was given.
        graph: the number of the graph that it was given; None for none.
        call_ns: how long it took.
    """

    method: str
    context: ObservedContext | None
    error: str
    source: Source | None
    labels: tuple[str, ...]
    buffers: tuple[int, ...]
    graph: int | None
    call_ns: int


@attrs.frozen(eq=False)
class TraceEvent:
    """Something that has happened.

    Attributes:
        what: what happened: the method of :class:`webnn_py.Observer`, but "kernel" for each of ``kernels()``,
            "rejected" for ``settled()`` with an error, and "released" for the end of a release.
        time_ns: when, in nanoseconds from the begin of the trace.
        operation: what it has happened to; of "rejected" whose promise it was, of a task what it answers. None for
            "opened", "lost" and "refused", and for tasks that answer no operation.
        context: whose operation it is, or which was opened or lost.
        kind: the operation's, or the task's: the method that asked for it.
        why: what an operation failed with, was dropped for, or its promise was rejected with; what a call was refused
            with, or a context lost for; None when all is well.
        cause: of "rejected", the call that has rejected it at once, as ``"destroy()"``; None when a task has.
        caused_by: the number of the operation that this call has asked for, such as the release; None if unknown.
        call_ns: of "enqueued", how long the call took so far; of "refused", how long it took.
        kernel: of "kernel", which.
        refusal: of "refused", which call.
    """

    what: What
    time_ns: int
    operation: Operation | None = None
    context: ObservedContext | None = None
    kind: str = ""
    why: str | None = None
    cause: str | None = None
    caused_by: int | None = None
    call_ns: int | None = None
    kernel: KernelRecord | None = None
    refusal: RefusedCall | None = None

    def __str__(self) -> str:
        number = "" if self.operation is None else f" {self.operation.number}"
        why = "" if self.why is None else f": {self.why}"
        where = f" on {self.context}" if self.context is not None and self.context.label else ""
        return f"{self.time_ns / 1e6:.3f} ms {self.what} {self.kind}{number}{where}{why}"


Note = tuple[What, int, Operation | None, Mapping[str, Any]]
"""Something that has happened, but to an operation on its device timeline, which knows that itself.

What, when (on the clock of ``time.perf_counter_ns()``), to which operation, and other attributes of its event.
"""

_RANKS: Final = {what: rank for rank, what in enumerate(get_args(What))}


def events_of(taken: Iterable[Operation | Note], began_ns: int, ended_ns: int) -> tuple[TraceEvent, ...]:
    """Events between two times, in order.

    Args:
        taken: operations, and everything else that was noted.
        began_ns: on the clock of ``time.perf_counter_ns()``.
        ended_ns: on the same clock.
    """
    events = []
    for item in list(taken):
        if isinstance(item, Operation):
            events += [event for event in _of_operation(item, began_ns) if 0 <= event.time_ns <= ended_ns - began_ns]
        else:
            events.append(_of_note(item, began_ns))
    # What clocks show as the same time is ordered by what came first.
    events.sort(key=lambda event: (event.time_ns, event.operation.number if event.operation else 0, _RANKS[event.what]))
    return tuple(_with_causes(events))


def _of_operation(operation: Operation, began_ns: int) -> Iterator[TraceEvent]:
    of: dict[str, Any] = {"operation": operation, "context": operation.context, "kind": operation.kind}
    if operation.enqueued_ns is not None:
        call_ns = operation.enqueued_ns - (operation.began_ns or operation.enqueued_ns)
        yield TraceEvent("enqueued", operation.enqueued_ns - began_ns, **of, call_ns=call_ns)
    if operation.started_ns is not None:
        yield TraceEvent("started", operation.started_ns - began_ns, **of)
    if operation.ended_ns is not None:
        what: What = "dropped" if operation.outcome == "dropped" else "finished"
        yield TraceEvent(what, operation.ended_ns - began_ns, **of, why=operation.why)


def _of_note(note: Note, began_ns: int) -> TraceEvent:
    what, noted_ns, operation, details = note
    of_operation = {} if operation is None else {"context": operation.context, "kind": operation.kind}
    return TraceEvent(what, noted_ns - began_ns, operation, **{**of_operation, **details})


def _with_causes(events: list[TraceEvent]) -> Iterator[TraceEvent]:
    """Return the events, with the operation that a call which rejects promises asks for next."""
    caused_by: int | None = None
    completed = []
    for event in reversed(events):
        if event.what == "enqueued" and event.operation is not None:
            caused_by = event.operation.number
        elif event.what != "rejected":
            caused_by = None
        completed.append(event if event.cause is None else attrs.evolve(event, caused_by=caused_by))
    return reversed(completed)
