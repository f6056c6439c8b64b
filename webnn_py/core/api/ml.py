"""``open_ml()`` and ``ML``: opens contexts, and owns the timelines."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, final, get_args

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.argument_checks import label_of
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.experiments import experiments
from webnn_py.core.api.experiments import extensions as all_extensions
from webnn_py.core.api.observers import Observers
from webnn_py.core.api.records import MLPowerPreference
from webnn_py.core.api.refused_calls import rejected_promise
from webnn_py.core.descriptors import converted, unsigned_long
from webnn_py.core.device import registry
from webnn_py.core.device.backend import Backend
from webnn_py.core.device.registry import OpenRequest
from webnn_py.core.errors import InvalidStateError, NotSupportedError, SecurityError
from webnn_py.core.extension import Extension
from webnn_py.core.handle import Handle
from webnn_py.core.message_text import device_text, shown, words_of
from webnn_py.core.operators.idl import boolean, enumeration
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.core.timelines.script_timeline import ScriptTask, ScriptTimeline
from webnn_py.core.trio_run import check_in_trio
from webnn_py.core.unreported_errors import calling_line

OWN_OPTIONS: Final = ("power_preference", "accelerated", "backend", "max_queued_bytes", "label")
"""The options of ``create_context()`` that are no device's."""

Policy = Callable[[], bool]
"""Says whether the API may be used; asked by ``create_context()`` and ``MLGraphBuilder()``."""


