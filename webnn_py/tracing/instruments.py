"""``Instruments``: the instruments of an ``open_ml()`` block, and the watches that call their hooks."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from sys import _getframe
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, Final, Protocol

from webnn_py.message_text import in_brackets
from webnn_py.tracing.events import RefusedCall
from webnn_py.tracing.operation import Accesses, Numbered, Operation, TracedContext, nothing
from webnn_py.tracing.source import Source, user_line

_LOGGER: Final = logging.getLogger("webnn_py.instruments")

_Methods = tuple[Callable[..., None], ...]


class TracedDevice(Protocol):
    """The members of a device that are used."""

    backend: Any
    has_failed: bool


class Task(Protocol):
    """The members of a script timeline's entry that are used; it may be an operation, whose promise it settles."""

    @property
    def kind(self) -> str:
        """The method that asked for it."""

    def __call__(self) -> None:
        """Run it."""


class Instrument:
    """The hooks for events on the timelines, after :class:`trio.abc.Instrument`.

    A subclass, or any other class, defines those methods that it wants; the others cost nothing. They are called in
    trio's thread, while it happens, and must be quick; what they do to the timelines is undefined. One that raises is
    removed, which a warning of the logger ``webnn_py.instruments`` reports.
    """

    def opened(self, context: TracedContext) -> None:
        """A context was opened."""

    def enqueued(self, operation: Operation) -> None:
        """A call, at ``operation.source``, has put an operation onto its device timeline."""

    def refused(self, call: RefusedCall) -> None:
        """A call is refused: it is about to raise, or to return a promise that is rejected."""

    def started(self, operation: Operation) -> None:
        """The device timeline has reached an operation, and the device begins it."""

    def kernels(self, operation: Operation, timings: Sequence[Any]) -> None:
        """The kernels of a dispatch have run; called before ``finished``.

        Where an instrument defines this, dispatches are timed kernel by kernel on devices that can, which takes longer.
        """

    def finished(self, operation: Operation, why: str | None) -> None:
        """The device has ended an operation; ``why`` says how it has failed, if it has."""

    def dropped(self, operation: Operation, why: str) -> None:
        """An operation will not be ended, because the context is lost."""

    def released(self, operation: Operation) -> None:
        """The memory of a buffer or a graph was given back; called after ``finished``."""

    def task_started(self, kind: str, operation: Operation | None) -> None:
        """The script timeline begins a task; it answers ``operation``, unless that is None."""

    def settled(self, operation: Operation) -> None:
        """The promise of an operation is fulfilled."""

    def rejected(self, operation: Operation, error: Exception, call: str | None) -> None:
        """The promise of an operation is rejected.

        It is by the task that answers the operation, or at once by a call, such as ``"destroy()"``; what that asks of
        the device is the next to be ``enqueued``.
        """

    def task_finished(self, kind: str, operation: Operation | None) -> None:
        """The script timeline has ended a task."""

    def lost(self, context: TracedContext, why: str) -> None:
        """A context is lost or was destroyed."""


HOOKS: Final = tuple(name for name in vars(Instrument) if not name.startswith("_"))


