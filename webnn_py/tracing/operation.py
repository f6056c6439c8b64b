"""``Operation``: an entry of a device timeline, as instruments see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import CodeType
from typing import Any, Literal, Protocol

import attrs

from webnn_py.message_text import in_brackets
from webnn_py.tracing.source import Source, source_of


@attrs.frozen
class TracedContext:
    """A context, as instruments see it.

    Attributes:
        number: 1 for the first of an ``open_ml()`` block, and so on.
        backend: the device's name.
        adapter: the processor.
        driver: the library or driver that runs it.
        label: the name that it was given; "" for none.
    """

    number: int
    backend: str
    adapter: str
    driver: str
    label: str = ""

    def __str__(self) -> str:
        return f"context {self.number}{in_brackets(self.label)}"


class Numbered(Protocol):
    """A device's buffer or graph; its number is 0 until it is first asked for, its label "" if it has none."""

    number: int
    label: str


Outcome = Literal["done", "failed", "dropped"]


class OperationWatch(Protocol):
    """The members of its timeline's watch that an operation uses."""

    @property
    def context(self) -> TracedContext:
        """The context of the timeline."""

    @property
    def number_of(self) -> Callable[[Numbered], int]:
        """Numbers the buffers and graphs of all devices."""

    @property
    def accesses_of(self) -> Callable[[Any], Accesses]:
        """Finds the buffers and the graph that an operation accesses."""

    def settled(self, entry: Operation, error: Exception | None) -> None:
        """Note that the promise of an operation was settled."""


Accesses = tuple[Collection[Any], Collection[Any], Numbered | None]
"""The device's buffers that an operation reads, those that it writes, makes or releases, and its graph."""


def nothing() -> None:
    """The work of an operation that has ended."""


class Operation:
    """An entry of a device timeline: what a call has asked of a device.

    What instruments and traces get of it is this; the timelines have a class of their own beneath. While nobody
    watches, nothing here is set, so that it costs nothing.
    """

    __slots__ = (
        "_accesses",
        "_began_ns",
        "_code",
        "_ended_ns",
        "_enqueued_ns",
        "_given",
        "_instruction",
        "_number",
        "_started_ns",
        "_was_collected",
        "_was_dropped",
        "_watch",
        "_why",
        "aborted",
        "kind",
        "settled",
        "work",
    )
    _began_ns: int
    _ended_ns: int
    _enqueued_ns: int
    _given: tuple[Any, ...]
    _started_ns: int
    _was_collected: bool
    _was_dropped: bool
    _why: str | None
    _code: CodeType | Source | None
    _instruction: int
    _number: int
    _accesses: Accesses
    _watch: OperationWatch

    kind: str
    """The method that asked for it, or ``"release"``, for ``destroy()`` or the garbage collector."""

    # For the library itself; the last is given the promise that the operation settles.
    work: Callable[[], Any]
    settled: Callable[[Exception | None], None] | None
    aborted: partial[None] | None

    @property
    def number(self) -> int:
        """Counted over all contexts of an ``open_ml()`` block, in the order of the calls."""
        return self._number

    @property
    def context(self) -> TracedContext:
        """The context on whose timeline it is."""
        return self._watch.context

    @property
    def source(self) -> Source | None:
        """The user's line that asked for it; None if no user's line did, or if that was before anybody watched."""
        code = self._code
        return code if code is None or isinstance(code, Source) else source_of(code, self._instruction)

    @property
    def began_ns(self) -> int | None:
        """When that call began, on the clock of ``time.perf_counter_ns()``; None if nothing watched yet."""
        return self._began_ns or None

    @property
    def enqueued_ns(self) -> int | None:
        """When the call put it onto the timeline; None if nothing watched yet."""
        return self._enqueued_ns or None

    @property
    def started_ns(self) -> int | None:
        """When the device began it; None while it has not, or if that was before anything watched."""
        return getattr(self, "_started_ns", None)

    @property
    def ended_ns(self) -> int | None:
        """When the device finished it, or it was dropped; None before that."""
        return getattr(self, "_ended_ns", None)

    @property
    def outcome(self) -> Outcome | None:
        """``"done"``, ``"failed"`` or ``"dropped"``; None before that."""
        if self.ended_ns is None:
            return None
        return "dropped" if hasattr(self, "_was_dropped") else "done" if self.why is None else "failed"

    @property
    def why(self) -> str | None:
        """The reason why it failed or was dropped; None if it did not."""
        return getattr(self, "_why", None)

    @property
    def was_collected(self) -> bool:
        """Return whether it is the release of what was not destroyed but collected as garbage."""
        return hasattr(self, "_was_collected")

    @property
    def reads(self) -> tuple[int, ...]:
        """The numbers of the buffers that it reads."""
        return tuple(map(self.number_of, self.accesses()[0]))

    @property
    def writes(self) -> tuple[int, ...]:
        """The numbers of the buffers that it writes, makes or releases."""
        return tuple(map(self.number_of, self.accesses()[1]))

    @property
    def graph(self) -> int | None:
        """The number of the graph that it makes, runs, saves or releases."""
        graph = self.accesses()[2]
        return None if graph is None else self.number_of(graph)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the buffers and the graph that it touches, as far as they have some."""
        reads, writes, graph = self.accesses()
        things = (*reads, *writes, *(() if graph is None else (graph,)))
        return tuple(dict.fromkeys(thing.label for thing in things if thing.label))

    @property
    def byte_length(self) -> int:
        """The bytes of the buffers that it reads and writes, makes or releases."""
        reads, writes, _ = self.accesses()
        total: int = sum(buffer.descriptor.byte_length for buffers in (reads, writes) for buffer in buffers)
        return total

    def mark_collected(self) -> None:
        """Note that no call has asked for it but the garbage collector, for the library itself."""
        self._was_collected = True

    def remembered(self) -> Operation:
        """Return a copy without references to work and promises, for the library itself."""
        copy = Operation()
        for name in Operation.__slots__:
            if hasattr(self, name) and name not in {"_given", "aborted", "settled", "work"}:
                setattr(copy, name, getattr(self, name))
        copy._accesses = self.accesses()
        return copy

    def number_of(self, thing: Numbered) -> int:
        """Return the number of a device's buffer or graph, for the library itself."""
        return self._watch.number_of(thing)

    def accesses(self) -> Accesses:
        """Return the device's own objects, for the library itself."""
        try:
            return self._accesses
        except AttributeError:
            self._accesses = self._watch.accesses_of(self)
            return self._accesses

    def __repr__(self) -> str:
        return f"<Operation {self._number} {self.kind} of {self.context}>"


@attrs.frozen(eq=False)
class Present:
    """A context, and what there is on it when a trace begins.

    Attributes:
        context: the context.
        buffers: the buffers that live.
        graphs: the graphs that live.
        operations: what has been enqueued and has not ended.
    """

    context: TracedContext
    buffers: Sequence[Numbered]
    graphs: Sequence[Numbered]
    operations: Sequence[Operation]
