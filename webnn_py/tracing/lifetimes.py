"""Lifetimes of buffers and graphs, as asynchronous spans of Chrome's trace-event format."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, Self

import attrs

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.observers import Observers
from webnn_py.core.device.backend import Storage
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.message_text import in_brackets
from webnn_py.core.observer import ObservedContext
from webnn_py.tracing.events import TraceEvent
from webnn_py.tracing.operation import Operation

MAKES_BUFFER: Final = frozenset({"create_buffer", "create_constant_buffer", "import_buffer"})
MARKS_OF_GRAPH: Final = {
    "build": "built",
    "SavedGraphs.load": "loaded",
    "SavedGraphs.save": "saved",
    "dispatch": "dispatched",
}
MAKES: Final = MAKES_BUFFER | {"build", "SavedGraphs.load"}

Json = dict[str, Any]
Category = Literal["buffer", "graph"]
Thing = Storage | GraphHandle


@attrs.frozen
class Present:
    """A context, and the buffers and graphs that lived on it when the trace began, all of them numbered."""

    context: ObservedContext
    buffers: Sequence[Storage]
    graphs: Sequence[GraphHandle]

    @classmethod
    def on(cls, context: MLContext, observers: Observers) -> Self:
        """Return what lives on a context now."""
        buffers = [each.storage for each in context.resources if isinstance(each, MLBuffer)]
        graphs = [each.handle for each in context.resources if isinstance(each, MLGraph)]
        things: list[Thing] = [*buffers, *graphs]
        for thing in things:
            observers.number_of(thing)
        return cls(context.observed, buffers, graphs)


class Lifetimes:
    """Draws when buffers and graphs are made, used and released."""

    def __init__(self) -> None:
        self._drawn: list[Json] = []
        self._names: dict[int, str] = {}

    def lived_before(self, present: Present) -> None:
        """Draw the buffers and graphs that lived when the trace began, also those that were not used since."""
        for buffer in present.buffers:
            self._begin(present.context.number, "buffer", buffer, 0, {"before": True})
        for graph in present.graphs:
            self._begin(present.context.number, "graph", graph, 0, {"before": True})

    def drawn(self) -> list[Json]:
        """Return the spans."""
        return self._drawn

    def add(self, event: TraceEvent, operation: Operation) -> None:
        """Draw what an event says of buffers and graphs."""
        if event.what == "enqueued":
            self._enqueued(event, operation)
        elif event.what in {"started", "dropped"}:
            for category, thing in _things(operation):
                self._meet(operation, category, thing)
        elif event.what == "finished" and event.why is None:
            self._finished(event, operation)
        elif event.what == "released":
            for category, thing in _things(operation):
                self._mark(event, operation, category, thing, "released")
                self._put("e", operation.context.number, self._called(category, thing), event.time_ns, {})

    def _enqueued(self, event: TraceEvent, operation: Operation) -> None:
        for category, thing in _things(operation):
            if operation.kind in MAKES:
                args = {"operation": operation.number}
                self._begin(operation.context.number, category, thing, event.time_ns - (event.call_ns or 0), args)
            elif operation.kind == "release":
                self._mark(event, operation, category, thing, "destroyed")
            else:
                self._meet(operation, category, thing)

    def _finished(self, event: TraceEvent, operation: Operation) -> None:
        if operation.kind == "release":
            return
        of_written = "allocated" if operation.kind in MAKES_BUFFER else "written"
        accesses = operation.accesses
        for things, mark in ((accesses.reads, "read"), (accesses.writes, of_written)):
            for thing in things:
                self._mark(event, operation, "buffer", thing, mark)
        if accesses.graph is not None:
            self._mark(event, operation, "graph", accesses.graph, MARKS_OF_GRAPH[operation.kind])

    def _mark(self, event: TraceEvent, operation: Operation, category: Category, thing: Any, mark: str) -> None:
        self._meet(operation, category, thing)
        args: Json = {"operation": operation.number}
        if category == "buffer":
            args["bytes"] = thing.descriptor.byte_length
        self._put("n", operation.context.number, self._called(category, thing, mark), event.time_ns, args)

    def _meet(self, operation: Operation, category: Category, thing: Thing) -> None:
        """A thing that is used; if nothing is known of its begin, it lived before the trace, or the part kept of it."""
        if thing.number not in self._names:
            self._begin(operation.context.number, category, thing, 0, {"before": True})

    def _begin(self, process: int, category: Category, thing: Any, time_ns: int, args: Json) -> None:
        number = thing.number
        self._names[number] = f"{category} {number}{in_brackets(thing.label)}"
        if category == "buffer":
            self._names[number] += f" {thing.descriptor.data_type} {list(thing.descriptor.shape)}"
            args = {**args, "bytes": thing.descriptor.byte_length}
        self._put("b", process, self._called(category, thing), max(time_ns, 0), args)

    def _put(self, phase: str, process: int, of_thing: Json, time_ns: int, args: Json) -> None:
        where = {"pid": process, "tid": 0, "ts": time_ns / 1000}
        self._drawn.append({"ph": phase, **of_thing, **where, "args": args})

    def _called(self, category: Category, thing: Thing, name: str | None = None) -> Json:
        return {"cat": category, "id": thing.number, "name": self._names[thing.number] if name is None else name}


def _things(operation: Operation) -> Iterable[tuple[Category, Thing]]:
    for thing in operation.accesses.things:
        yield "buffer" if isinstance(thing, Storage) else "graph", thing