@final
class ML(Handle):
    """Makes contexts (section "ML interface"); made by :func:`open_ml`."""

    _made_by = "open_ml()"

    _observed: None = None
    script_timeline: ScriptTimeline
    """The queue of tasks that settle promises; tests and teaching pause and step it."""
    _observers: Observers

    def _begin(
        self,
        nursery: trio.Nursery,
        policy: Policy,
        experimental: frozenset[str],
        extensions: tuple[Extension, ...],
    ) -> Self:
        self._nursery = nursery
        self._policy = policy
        self._experimental, self._extensions = experimental, extensions
        self._contexts: dict[MLContext, None] = {}
        self._closed = False
        self._opening = 0
        self._opened = trio.Event()
        self.script_timeline = ScriptTimeline()
        self._trio_run = self.script_timeline.trio_run
        self._observers = Observers(self.script_timeline)
        nursery.start_soon(self.script_timeline.run)
        return self

    @property
    def observers(self) -> Observers:
        """Those that are called for the events of the timelines, to be added and removed. Not in the specification."""
        return self._observers

    @property
    def contexts(self) -> tuple[MLContext, ...]:
        """The contexts that have not ended, in the order of their creation. Not in the specification."""
        return tuple(self._contexts)

    @property
    def opening(self) -> trio.Event | None:
        """An event for when all contexts are there that take their time to open; None if none is being opened.

        Not in the specification.
        """
        return self._opened if self._opening else None

    @enable_ki_protection
    def create_context(
        self,
        *,
        power_preference: MLPowerPreference = "default",
        accelerated: bool = True,
        backend: str | None = None,
        max_queued_bytes: int | None = None,
        label: str = "",
        **options: Any,
    ) -> MLPromise[MLContext]:
        """Make a context: a device with a timeline of its own (section "createContext() method").

        Args:
            power_preference: a hint: ``"default"``, ``"high-performance"`` or ``"low-power"``.
            accelerated: a hint: whether a GPU or another accelerator is wanted.
            backend: the name of a device, and no other is taken: ``"numpy"``, ``"wgpu"``, ``"onnxruntime"``, or what
                another package registers. None to choose: a GPU where there is one that is no software, otherwise
                onnxruntime where the extra of that name is installed, otherwise numpy. Not in the specification.
            max_queued_bytes: what :meth:`MLContext.wait_for_capacity` waits for. Not in the specification.
            label: a name for the context in messages and traces. Not in the specification.
            **options: what only some devices have, as ``gpu_device`` or ``threads`` (docs/devices.md); None is as if
                not given. Without ``backend``, an option chooses the device that has it. All but ``gpu_device`` are
                not in the specification.

        Returns:
            A promise of the context, rejected with ``TypeError`` for a bad argument, ``SecurityError`` when the
            policy denies it, ``NotSupportedError`` when there is no such device, ``InvalidStateError`` when the
            ``open_ml()`` block has been left.
        """
        self._trio_run.check("create_context()")
        asked = {
            "power_preference": power_preference,
            "accelerated": accelerated,
            "backend": backend,
            "max_queued_bytes": max_queued_bytes,
            "label": label,
        }
        try:
            opening, of_context = self._checked_options(asked, options)
            # spec: ML.createContext(options) 3; ML.createContext(gpuDevice) 3
            self._check_allowed("create_context")
            if self._closed:
                raise InvalidStateError("the open_ml() block has been left")
            # spec: ML.createContext(options) 5-5.1; ML.createContext(gpuDevice) 5-5.1
            opened = opening()
        except (TypeError, SecurityError, NotSupportedError, InvalidStateError) as error:
            return rejected_promise(self, "create_context", error)
        if isinstance(opened, Awaitable):
            return self._create_context_later(opened, of_context)
        return self._create_context(opened, **of_context)

    def _checked_options(
        self, asked: Mapping[str, Any], options: Mapping[str, object], others: Collection[str] = ()
    ) -> tuple[Callable[[], Backend | Awaitable[Backend]], dict[str, Any]]:
        """Check the options of :meth:`create_context`, and open nothing.

        Args:
            asked: its own, those that are absent left out.
            options: devices'.
            others: further names that one which is unknown may be meant for.

        Returns:
            A function that opens the device, and the arguments of the context.

        Raises:
            TypeError: one is unknown, or is not what it must be.
            NotSupportedError: the device's record cannot be loaded.
        """
        asked = {**asked, **options}
        for extension in self._extensions:
            extension.options(asked)
        options = {name: value for name, value in asked.items() if name not in OWN_OPTIONS}
        preference = asked.get("power_preference", "default")
        # spec: create a context 2-2.2, 3, 3.3-3.4
        preference = converted("power_preference", enumeration(get_args(MLPowerPreference)), preference)
        # spec: create a context 2.3, 3.5-3.6
        accelerated = converted("accelerated", boolean, asked.get("accelerated", True))
        backend, most_bytes = map(asked.get, ("backend", "max_queued_bytes"))
        of_context: dict[str, Any] = {
            "power_preference": preference,
            "accelerated": accelerated,
            "max_queued_bytes": None
            if most_bytes is None
            else converted("max_queued_bytes", unsigned_long, most_bytes),
            "label": label_of(asked.get("label", "")),
        }
        request = OpenRequest(preference, accelerated)
        given = {name: value for name, value in options.items() if value is not None}
        return registry.choose(backend, request, given, (*OWN_OPTIONS, *others)), of_context

    def check_options(self, options: Mapping[str, object], others: Collection[str] = ()) -> None:
        """Check the options of a context that is created later, all together. Not in the specification.

        Args:
            options: those of :meth:`create_context`, by name.
            others: further names that one which is unknown may be meant for.

        Raises:
            TypeError: one is unknown, or is not what it must be.
            NotSupportedError: the device's record cannot be loaded.
        """
        asked = {name: options[name] for name in OWN_OPTIONS if name in options}
        self._checked_options(asked, {name: options[name] for name in options if name not in asked}, others)

    def _create_context_later(self, opening: Awaitable[Backend], options: dict[str, Any]) -> MLPromise[MLContext]:
        """Make a context on a device that takes its time to open: in parallel, as the specification says."""
        # spec: ML.createContext(options) 4-5; ML.createContext(gpuDevice) 4-5
        promise: MLPromise[MLContext] = MLPromise._create(
            "create_context()", self.script_timeline.trio_run, calling_line(2)
        )
        self._opening += 1
        self._nursery.start_soon(self._finish_opening, opening, options, promise)
        return promise

    @enable_ki_protection
    async def _finish_opening(
        self, opening: Awaitable[Backend], options: dict[str, Any], promise: MLPromise[MLContext]
    ) -> None:
        try:
            await self._open(opening, options, promise)
        finally:
            self._opening -= 1
            if not self._opening:
                self._opened.set()
                self._opened = trio.Event()

    @enable_ki_protection
    async def _open(self, opening: Awaitable[Backend], options: dict[str, Any], promise: MLPromise[MLContext]) -> None:
        try:
            with trio.CancelScope(shield=True):
                backend = await opening
        except Exception as error:  # noqa: BLE001 - a driver may fail in any way; the promise reports it
            # spec: create a context 4
            refusal = (
                error if isinstance(error, (TypeError, NotSupportedError)) else NotSupportedError(device_text(error))
            )
            refusal = type(refusal)(f"create_context(): {refusal}")
            # spec: ML.createContext(options) 5.1; ML.createContext(gpuDevice) 5.1
            self.script_timeline.enqueue(ScriptTask("create_context", partial(promise._reject, refusal)))
            return
        self._create_context(backend, promise, **options)

    def _create_context(
        self, backend: Backend, promise: MLPromise[MLContext] | None = None, **options: Any
    ) -> MLPromise[MLContext]:
        """Make a context on a backend that is there, and fulfil ``promise`` or a new one with it."""
        if promise is None:
            # spec: ML.createContext(options) 4, 6; ML.createContext(gpuDevice) 4, 6
            promise = MLPromise._create("create_context()", self.script_timeline.trio_run)
        if self._closed:
            backend.close()
            left = InvalidStateError("create_context(): the open_ml() block has been left")
            promise._reject(left, is_reported=True)
            return promise
        # spec: create a context 1, 5
        context = MLContext._create(self, backend, **options)
        self._contexts[context] = None
        self._nursery.start_soon(self._run_context, context)
        # spec: ML.createContext(options) 5.2; ML.createContext(gpuDevice) 5.2; queue an ML task 0
        self.script_timeline.enqueue(ScriptTask("create_context", partial(promise._resolve, context)))
        return promise

    @enable_ki_protection
    async def _run_context(self, context: MLContext) -> None:
        await context._run()
        del self._contexts[context]
        self._observers.closed(context)

    def _check_allowed(self, method: str) -> None:
        try:
            allowed = bool(self._policy())
        except Exception as error:
            raise SecurityError(f"{method}(): the policy failed: {words_of(error)}") from error
        if not allowed:
            raise SecurityError(f"{method}(): the policy denies the use of the Web Neural Network API")

    # --- the end -----------------------------------------------------------------------------------------------

    def _lose_all(self) -> None:
        self._closed = True
        for context in self._contexts:
            if not context.device_timeline.ended:  # else a crash has ended it
                context._lose("the open_ml() block has been left")
                context.device_timeline.resume()
        self.script_timeline.resume()

    async def _end(self) -> None:
        """Let every release run and every promise settle, and end the timelines."""
        if self._opening:
            await self._opened.wait()
        for context in list(self._contexts):
            await context.device_timeline.wait_ended()
        # Callbacks of finalizers of collected buffers were posted before this, and run before it.
        collected = trio.Event()
        trio.lowlevel.current_trio_token().run_sync_soon(collected.set)
        await collected.wait()
        self.script_timeline.close()
        await self.script_timeline.wait_ended()

    def _described(self) -> str:
        return f"{len(self._contexts)} contexts{', closed' if self._closed else ''}"


