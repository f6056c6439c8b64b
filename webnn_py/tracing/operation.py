"""``Operation``: what a trace or a check notes of an operation, and the table of those that have not ended."""

from __future__ import annotations

from functools import partial
from sys import _getframe
from time import perf_counter_ns
from typing import Any, Literal

import attrs

from webnn_py.core.api.observers import Observers
from webnn_py.core.device.backend import Storage
from webnn_py.core.observer import ObservedContext
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.tracing.accesses import NOTHING, Accesses, accesses_of
from webnn_py.tracing.source import Place, Source, calling_place, source_at

Outcome = Literal["done", "failed", "dropped"]


@attrs.define(eq=False, repr=False)
class Operation:
    """An operation of a device timeline: what a call has asked of a device.

    Attributes:
        number: counted over all contexts of an ``open_ml()`` block, in the order of the calls.
        kind: the method that asked for it, or ``"release"``, for ``destroy()`` or the garbage collector.
        context: the context on whose timeline it is.
        was_collected: whether it is the release of what was not destroyed but collected as garbage.
        accesses: the device's objects that it accesses.
        began_ns: when the call began, on the clock of ``time.perf_counter_ns()``; None if nothing watched yet.
        enqueued_ns: when the call put it onto the timeline; None if nothing watched yet.
        started_ns: when the device began it; None while it has not, or if that was before anything watched.
        ended_ns: when the device finished it, or it was dropped; None before that.
        outcome: None before that.
        why: the reason why it failed or was dropped; None if it did not.
    """

    number: int
    kind: str
    context: ObservedContext
    was_collected: bool
    accesses: Accesses
    _place: Place
    began_ns: int | None = None
    enqueued_ns: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    outcome: Outcome | None = None
    why: str | None = None

    @property
    def source(self) -> Source | None:
        """The user's line that asked for it; None if no user's line did, or if that was before anybody watched."""
        return source_at(self._place)

    @property
    def reads(self) -> tuple[int, ...]:
        """The numbers of the buffers that it reads."""
        return tuple(storage.number for storage in self.accesses.reads)

    @property
    def writes(self) -> tuple[int, ...]:
        """The numbers of the buffers that it writes, makes or releases."""
        return tuple(storage.number for storage in self.accesses.writes)

    @property
    def graph(self) -> int | None:
        """The number of the graph that it makes, runs, saves or releases."""
        return None if self.accesses.graph is None else self.accesses.graph.number

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the buffers and the graph that it touches, as far as they have some."""
        return tuple(dict.fromkeys(thing.label for thing in self.accesses.things if thing.label))

    @property
    def byte_length(self) -> int:
        """The bytes of the buffers that it reads and writes, makes or releases."""
        return sum(thing.descriptor.byte_length for thing in self.accesses.things if isinstance(thing, Storage))

    def __repr__(self) -> str:
        return f"<Operation {self.number} {self.kind} of {self.context}>"


class Operations:
    """What an observer notes of the operations that it has seen and that have not ended.

    What it keeps holds no work, no data and no promises. What is on the way of every operation is written to take
    little time.

    Most operations are dispatches, and often one is given what the last one was, at the same line. What those access is
    kept once: less to find out, and less for the garbage collector to look at.

    Attributes:
        seen: what is noted.
        call: the last call, as ``"destroy()"``; "" in a task before it.
        began_ns: when that was.
        answering: the operation that the script timeline answers.
    """

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self.call = ""
        self.began_ns = 0
        self.answering: Operation | None = None
        self.seen: dict[DeviceOperation, Operation] = {}
        self._arguments: tuple[Any, ...] = ()
        self._accesses = NOTHING
        self._place: Place = None

    def called(self, call: str) -> None:
        """Note a call."""
        self.call, self.began_ns = call, perf_counter_ns()

    def enqueued(self, context: ObservedContext, operation: DeviceOperation) -> Operation:
        """Note an operation, and the line that has asked for it."""
        began_ns: int | None = self.began_ns or None
        work = operation.work
        if operation.is_collected:  # whatever call it happens in has not asked for it
            accesses, place, began_ns = self._numbered(operation), None, perf_counter_ns()
        elif operation.kind != "dispatch" or type(work) is not partial:
            accesses, place = self._numbered(operation), calling_place(_getframe(2))
        elif work.args == self._arguments:  # the line of the call is among them
            accesses, place = self._accesses, self._place
        else:
            accesses, place = self._accesses, self._place = self._numbered(operation), calling_place(_getframe(2))
            is_users = place == work.args[-1]  # else the same call may be made for another line
            self._arguments = work.args if is_users else ()
        seen = self.seen[operation] = Operation(
            operation.number,
            operation.kind,
            context,
            operation.is_collected,
            accesses,
            place,
            began_ns,
            perf_counter_ns(),
        )
        return seen

    def _numbered(self, operation: DeviceOperation) -> Accesses:
        accesses = accesses_of(operation)
        for thing in accesses.things:
            self._observers.number_of(thing)
        return accesses

    def adopt(self, context: ObservedContext, operation: DeviceOperation) -> Operation:
        """Note an operation that was enqueued before anybody watched."""
        accesses = self._numbered(operation)
        seen = Operation(operation.number, operation.kind, context, operation.is_collected, accesses, None)
        self.seen[operation] = seen
        return seen

    def ended(self, operation: DeviceOperation) -> None:
        """The device has ended an operation: forget it, unless its promise is to be settled."""
        if not operation.is_answered:
            self.seen.pop(operation, None)

    def task_started(self, operation: DeviceOperation | None) -> Operation | None:
        """Return what is noted of an operation that the script timeline begins to answer."""
        self.answering = None if operation is None else self.seen.get(operation)
        self.call = ""  # what settles a promise within is the task, unless it is a call that the task makes
        return self.answering

    def task_finished(self, operation: DeviceOperation | None) -> Operation | None:
        """Return what was noted of an operation that is answered, and forget it."""
        self.answering = None
        return None if operation is None else self.seen.pop(operation, None)

    def clear(self) -> None:
        """Forget all."""
        self.seen.clear()
        self._arguments, self._accesses = (), NOTHING
        self.answering = None
