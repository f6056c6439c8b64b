"""``Observers``: the observers of an ``open_ml()`` block, and the watches of its timelines that call them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, final

from webnn_py.core.device.backend import KernelTiming, Storage, TimesKernels
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.message_text import in_brackets, shown
from webnn_py.core.observer import HOOKS, ObservedContext, Observer
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.core.timelines.script_timeline import ScriptEntry, ScriptTimeline

if TYPE_CHECKING:
    from webnn_py.core.api.context import MLContext

_LOGGER: Final = logging.getLogger("webnn_py.observers")

_Hook = tuple[object, Callable[..., None]]
"""An observer, and one of its methods."""


@final
class Observers:
    """The observers of an ``open_ml()`` block: ``ml.observers``.

    Any number may be there; each receives the events from when it is added until it is removed.
    """

    def __init__(self, script: ScriptTimeline) -> None:
        self._script = script
        self._observers: dict[int, object] = {}
        self._watches: dict[MLContext, _ContextWatch] = {}
        self._contexts, self._handles = count(1), count(1)
        self.operations = count(1)
        self.hooks: dict[str, tuple[_Hook, ...]] = dict.fromkeys(HOOKS, ())

    def add(self, observer: object) -> None:
        """Call an observer's hooks from now on.

        Args:
            observer: has any of the methods of :class:`webnn_py.Observer`.

        Raises:
            ValueError: it was added before.
        """
        self._script.trio_run.check("observers.add()", is_call=False)
        if id(observer) in self._observers:
            raise ValueError(f"observers.add(): {shown(observer)} was added before")
        self._observers[id(observer)] = observer
        self._arrange()

    def remove(self, observer: object) -> None:
        """Stop calling an observer's hooks.

        Raises:
            KeyError: it was not added, or it was removed, perhaps because it had raised.
        """
        if self._observers.pop(id(observer), None) is None:
            raise KeyError(f"observers.remove(): {shown(observer)} is not an observer of this block")
        self._arrange()

    def number_of(self, handle: Storage | GraphHandle) -> int:
        """Return the number of a buffer or graph: counted in its block, from when it is first asked for."""
        if not handle.number:
            handle.number = next(self._handles)
        return handle.number

    # --- for the library itself --------------------------------------------------------------------------------

    def opened(self, context: MLContext) -> ObservedContext:
        """Connect a new context."""
        info = context._device.backend.info
        observed = ObservedContext(next(self._contexts), info.name, info.adapter, info.driver, context._label)
        watch = self._watches[context] = _ContextWatch(self, observed)
        if self._observers:
            self._arrange_context(context, watch)
            self.notify("opened", observed)
        return observed

    def closed(self, context: MLContext) -> None:
        """Forget a context whose timeline has ended."""
        del self._watches[context]

    def notify(self, hook: str, *what: object) -> None:
        """Call a hook of all observers that have it."""
        for observer, method in self.hooks[hook]:
            try:
                method(*what)
            except BaseException as error:  # what it raises must not end a timeline, as in trio
                self._observers.pop(id(observer), None)
                self._arrange()
                _LOGGER.warning("%s() of the observer %r raised; it was removed", hook, observer, exc_info=error)

    def _arrange(self) -> None:
        """Find the hooks of the observers, and connect the timelines if there are any observers."""
        hooks: dict[str, list[_Hook]] = {hook: [] for hook in HOOKS}
        for observer in self._observers.values():
            for hook in HOOKS:
                method = getattr(observer, hook, None)
                if method is not None and getattr(method, "__func__", None) is not getattr(Observer, hook):
                    hooks[hook].append((observer, method))
        self.hooks = {hook: tuple(methods) for hook, methods in hooks.items()}
        self._script.watch = _ScriptWatch(self) if self._observers else None
        self._script.trio_run.called = partial(self.notify, "called") if self.hooks["called"] else None
        for context, watch in self._watches.items():
            self._arrange_context(context, watch)

    def _arrange_context(self, context: MLContext, watch: _ContextWatch) -> None:
        timeline, device = context._timeline, context._device
        timeline.watch = watch if self._observers else None
        if self._observers:
            for operation in timeline.entries():
                watch.adopt(operation)
        else:
            watch.rest()
        is_timed = bool(self.hooks["kernels"]) and isinstance(device.backend, TimesKernels)
        device.watch_kernels = watch.kernels if is_timed else None


class _ContextWatch:
    """Calls the observers for the events of a device timeline."""

    def __init__(self, observers: Observers, context: ObservedContext) -> None:
        self.context = context
        self._observers = observers
        self._running: DeviceOperation | None = None
        self._why_lost = ""

    def adopt(self, operation: DeviceOperation) -> None:
        """Number an operation, unless it has a number, and wait for its promise."""
        if operation.number:
            return
        operation.number = next(self._observers.operations)
        if operation.aborted is not None and operation.aborted.args[0].state == "pending":
            operation.aborted.args[0]._observed = partial(self._settled, operation)

    def rest(self) -> None:
        """Forget what runs: there is no observer any more."""
        self._running = None

    def enqueued(self, operation: DeviceOperation) -> None:
        """Report that an operation is put behind all others."""
        self.adopt(operation)
        self._observers.notify("enqueued", self.context, operation)

    def started(self, operation: DeviceOperation) -> None:
        """Report that the device begins an operation."""
        self._running = operation
        self._observers.notify("started", self.context, operation)

    def kernels(self) -> Callable[[Sequence[KernelTiming]], None]:
        """Return what reports the kernels of the dispatch that was started last."""
        return partial(self._observers.notify, "kernels", self.context, self._running)

    def finished(self, operation: DeviceOperation, error: Exception | None) -> None:
        """Report that the device has ended an operation."""
        self._running = None
        self._observers.notify("finished", self.context, operation, error)

    def dropped(self, operation: DeviceOperation) -> None:
        """Report that an operation is dropped."""
        why = f"the context{in_brackets(self.context.label)} is lost: {self._why_lost}"
        self._observers.notify("dropped", self.context, operation, why)

    def lost(self, why: str) -> None:
        """Report that the context is lost or was destroyed."""
        self._why_lost = why
        self._observers.notify("lost", self.context, why)

    def _settled(self, operation: DeviceOperation, error: Exception | None, value: object) -> None:
        self._observers.notify("settled", self.context, operation, error, value)


class _ScriptWatch:
    """Calls the observers for the tasks of the script timeline."""

    def __init__(self, observers: Observers) -> None:
        self._observers = observers

    def enqueued(self, task: ScriptEntry) -> None:
        """A task is put behind all others: its operation was reported as finished or dropped."""

    def run(self, task: ScriptEntry) -> None:
        """Run a task, and report its begin and its end."""
        operation = task if isinstance(task, DeviceOperation) and task.number else None
        self._observers.notify("task_started", task.kind, operation)
        try:
            task()
        finally:
            self._observers.notify("task_finished", task.kind, operation)
