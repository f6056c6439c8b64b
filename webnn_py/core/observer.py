"""``Observer``: the events of an ``open_ml()`` block's timelines; traces and checks are observers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from webnn_py.core.device.backend import KernelTiming, Storage
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.message_text import in_brackets
from webnn_py.core.timelines.device_timeline import DeviceOperation


@attrs.frozen
class ObservedContext:
    """A context, as observers see it.

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


@attrs.frozen(eq=False)
class CallRefusal:
    """A refused call.

    Attributes:
        method: the method, as ``"write_buffer"``.
        context: the context of the call; None for ``create_context()`` and the like.
        error: what it raises, or what its promise is rejected with.
        handles: the device's objects of the buffers and graphs among its arguments, each once.
        label: the label of the operator, buffer or graph that it would have made; "" for none.
    """

    method: str
    context: ObservedContext | None
    error: Exception
    handles: tuple[Storage | GraphHandle, ...]
    label: str


class Observer:
    """The hooks for events, after :class:`trio.abc.Instrument`.

    A subclass, or any other class, defines those methods that it wants; the others cost nothing. They are called in
    trio's thread, at the moment of the event. They must not block, raise, or call the API. One that raises is removed,
    which a warning of the logger ``webnn_py.observers`` reports; the timelines go on.

    An operation is the same object in all events; it may be a key of a table until its last event: ``task_finished``
    if it ``is_answered``, otherwise ``finished`` or ``dropped``. It must not be changed, and must not be kept longer,
    as it holds buffers and data.
    """

    def opened(self, context: ObservedContext) -> None:
        """A context was created."""

    def called(self, call: str) -> None:
        """A method of the API was called, such as ``"write_buffer()"``; it has not checked its arguments yet.

        Those of ``MLGraphBuilder`` that only add to a graph are not reported.
        """

    def refused(self, refusal: CallRefusal) -> None:
        """A call is about to raise, or to return a promise that is rejected; nothing is enqueued."""

    def enqueued(self, context: ObservedContext, operation: DeviceOperation) -> None:
        """A call, or the garbage collector, put an operation onto the device timeline."""

    def started(self, context: ObservedContext, operation: DeviceOperation) -> None:
        """The device begins an operation."""

    def kernels(self, context: ObservedContext, operation: DeviceOperation, timings: Sequence[KernelTiming]) -> None:
        """The kernels of a dispatch have run; called before ``finished``.

        While an observer defines this, dispatches are timed kernel by kernel on devices that can, which takes longer.
        """

    def finished(self, context: ObservedContext, operation: DeviceOperation, error: Exception | None) -> None:
        """The device has ended an operation; its promise, if it has one, is settled later with this error, or None.

        An operation without a promise has no error: a dispatch, write or copy that fails marks the buffers that it
        should have written, and the next read of them has the error.
        """

    def dropped(self, context: ObservedContext, operation: DeviceOperation, why: str) -> None:
        """An operation will not be run, or its result not be used, because the context is lost."""

    def task_started(self, kind: str, operation: DeviceOperation | None) -> None:
        """The script timeline begins a task; it answers ``operation``, unless that is None."""

    def settled(
        self, context: ObservedContext, operation: DeviceOperation, error: Exception | None, value: object
    ) -> None:
        """The promise of an operation is fulfilled with a value, or rejected with an error.

        By the task that answers the operation, or at once by a call, such as ``destroy()``.
        """

    def task_finished(self, kind: str, operation: DeviceOperation | None) -> None:
        """The script timeline has ended a task."""

    def lost(self, context: ObservedContext, why: str) -> None:
        """A context is lost or was destroyed."""


HOOKS: Final = tuple(name for name in vars(Observer) if not name.startswith("_"))
