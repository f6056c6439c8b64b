"""A trace in Chrome's trace-event format, which Perfetto and ``chrome://tracing`` open.

Processes are the script (0) and the contexts; threads are lanes. Times are microseconds from the begin of the trace.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from webnn_py.core.message_text import CONTEXT_DESTROYED
from webnn_py.core.observer import ObservedContext
from webnn_py.tracing.events import KernelRecord, RefusedCall, TraceEvent
from webnn_py.tracing.lifetimes import Lifetimes, Present
from webnn_py.tracing.operation import Operation
from webnn_py.tracing.source import Source
from webnn_py.version import __version__

SCRIPT: Final = 0
CALLS: Final = 1
TASKS: Final = 2
"""Lanes of the script's process."""

OPERATIONS: Final = 1
KERNELS: Final = 2
"""Lanes of a context's process."""

Json = dict[str, Any]
_Lane = tuple[int, int]


def chrome_document(
    events: Sequence[TraceEvent], before: Iterable[Present], length_ns: int, most_events: int | None
) -> Json:
    """Return the object form of the format.

    Args:
        events: the events, in order.
        before: what lived when the trace began.
        length_ns: how long it has lasted.
        most_events: the number of events, if there were more, of which the first were forgotten.
    """
    other: Json = {
        "generator": f"webnn_py {__version__}",
        "events": len(events),
        "clock": "perf_counter_ns",
    }
    if most_events is not None:
        other["cut"] = f"only the latest {most_events} events were kept: see most_events of trace()"
    drawing = _Drawing(length_ns)
    for item in before:
        drawing.context(item.context)
        drawing.lifetimes.lived_before(item)
    for event in events:
        drawing.add(event)
    return {"displayTimeUnit": "ms", "otherData": other, "traceEvents": drawing.finished()}


