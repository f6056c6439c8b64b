"""``check()``: finds redundant work, and what a program never destroys."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from sys import _getframe
from time import perf_counter_ns
from typing import Any, Final, Literal, Self, final

import attrs
import numpy as np
from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.ml import ML
from webnn_py.core.api.observers import Observers
from webnn_py.core.graph import Graph
from webnn_py.core.message_text import shown
from webnn_py.core.observer import ObservedContext
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.devices.content_keys import contents
from webnn_py.tracing.lifetimes import MAKES_BUFFER
from webnn_py.tracing.operation import Operation, Operations
from webnn_py.tracing.source import Source, calling_place, source_at

FindingKind = Literal[
    "not-destroyed",
    "tensor-per-call",
    "written-back",
    "through-host",
    "built-again",
    "reads-in-turn",
]

MOST_KEPT: Final = 8
"""The number of tensors of one line, alive at once and each made after another dispatch, that suggests a loop."""

_WORDS: Final = {
    "written-back": ("writes back unchanged what {} has read", "the tensor has it already"),
    "through-host": ("writes what {} has read", "dispatch() with the tensor that has it"),
    "built-again": ("builds the graph that {} has built", "keep that one"),
}

LEAST_BYTES: Final = 16
"""Fewer bytes may be the same by chance."""

READS_IN_TURN: Final = 3
"""The fewest reads in turn that are a finding; fewer may be the end of a program."""

_SHOWN: Final = 5
"""The most lines that are named for the peak of memory, and for waits."""


@attrs.frozen
class CheckFinding:
    """Redundant work of a program, or something that it never destroys.

    Attributes:
        kind: the kind of finding.
        source: the user's line; None where it is not known.
        count: the number of times, or of things.
        message: the finding and its remedy, without the line.
    """

    kind: FindingKind
    source: Source | None
    count: int
    message: str

    def __str__(self) -> str:
        return f"{_place(self.source)}: {self.message} ({self.kind})"


@attrs.define(eq=False)
class _Made:
    """A buffer or a graph, and the line that made it.

    Of buffers, the number of dispatches of the context before they were made, after their last use and when they ended.
    """

    what: Literal["tensor", "graph"]
    source: Source | None
    context: int
    byte_length: int = 0
    dispatches: int = 0
    last_used: int = 0
    ended: float = math.inf

    @property
    def is_gone(self) -> bool:
        """Return whether it was destroyed or collected."""
        return self.ended < math.inf


@attrs.frozen
class _Read:
    """A read of a buffer: its number, how often it had been written, and the line."""

    buffer: int
    writes: int
    source: Source | None


@attrs.define(eq=False)
class _Context:
    """The state of a context."""

    source: Source | None
    dispatches: int = 0
    is_gone: bool = False
    last_read: int = 0
    in_turn: list[Source | None] = attrs.field(factory=list)
    builds: dict[bytes, Source | None] = attrs.field(factory=dict)
    given: set[bytes] = attrs.field(factory=set)
    read: dict[bytes, _Read] = attrs.field(factory=dict)
    writes: Counter[int] = attrs.field(factory=Counter)


@final
class Check:
    """Finds redundant work and what is never destroyed, while it is open; made by :func:`check`.

    It is a block, ``with tracing.check(ml) as check``, that can be entered once. It is an observer, as a trace is, and
    compares the bytes that are written and read.

    Raises:
        RuntimeError: it is entered again.

    Args:
        observers: those of the block.
        at_end: whether what is not destroyed when the block is left never will be.
    """

    def __init__(self, observers: Observers, *, at_end: bool = False) -> None:
        self._observers = observers
        self._operations = Operations(observers)
        self.called = self._operations.called
        self._at_end = at_end
        self._contexts: dict[int, _Context] = defaultdict(lambda: _Context(None))
        self._made: dict[int, _Made] = {}
        self._collected: Counter[Source | None] = Counter()
        self._kept: dict[Source | None, int] = {}
        self._alive: dict[Source | None, Counter[int]] = defaultdict(Counter)
        self._held: Counter[Source | None] = Counter()
        self._peak: Counter[Source | None] = Counter()
        self._found: Counter[tuple[FindingKind, Source | None, Source | None]] = Counter()
        self._in_turn: Counter[tuple[Source | None, ...]] = Counter()
        self._waits: Counter[Source | None] = Counter()
        self._reading: dict[int, tuple[Any, _Read | None]] = {}
        self._hooks: dict[str, Callable[[Operation, _Context, DeviceOperation], None]] = {
            "build": self._build,
            "dispatch": self._dispatch,
            "write_buffer": self._write,
            "read_buffer": self._read,
            "release": self._release,
        }
        self._was_entered = False
        self._is_abandoning = False

    @enable_ki_protection
    def __enter__(self) -> Self:
        if self._was_entered:
            raise RuntimeError("a check can be entered once; make another one by check()")
        self._was_entered = True
        self._observers.add(self)
        return self

    @enable_ki_protection
    def __exit__(self, *_error: object) -> None:
        self._observers.remove(self)
        self._operations.clear()

    @contextmanager
    def abandoning(self) -> Iterator[None]:
        """Within, contexts are destroyed whose program has ended: what they have then was never destroyed."""
        self._is_abandoning = True
        try:
            yield
        finally:
            self._is_abandoning = False

    # --- the hooks of an observer ------------------------------------------------------------------------------

    def opened(self, context: ObservedContext) -> None:
        """A context was created."""
        self._contexts[context.number] = _Context(source_at(calling_place(_getframe(1))))

    def lost(self, context: ObservedContext, _why: str) -> None:
        """A context is lost, and what it has with it."""
        known = self._contexts[context.number]
        if self._is_abandoning:
            return
        known.is_gone = True
        for number, made in self._made.items():
            if made.context == context.number and not made.is_gone:
                self._end(number, made)

    def enqueued(self, observed: ObservedContext, enqueued: DeviceOperation) -> None:
        """A call has asked for something."""
        operation, context = self._operations.enqueued(observed, enqueued), self._contexts[observed.number]
        if operation.kind not in ("read_buffer", "release"):
            self._end_turn(context)
            context.writes.update(operation.writes)
        hook = self._hooks.get(operation.kind)
        if hook is not None:
            hook(operation, context, enqueued)
        elif operation.kind in MAKES_BUFFER:
            self._make(operation, context)
        if operation.kind != "release":
            for number in {*operation.reads, *operation.writes} & self._made.keys():
                self._made[number].last_used = context.dispatches

    def finished(self, _context: ObservedContext, operation: DeviceOperation, _error: Exception | None) -> None:
        """The device has ended an operation."""
        self._operations.ended(operation)

    def dropped(self, _context: ObservedContext, operation: DeviceOperation, _why: str) -> None:
        """An operation ends without a result."""
        self._operations.ended(operation)

    def task_finished(self, _kind: str, operation: DeviceOperation | None) -> None:
        """The script timeline has ended a task."""
        self._operations.task_finished(operation)

    def settled(
        self, context: ObservedContext, operation: DeviceOperation, error: Exception | None, value: object
    ) -> None:
        """A promise is settled; of a read that is fulfilled, its bytes are there."""
        out, read = self._reading.pop(operation.number, (None, None))
        seen = self._operations.seen.get(operation)
        if error is not None or read is None or seen is None:
            return
        self._waits[seen.source] += perf_counter_ns() - (seen.began_ns or perf_counter_ns())
        digest = _digest(value if out is None else out)
        known = self._contexts[context.number]
        if digest is not None and digest not in known.given:
            known.read[digest] = read

    # --- what calls ask for ------------------------------------------------------------------------------------

    def _make(self, operation: Operation, context: _Context) -> None:
        source = operation.source
        for number in operation.writes:
            self._made[number] = _Made(
                "tensor", source, operation.context.number, operation.byte_length, context.dispatches
            )
            self._held[source] += operation.byte_length
            alive = self._alive[source]
            alive[context.dispatches] += 1
            self._kept[source] = max(self._kept.get(source, 0), len(alive))

    def _build(self, operation: Operation, context: _Context, enqueued: DeviceOperation) -> None:
        graph = enqueued.work.args[0]  # type: ignore[attr-defined]  # a partial, as accesses_of() has it
        number = operation.graph
        if number is not None:
            self._made[number] = _Made("graph", operation.source, operation.context.number)
        if isinstance(graph, Graph):
            signature = blake2b(repr(contents(graph)).encode()).digest()
            if signature in context.builds:
                self._found["built-again", operation.source, context.builds[signature]] += 1
            else:
                context.builds[signature] = operation.source

    def _dispatch(self, _operation: Operation, context: _Context, _enqueued: DeviceOperation) -> None:
        context.dispatches += 1

    def _write(self, operation: Operation, context: _Context, enqueued: DeviceOperation) -> None:
        digest = _digest(enqueued.work.args[1])  # type: ignore[attr-defined]
        read = None if digest is None else context.read.get(digest)
        if read is None:
            context.given |= set() if digest is None else {digest}
        elif read.buffer not in operation.writes:
            self._found["through-host", operation.source, read.source] += 1
        elif context.writes[read.buffer] == read.writes + 1:  # this write is the only one since
            self._found["written-back", operation.source, read.source] += 1

    def _read(self, operation: Operation, context: _Context, enqueued: DeviceOperation) -> None:
        (number,) = operation.reads
        read = _Read(number, context.writes[number], operation.source)
        out = enqueued.settled.args[3]  # type: ignore[union-attr]  # a partial of MLContext._settle_read()
        self._reading[operation.number] = out, read
        if context.last_read in self._reading or _was_unseen(context.in_turn, operation.source):  # it was pending
            self._end_turn(context)
        context.last_read = operation.number
        context.in_turn.append(operation.source)

    def _end_turn(self, context: _Context) -> None:
        if context.in_turn:
            self._in_turn[tuple(context.in_turn)] += 1
        context.in_turn = []

    def _release(self, operation: Operation, _context: _Context, _enqueued: DeviceOperation) -> None:
        if self._is_abandoning:
            return
        for number in (*operation.writes, *(() if operation.graph is None else (operation.graph,))):
            made = self._made.get(number)
            if made is None or made.is_gone:
                continue
            if operation.was_collected and made.what == "tensor":
                self._collected[made.source] += 1
            self._end(number, made)

    def _end(self, number: int, made: _Made) -> None:
        made.ended = self._contexts[made.context].dispatches
        if made.what == "graph":
            return
        self._contexts[made.context].writes.pop(number, None)
        self._peak = self._highest()
        self._held[made.source] -= made.byte_length
        alive = self._alive[made.source]
        alive[made.dispatches] -= 1
        if not alive[made.dispatches]:
            del alive[made.dispatches]

    def _highest(self) -> Counter[Source | None]:
        """Return the bytes of tensors by line when they were most."""
        return self._held.copy() if self._held.total() > self._peak.total() else self._peak

    # --- findings --------------------------------------------------------------------------------------

    @property
    def findings(self) -> tuple[CheckFinding, ...]:
        """The findings so far, in the order of the lines."""
        found = [*self._of_lifetimes(), *self._of_bytes(), *self._of_reads()]
        return tuple(sorted(found, key=_order))

    def _of_lifetimes(self) -> Iterator[CheckFinding]:
        leaks = {
            source: count
            for source, count in self._kept.items()
            if count >= MOST_KEPT and self._most_idle(source) >= MOST_KEPT - 1  # the last may be in use
        }
        for source, count in leaks.items():
            text = f"{count} tensors made here lived at once, one for each of as many dispatches"
            yield CheckFinding("tensor-per-call", source, count, f"{text}: make one before the loop, or destroy() each")
        forgotten = Counter(self._collected)
        if self._at_end:
            forgotten.update(made.source for made in self._made.values() if not made.is_gone and made.what == "tensor")
            yield from self._of_the_end()
        for source, count in forgotten.items():
            if source not in leaks:
                text = f"{_times(count, 'tensor')} made here and never destroyed"
                yield CheckFinding("not-destroyed", source, count, f"{text}: call destroy(), or that of the context")

    def _most_idle(self, source: Source | None) -> int:
        """Return how many tensors of a line, made in as many rounds, were kept at once and used by nothing any more."""
        changes: list[tuple[float, int, int]] = []
        for made in self._made.values():
            end = min(made.ended, self._contexts[made.context].dispatches)
            if made.what == "tensor" and made.source == source and end > made.last_used:
                changes += [(made.last_used, 1, made.dispatches), (end, -1, made.dispatches)]
        idle: Counter[int] = Counter()
        rounds = most = 0
        for _, change, round_ in sorted(changes):
            rounds -= idle[round_] > 0
            idle[round_] += change
            rounds += idle[round_] > 0
            most = max(most, rounds)
        return most

    def _of_the_end(self) -> Iterator[CheckFinding]:
        graphs = Counter(made.source for made in self._made.values() if not made.is_gone and made.what == "graph")
        for source, count in graphs.items():
            text = f"{_times(count, 'graph')} built here and never destroyed"
            yield CheckFinding("not-destroyed", source, count, f"{text}: call destroy(), or that of the context")
        contexts = Counter(context.source for context in self._contexts.values() if not context.is_gone)
        for source, count in contexts.items():
            text = f"{_times(count, 'context')} made here and never destroyed"
            yield CheckFinding("not-destroyed", source, count, f"{text}: call destroy()")

    def _of_bytes(self) -> Iterator[CheckFinding]:
        for (kind, source, other), count in self._found.items():
            does, what_to_do = _WORDS[kind]
            yield CheckFinding(kind, source, count, f"{_often(count)} {does.format(_place(other))}: {what_to_do}")

    def _of_reads(self) -> Iterator[CheckFinding]:
        pairs: Counter[Source | None] = Counter()
        # Where a program sometimes leaves out the second of two reads, the first tells it whether it needs the second.
        in_turn = self._in_turn + Counter(tuple(one.in_turn) for one in self._contexts.values() if one.in_turn)
        for sources, count in in_turn.items():
            if len(sources) >= READS_IN_TURN:
                pairs[sources[1]] += len(sources) * count
            elif len(sources) > 1 and count >= READS_IN_TURN and not in_turn[sources[:1]]:
                pairs[sources[-1]] += len(sources) * count
        for source, count in pairs.items():
            text = f"{count} reads of which each waited for the one before"
            yield CheckFinding("reads-in-turn", source, count, f"{text}: start them all, then wait for them together")

    def peak(self) -> tuple[int, dict[Source | None, int]]:
        """Return the most bytes of tensors that existed at once, and how many of them each line made."""
        highest = self._highest()
        return highest.total(), {source: count for source, count in highest.most_common() if count}

    def as_json(self) -> dict[str, Any]:
        """Return the findings as data for JSON, with the peak of memory and the waits for reads by line."""
        most, held = self.peak()
        return {
            "findings": [
                {"kind": one.kind, "line": _place(one.source), "count": one.count, "message": one.message}
                for one in self.findings
            ],
            "peak": {"bytes": most, "held": {_place(source): count for source, count in held.items()}},
            "waits": {_place(source): round(nanoseconds / 1e6, 3) for source, nanoseconds in self._waits.most_common()},
        }

    def lines(self) -> list[str]:
        """Return the report as lines of text: each finding, then the peak of memory and the longest waits."""
        found = self.as_json()
        lines = [str(one) for one in self.findings]
        lines.append(f"{len(lines) or 'no'} finding{'s' if len(lines) != 1 else ''}")
        if found["peak"]["bytes"]:
            held = ", ".join(f"{count} of {line}" for line, count in [*found["peak"]["held"].items()][:_SHOWN])
            lines.append(f"at most {found['peak']['bytes']} bytes in tensors: {held}")
        if found["waits"]:
            waits = ", ".join(
                f"{milliseconds} ms at {line}" for line, milliseconds in [*found["waits"].items()][:_SHOWN]
            )
            lines.append(f"waits for reads: {waits}")
        return lines

    def text(self, form: str) -> str:
        """Return the report as text, or as JSON for the form ``"json"``."""
        return json.dumps(self.as_json(), indent=2) if form == "json" else "\n".join(self.lines())


def check(ml: ML) -> Check:
    """Find redundant work, and what is never destroyed, in an ``open_ml()`` block.

    The findings are tensors made for each call of a loop and kept, tensors left to the garbage collector, bytes
    that are read and written again, graphs that are built again, and reads in turn.

    Returns:
        The check, a block: ``with tracing.check(ml) as check``.

    Raises:
        TypeError: an argument has the wrong type.
    """
    if type(ml) is not ML:
        raise TypeError(f"check(): ml is {shown(ml)}; it must be the ML of an open_ml() block")
    return Check(ml.observers)


@contextmanager
def checking(ml: ML, checks: list[Check] | None) -> Iterator[None]:
    """Check a block after which nothing is destroyed, and add the check to ``checks``, unless that is None."""
    if checks is None:
        yield
        return
    with Check(ml.observers, at_end=True) as checked:
        checks.append(checked)
        yield


def _order(finding: CheckFinding) -> tuple[str, int, str]:
    source = finding.source
    return ("", 0, finding.kind) if source is None else (source.file, source.line, finding.kind)


def _was_unseen(earlier: Sequence[Source | None], source: Source | None) -> bool:
    """Return whether a program in another process had not seen its last read settled when it called for this one."""
    last = earlier[-1] if earlier else None
    return source is not None and last is not None and source.settled is not None and source.settled == last.settled


def _place(source: Source | None) -> str:
    return "an unknown line" if source is None else str(source)


def _times(count: int, what: str) -> str:
    return f"{count} {what}s" if count > 1 else f"a {what}"


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _digest(data: object) -> bytes | None:
    """Return a digest of an array's bytes; None for few bytes, or equal ones, which many arrays have in common."""
    if not isinstance(data, np.ndarray) or data.nbytes < LEAST_BYTES:
        return None
    bytes_ = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    if (bytes_ == bytes_[0]).all():
        return None
    return blake2b(bytes_.data, digest_size=16).digest()