class Instruments:
    """The instruments of an ``open_ml()`` block."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Start without instruments; ``changed``, a method that is not kept alive, is called when that changes."""
        self._changed = weakref.WeakMethod(changed)
        self._instruments: dict[int, object] = {}
        self.methods: dict[str, _Methods] = dict.fromkeys(HOOKS, ())
        self.of_enqueued: _Methods = ()
        self._owners: list[tuple[Callable[..., None], object]] = []
        self._things = count(1)
        self._contexts = count(1)
        self.operations = count(1)
        self.call = ""
        """The last of the API's methods that was called, as ``TrioRun.check()`` writes it; "" in a task before it."""
        self.began_ns = 0
        """When that was."""
        self.answering: Operation | None = None
        self.caller: Source | None = None
        """The place in a program of another language that makes the call which is under way."""

    def __bool__(self) -> bool:
        return bool(self._instruments)

    @property
    def wants_kernels(self) -> bool:
        """Return whether one of them has the hook for kernels."""
        return bool(self.methods["kernels"])

    def add(self, instrument: object) -> bool:
        """Add an instrument; False when it was added before."""
        if id(instrument) in self._instruments:
            return False
        self._instruments[id(instrument)] = instrument
        self._arrange()
        return True

    def remove(self, instrument: object) -> bool:
        """Remove an instrument; False when it was not there."""
        if self._instruments.pop(id(instrument), None) is None:
            return False
        self._arrange()
        return True

    def _arrange(self) -> None:
        methods: dict[str, list[Callable[..., None]]] = {hook: [] for hook in HOOKS}
        owners: list[tuple[Callable[..., None], object]] = []
        for instrument in self._instruments.values():
            for hook in HOOKS:
                method = getattr(instrument, hook, None)
                if method is not None and getattr(method, "__func__", None) is not getattr(Instrument, hook):
                    methods[hook].append(method)
                    owners.append((method, instrument))
        self.methods = {hook: tuple(of_hook) for hook, of_hook in methods.items()}
        self.of_enqueued = self.methods["enqueued"]
        self._owners = owners
        changed = self._changed()
        if changed is not None:
            changed()

    def notify(self, hook: str, *what: object) -> None:
        """Call a hook of all instruments that have it."""
        for method in self.methods[hook]:
            try:
                method(*what)
            except BaseException as error:  # noqa: BLE001 - see failed()
                self.failed(hook, method, error)

    def failed(self, hook: str, method: Callable[..., None], error: BaseException) -> None:
        """Remove who has raised, and say so, as trio does: what it raises must not end a timeline."""
        instrument = next((owner for owned, owner in self._owners if owned is method), method)
        self.remove(instrument)
        _LOGGER.warning("%s() of the instrument %r raised; it was removed", hook, instrument, exc_info=error)

    @contextmanager
    def called_from(self, place: Source) -> Iterator[None]:
        """Within, calls are made for a program of another language, at this place in it."""
        self.caller = place
        try:
            yield
        finally:
            self.caller = None

    # --- what those who watch ask of them ----------------------------------------------------------------------

    def number_of(self, thing: Numbered) -> int:
        """Return the number of a device's buffer or graph."""
        if not thing.number:
            thing.number = next(self._things)
        return thing.number

    def watch(self, device: TracedDevice, accesses_of: Callable[[Any], Accesses], label: str) -> ContextWatch:
        """Return the watch of the device timeline of a new context.

        Args:
            device: whose operations are on it.
            accesses_of: returns what an entry accesses.
            label: the context's; "" for none.
        """
        info = device.backend.info
        context = TracedContext(next(self._contexts), info.name, info.adapter, info.driver, label)
        return ContextWatch(self, context, device, accesses_of)