ENTERING = "enter it by 'async with open_ml() as ml'"


on_opened: Final[list[Callable[[ML], None]]] = []
"""Called with each ``ML`` that is opened, so that the command ``check`` reaches those of a program."""


@final
class open_ml:  # noqa: N801 - used like a function
    """Open the API: ``async with open_ml() as ml``.

    The block owns the timelines. Leaving it, also by an exception or a cancellation, destroys every context, settles
    every promise and runs every release, so that nothing is left on any device. An exception of the block comes out
    of it as it is. A process that is forked within the block ends where it leaves it.

    Args:
        policy: says whether the API may be used; by default it may. One that raises denies it.
        experimental: proposals to be tried, by name; most are extensions, which need not be given then. Not in the
            specification; see the pages on proposals.
        extensions: extensions for all contexts of the block. Not in the specification.

    Raises:
        TypeError: ``policy`` cannot be called, or another argument has the wrong type.
    """

    def __init__(
        self,
        *,
        policy: Policy = lambda: True,
        experimental: Collection[str] = (),
        extensions: Collection[Extension] = (),
    ) -> None:
        if not callable(policy):
            raise TypeError(f"open_ml(): policy is {shown(policy)}; it must be a function of no arguments")
        self._policy = policy
        self._experimental = converted("open_ml(): experimental", experiments, experimental)
        self._extensions = converted(
            "open_ml(): extensions", lambda given: all_extensions(given, self._experimental), extensions
        )
        self._entered = False

    @enable_ki_protection
    async def __aenter__(self) -> ML:
        check_in_trio("open_ml()")
        if self._entered:
            raise RuntimeError("open_ml(): this block has been entered before; call open_ml() again for another one")
        self._entered = True
        self._manager = trio.open_nursery()
        nursery = await self._manager.__aenter__()
        self._ml = ML.__new__(ML)._begin(nursery, self._policy, self._experimental, self._extensions)
        for called in on_opened:
            called(self._ml)
        return self._ml

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._ml._trio_run.is_inherited:
            _end_forked_process(error)
        self._ml._lose_all()
        await _undisturbed(self._ml._nursery, self._ml._end)
        if self._ml._nursery.cancel_scope.cancel_called:  # a timeline crashed, which the nursery reports
            return await self._manager.__aexit__(kind, error, traceback)
        await self._manager.__aexit__(None, None, None)
        return False  # the block's own exception comes out as it is, which a nursery would wrap into a group

    if not TYPE_CHECKING:  # type checkers know what is missing

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"open_ml() has no attribute {name!r}: {ENTERING}")

        def _refuse(self, *_exception: object) -> NoReturn:
            raise RuntimeError(f"open_ml() is a block: {ENTERING}")

        __enter__ = __exit__ = __await__ = _refuse


def _end_forked_process(error: BaseException | None) -> NoReturn:
    """End a process that was forked in the block, as multiprocessing does.

    trio's run is its parent's: unwinding it here would wait for events that only the parent gets, and take others away.
    """
    status = 0 if error is None else 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        status = error.code or 0
    elif isinstance(error, SystemExit):
        sys.stderr.write(f"{error.code}\n")
    elif error is not None:
        sys.excepthook(type(error), error, error.__traceback__)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


@enable_ki_protection
async def _undisturbed(nursery: trio.Nursery, async_fn: Callable[[], Awaitable[None]]) -> None:
    """Run ``async_fn`` to its end, even if the caller is cancelled or interrupted.

    An interrupt goes to the program's main task, at whatever it waits for, shields or not. So the work is done in a
    task of its own, and what the caller waits for takes no interrupt: trio keeps that one for later.
    """
    waiting = trio.lowlevel.current_task()

    @enable_ki_protection
    async def run() -> None:
        try:
            with trio.CancelScope(shield=True):
                await async_fn()
        finally:
            trio.lowlevel.reschedule(waiting)

    nursery.start_soon(run)
    await trio.lowlevel.wait_task_rescheduled(lambda _raise_cancel: trio.lowlevel.Abort.FAILED)