class _Drawing:
    """Draws events one after the other."""

    def __init__(self, length_ns: int) -> None:
        self._length_ns = length_ns
        self._names: list[Json] = _named(SCRIPT, "script", {CALLS: "calls", TASKS: "script timeline"}, {})
        self._drawn: list[Json] = []
        self._contexts: set[int] = set()
        self._lane_end: dict[int, int] = {}
        self._enqueued: dict[int, int] = {}
        self._started: dict[int, TraceEvent] = {}
        self._kernels: dict[int, list[KernelRecord]] = {}
        self._outcomes: dict[int, TraceEvent] = {}
        self._task: TraceEvent | None = None
        self._sources: dict[Source, str] = {}
        self._args: dict[int, Json] = {}
        self._flows = _Flows()
        self.lifetimes = Lifetimes()

    def context(self, context: ObservedContext) -> None:
        """Name the process and the lanes of a context, once."""
        if context.number in self._contexts:
            return
        self._contexts.add(context.number)
        lanes = {OPERATIONS: "device timeline", KERNELS: "kernels"}
        where = {"backend": context.backend, "adapter": context.adapter, "driver": context.driver}
        if context.label:
            where["label"] = context.label
        self._names += _named(context.number, f"{context}: {context.backend}", lanes, where)

    def finished(self) -> list[Json]:
        """Return all of it: names first, then in the order of time."""
        for event in self._started.values():
            assert event.operation is not None  # noqa: S101 - only operations start
            self._operation(event.operation, event.time_ns, self._length_ns, "running", None)
        drawn = self._drawn + self._flows.drawn() + self.lifetimes.drawn()
        return self._names + sorted(drawn, key=lambda event: event["ts"])

    def add(self, event: TraceEvent) -> None:
        """Draw an event."""
        if event.context is not None:
            self.context(event.context)
        operation = event.operation
        if event.what == "task_started":
            self._task = event
        elif event.what == "task_finished":
            self._settlement(event)
        elif event.what == "lost" and event.context is not None:
            lost = f"lost: {event.why}"
            args = {"destroyed": True} if event.why == CONTEXT_DESTROYED else {}
            self._put("i", (event.context.number, OPERATIONS), "context", lost, event.time_ns, s="p", args=args)
        elif event.refusal is not None:
            self._refusal(event, event.refusal)
        elif operation is not None:
            self._of_operation(event, operation)
            self.lifetimes.add(event, operation)

    def _of_operation(self, event: TraceEvent, operation: Operation) -> None:
        number = operation.number
        if event.what == "enqueued":
            self._call(event, operation)
        elif event.what == "started":
            self._started[number] = event
        elif event.what == "kernel" and event.kernel is not None:
            self._kernels.setdefault(number, []).append(event.kernel)
        elif event.what in {"finished", "dropped"}:
            began = self._started.pop(number, None)
            outcome = "dropped" if event.what == "dropped" else "done" if event.why is None else "failed"
            # Operations that began before the trace begin with it.
            unknown = event.time_ns if event.what == "dropped" or number in self._enqueued else 0
            since = unknown if began is None else began.time_ns
            self._operation(operation, since, event.time_ns, outcome, event.why)
        elif event.what in {"settled", "rejected"}:
            self._outcomes[number] = event
            if event.cause is not None:
                args = {"operation": number, "call": event.cause, "cause": event.caused_by, "why": event.why}
                name = f"reject {operation.kind}()"
                self._put("i", (SCRIPT, TASKS), "rejection", name, event.time_ns, s="t", args=args)

    def _of(self, operation: Operation) -> Json:
        """Return the arguments that both the call and the operation have."""
        args = self._args.pop(operation.number, None)
        if args is None:
            args = {"reads": list(operation.reads), "writes": list(operation.writes), "bytes": operation.byte_length}
            args |= _known(graph=operation.graph, labels=list(operation.labels))
            self._args[operation.number] = args
        return args

    def _call(self, event: TraceEvent, operation: Operation) -> None:
        began = max(event.time_ns - (event.call_ns or 0), 0)
        name = "destroy()" if operation.kind == "release" else f"{operation.kind}()"
        if operation.was_collected:
            name = "garbage collection"
        args = {"operation": operation.number, "context": operation.context.number, **self._of(operation)}
        args |= _known(source=self._place(operation.source))
        self._put_span((SCRIPT, CALLS), "call", name, (began, event.time_ns), args)
        self._enqueued[operation.number] = event.time_ns
        self._flows.at(operation, SCRIPT, CALLS, began)

    def _refusal(self, event: TraceEvent, call: RefusedCall) -> None:
        args = _known(
            outcome="refused",
            why=call.error,
            context=None if call.context is None else call.context.number,
            buffers=list(call.buffers),
            graph=call.graph,
            labels=list(call.labels),
            source=self._place(call.source),
        )
        began = max(event.time_ns - call.call_ns, 0)
        self._put_span((SCRIPT, CALLS), "refusal", f"{call.method}()", (began, event.time_ns), args)

    def _place(self, source: Source | None) -> str | None:
        """Return a source in words, which many events share."""
        if source is None:
            return None
        if source not in self._sources:
            self._sources[source] = str(source)
        return self._sources[source]

    def _operation(self, operation: Operation, since: int, until: int, outcome: str, why: str | None) -> None:
        process = operation.context.number
        # A device that keeps the order itself is given the next one early: its turn comes after those before.
        turn = min(max(since, self._lane_end.get(process, 0)), until)
        self._lane_end[process] = until
        args = {"operation": operation.number, "outcome": outcome, **self._of(operation)}
        if operation.number in self._enqueued:
            args["enqueued"] = self._enqueued[operation.number] / 1000
        args |= _known(begun=since / 1000 if turn > since else None, why=why)
        self._put_span((process, OPERATIONS), "operation", operation.kind, (turn, until), args)
        self._flows.at(operation, process, OPERATIONS, turn)
        for kernel, start, length in _placed(self._kernels.pop(operation.number, []), turn, until):
            args = {
                "operation": operation.number,
                "operators": list(kernel.operators),
                "bytes": kernel.byte_length,
                "clock": kernel.clock,
            }
            if length != kernel.duration_ns:
                args["measured"] = kernel.duration_ns / 1000
            self._put_span((process, KERNELS), "kernel", kernel.name, (start, start + length), args)

    def _settlement(self, event: TraceEvent) -> None:
        task, self._task = self._task, None
        since = 0 if task is None else task.time_ns
        operation = event.operation
        if operation is None:
            self._put_span((SCRIPT, TASKS), "task", event.kind, (since, event.time_ns), {})
            return
        args: Json = {"operation": operation.number}
        outcome = self._outcomes.pop(operation.number, None)
        if outcome is not None:
            promise = "fulfilled" if outcome.what == "settled" else "rejected"
            args |= _known(promise=promise, why=outcome.why, before=None if outcome.cause is None else True)
        name = f"settle {operation.kind}()"
        self._put_span((SCRIPT, TASKS), "settlement", name, (since, event.time_ns), args)
        self._flows.at(operation, SCRIPT, TASKS, since)

    def _put(self, phase: str, lane: _Lane, category: str, name: str, time_ns: int, **more: Any) -> None:
        process, thread = lane
        of = {"ph": phase, "pid": process, "tid": thread, "cat": category, "name": name, "ts": time_ns / 1000}
        self._drawn.append({**of, **more})

    def _put_span(self, lane: _Lane, category: str, name: str, span: tuple[int, int], args: Json) -> None:
        """Something that lasts; ``span`` is its begin and its end."""
        begin, end = span
        self._put("X", lane, category, name, begin, dur=(end - begin) / 1000, args=args)