class ContextWatch:
    """Watches one device timeline.

    Attributes:
        context: whose timeline it is.
        device: whose operations are on it.
        observes_starts: whether an instrument has the hook for operations that start, or for kernels.
        observes_ends: whether an instrument has the hook for operations that finish.
    """

    def __init__(
        self,
        instruments: Instruments,
        context: TracedContext,
        device: TracedDevice,
        accesses_of: Callable[[Any], Accesses],
    ) -> None:
        self.context = context
        self.accesses_of = accesses_of
        self.number_of = instruments.number_of
        self._instruments = instruments
        self.device = device
        self.observes_starts = self.observes_ends = False
        self._running: Operation | None = None
        self._given: tuple[Any, ...] = ()
        self._code: CodeType | Source | None = None
        self._instruction = 0
        self._numbers = instruments.operations
        self._why_lost = ""

    def adopt(self, entry: Operation) -> None:
        """Take note of an entry, unless it is known: it was enqueued before anybody watched."""
        if not hasattr(entry, "_number"):
            entry._watch = self
            entry._number = next(self._numbers)
            entry._code = None
            entry._began_ns = entry._enqueued_ns = 0
            if entry.kind == "dispatch" and type(entry.work) is partial:
                entry._given = entry.work.args
            if entry.aborted is not None and entry.aborted.args[0].state == "pending":
                entry.aborted.args[0]._traced = entry

    def arrange(self, *, is_timed: bool) -> None:
        """The instruments have changed; ``is_timed`` says whether the device reports kernels."""
        methods = self._instruments.methods
        self.observes_starts, self.observes_ends = bool(methods["started"]) or is_timed, bool(methods["finished"])

    def rest(self) -> None:
        """Drop references when there are no instruments any more."""
        self._running = None
        self._given, self._code = (), None

    # What is on the way of every operation is written to take no time that can be spared: the timeline itself notes
    # when it starts and ends.

    def enqueued(self, entry: Operation) -> None:
        """An entry is put behind all others."""
        instruments = self._instruments
        work = entry.work
        entry._watch = self
        entry._number = next(self._numbers)
        entry._began_ns = instruments.began_ns
        if entry.kind != "dispatch" or type(work) is not partial:
            self._take_down(entry, _getframe(3))  # the caller of the method that calls enqueue()
        elif work.args == self._given:  # the line of the call is among it
            entry._given, entry._code, entry._instruction = self._given, self._code, self._instruction
        else:
            self._take_down_dispatch(entry, work.args, _getframe(3))
        entry._enqueued_ns = perf_counter_ns()
        for method in instruments.of_enqueued:
            try:
                method(entry)
            except BaseException as error:  # noqa: BLE001 - see failed()
                instruments.failed("enqueued", method, error)

    def _take_down(self, entry: Operation, frame: FrameType) -> None:
        """Note which line has asked for an entry, and whose promise it settles."""
        if entry.kind == "release" and entry.was_collected:  # whatever call it happens in has not asked for it
            entry._code, entry._instruction = None, 0
            entry._began_ns = perf_counter_ns()
        else:
            entry._code, entry._instruction = self._line(frame)
        if entry.aborted is not None:
            entry.aborted.args[0]._traced = entry

    def _take_down_dispatch(self, entry: Operation, given: tuple[Any, ...], frame: FrameType) -> None:
        """Note which line has asked for a dispatch, and what it is given.

        Most operations are dispatches, and often one is given what the last one was. That is kept once: less to find
        out, and one thing for the garbage collector to look at, not five for each dispatch.
        """
        entry._given = given
        entry._code, entry._instruction = self._line(frame)
        is_users = entry._code is frame.f_code  # else the same call may be made for another line
        self._given, self._code, self._instruction = given if is_users else (), entry._code, entry._instruction

    def _line(self, frame: FrameType) -> tuple[CodeType | Source | None, int]:
        caller = self._instruments.caller
        return user_line(frame) if caller is None else (caller, 0)

    def started(self, entry: Operation) -> None:
        """The device is about to begin it."""
        self._running = entry
        self._instruments.notify("started", entry)

    def finished(self, entry: Operation, error: Exception | None) -> None:
        """The device has ended it."""
        if entry.kind == "dispatch":
            entry.work = nothing
        else:
            self._forget(entry)
        if error is not None or self.device.has_failed:
            entry._why = self._failure(entry, error)
        if self.observes_ends:
            self._instruments.notify("finished", entry, entry.why)
        if entry.kind == "release":
            self._instruments.notify("released", entry)

    def kernels(self) -> Callable[[Sequence[Any]], None]:
        """Return the function to call with the kernels of the dispatch that has just been started."""
        operation, self._running = self._running, None
        return lambda timings: self._instruments.notify("kernels", operation, timings)

    def _forget(self, entry: Operation) -> None:
        """It has ended, and may be kept: drop all references except to what it touches."""
        entry._accesses = self.accesses_of(entry)
        entry.work = nothing

    def _failure(self, entry: Operation, error: Exception | None) -> str | None:
        """Return the reason why an entry failed, or left a buffer without data; None if it did not."""
        if error is not None:
            return str(error) or type(error).__name__
        failures = [buffer.failure for buffer in entry.accesses()[1] if entry.kind != "release"]
        return next((str(failure) for failure in failures if failure is not None), None)

    def dropped(self, entry: Operation) -> None:
        """The context is lost, so it will not be ended."""
        entry._ended_ns = perf_counter_ns()
        self._forget(entry)
        entry._why = why = f"the context{in_brackets(self.context.label)} is lost: {self._why_lost}"
        entry._was_dropped = True
        self._instruments.notify("dropped", entry, why)

    def settled(self, entry: Operation, error: Exception | None) -> None:
        """The promise of an entry was fulfilled or rejected."""
        instruments = self._instruments
        if error is None:
            instruments.notify("settled", entry)
        else:
            by_task = instruments.answering is entry or not instruments.call
            instruments.notify("rejected", entry, error, None if by_task else instruments.call)

    def lost(self, why: str) -> None:
        """The context is lost or was destroyed."""
        self._why_lost = why
        self._instruments.notify("lost", self.context, why)


class ScriptWatch:
    """Watches the script timeline."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def enqueued(self, task: Task) -> None:
        """A task is put behind all others: the operation that it answers was reported as finished or dropped."""

    def run(self, task: Task) -> None:
        """Run a task."""
        instruments = self._instruments
        operation = task if isinstance(task, Operation) and hasattr(task, "_number") else None
        instruments.answering = operation
        instruments.call = ""  # what settles a promise within is the task, unless it is a call that the task makes
        instruments.notify("task_started", task.kind, operation)
        try:
            task()
        finally:
            instruments.answering = None
            instruments.notify("task_finished", task.kind, operation)