class _Flows:
    """Arrows from the call over the device to the settlement: those that have two ends."""

    def __init__(self) -> None:
        self._points: dict[int, list[tuple[str, int, int, int]]] = {}

    def at(self, operation: Operation, process: int, lane: int, time_ns: int) -> None:
        """An operation is there at that time."""
        self._points.setdefault(operation.number, []).append((operation.kind, process, lane, time_ns))

    def drawn(self) -> list[Json]:
        """Return the arrows."""
        arrows = []
        for number, points in self._points.items():
            if len(points) == 1:
                continue
            phases = ["s", *["t"] * (len(points) - 2), "f"]
            for phase, (kind, process, lane, time_ns) in zip(phases, points, strict=True):
                of = {"ph": phase, "cat": "flow", "name": kind, "id": number, "pid": process, "tid": lane}
                arrows.append({**of, "ts": time_ns / 1000, **({"bp": "e"} if phase == "f" else {})})
        return arrows


def _known(**given: Any) -> Json:
    """Return what is neither None nor an empty list."""
    return {name: value for name, value in given.items() if value is not None and value != []}


def _placed(kernels: Sequence[KernelRecord], since: int, until: int) -> Iterable[tuple[KernelRecord, int, int]]:
    """Kernels with begin and length, within their operation.

    The clock of a GPU has no relation to the host's: the first kernel is put where the operation begins, and what would
    stand out at its end is drawn shorter, all in proportion.
    """
    of_gpu = [kernel for kernel in kernels if kernel.clock == "gpu"]
    span = max((kernel.start_ns + kernel.duration_ns for kernel in of_gpu), default=0)
    scale = min((until - since) / span, 1) if span else 1
    for kernel in kernels:
        if kernel.clock == "gpu":
            start = since + int(kernel.start_ns * scale)
            yield kernel, start, int(kernel.duration_ns * scale)
        else:
            start = min(max(kernel.start_ns, since), until)
            yield kernel, start, min(kernel.duration_ns, until - start)


def _named(process: int, name: str, lanes: dict[int, str], args: Json) -> list[Json]:
    of: Json = {"ph": "M", "pid": process, "ts": 0}
    names = [
        {**of, "name": "process_name", "args": {"name": name, **args}},
        {**of, "name": "process_sort_index", "args": {"sort_index": process}},
    ]
    for lane, lane_name in lanes.items():
        names.append({**of, "tid": lane, "name": "thread_name", "args": {"name": lane_name}})
        names.append({**of, "tid": lane, "name": "thread_sort_index", "args": {"sort_index": lane}})
    return names
