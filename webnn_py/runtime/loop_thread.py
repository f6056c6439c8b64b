"""A trio loop in a thread of its own, with the API open: what code that is not asynchronous runs on.

Calls come from any other thread and block it; in the loop they are tasks side by side. An interrupt (Ctrl-C) cancels
the task, and the call raises when the task has ended.

Interrupts strike anywhere in the main thread, so what must not be left half done is done in the loop's. In particular
the loop ends by itself: when nothing is open on it any more, at the latest when the program ends.
"""

from __future__ import annotations

import _thread
import contextvars
import math
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar, final

import outcome
import trio

from webnn_py.core.api.ml import ML, open_ml
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.trio_run import FORKED

P = ParamSpec("P")
T = TypeVar("T")

SECONDS_WITHOUT_INTERRUPT = 0.1 if sys.platform == "win32" else 1
"""How long a wait for a lock lasts before Python looks for signals.

On Windows they do not end it; elsewhere those do not that come when Python has looked and the wait is about to begin.
"""

SECONDS_UNUSED = 2
"""How long a loop waits for the first thing to be opened: an interrupt may have ended the call that started it."""


class Closable(Protocol):
    """An object that is open on a loop."""

    async def close(self) -> None:
        """End it; the second time this does nothing."""


@final
class LoopThread:
    """The loop, and the thread that it runs in."""

    ml: ML
    """The API, for what is called within the loop."""

    running: ClassVar[dict[LoopThread, None]] = {}
    """Those of this process that have not ended."""

    _shared: ClassVar[LoopThread | None] = None
    _starting: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._process = os.getpid()
        self._open: dict[Closable, None] = {}
        self._calls: dict[_Call[Any], None] = {}
        self._nursery: trio.Nursery | None = None
        self._ended = False
        self._failure: BaseException | None = None
        started = _Call(trio.lowlevel.checkpoint)
        # No daemon: the interpreter waits for it at its end, and lets threads be started until then.
        self._thread = threading.Thread(target=self._serve, args=[started], name="webnn_py loop", daemon=False)
        # Not from here: an interrupt within Thread.start() may leave the new thread waiting for a lock for ever.
        _thread.start_new_thread(self._start_thread, (started,))
        started.wait()
        if self._failure is not None:
            raise RuntimeError("the loop of webnn_py.runtime.blocking could not be started") from self._failure
        started.take().unwrap()

    def _start_thread(self, started: _Call[None]) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            started.settle(outcome.Error(error))

    @classmethod
    def shared(cls) -> LoopThread:
        """Return the process's only loop, started if necessary."""
        with cls._starting:
            if cls._shared is None or not cls._shared.is_usable():
                cls._shared = cls()
            return cls._shared

    # --- in the caller's thread ------------------------------------------------------------------------------

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an asynchronous function in the loop, and wait for what it returns or raises.

        Raises:
            InvalidStateError: the loop has ended.
            RuntimeError: called in the loop's own thread, or in a process forked from the one that has it.
        """
        self._check_caller()
        call = _Call(partial(function, *args, **kwargs))
        try:
            self._calls[call] = None
            if self._ended:
                call.settle(_over())
            else:
                self._soon(self._start, call, contextvars.copy_context())
            call.wait()
        except BaseException:  # an interrupt: what the function raises is in the answer
            self._soon(call.cancel)
            call.wait()
            raise
        finally:
            self._calls.pop(call, None)
        answer = call.take()
        if isinstance(answer, outcome.Error) and isinstance(answer.error, (trio.Cancelled, trio.RunFinishedError)):
            self.join()
            raise InvalidStateError("the environment is closed, and its loop has ended") from self._failure
        try:
            return answer.unwrap()
        finally:
            del answer  # else an error would hold it, and it the error

    def run_sync(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a plain function in the loop's thread; otherwise like :meth:`run`."""

        async def called() -> T:
            return function(*args, **kwargs)

        return self.run(called)

    def run_soon(self, function: Callable[[], Awaitable[None]]) -> None:
        """Start a task, if the loop has not ended, and do not wait for it.

        It takes no lock and may be called anywhere, also by a finaliser in the midst of another function of this class.
        """
        if self._process == os.getpid():
            self._soon(self._start, _Call(function))

    def join(self) -> None:
        """Wait for the end of the loop, which has been decided; may be interrupted, and called again."""
        if self._process != os.getpid() or threading.current_thread() is self._thread:
            return
        # Up to Python 3.12 an interrupted Thread.join() takes the thread for ended, and the next one does not wait.
        end = _Call(trio.sleep_forever)  # never started: the loop's end answers it
        try:
            self._calls[end] = None
            if self._ended:
                end.settle(_over())
            end.wait()
        finally:
            self._calls.pop(end, None)
        self._thread.join()

    def is_usable(self) -> bool:
        """Return whether calls can be made in this process, as far as can be known."""
        return self._process == os.getpid() and self._nursery is not None

    def _check_caller(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(FORKED)
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "called in the loop's own thread, which would wait for itself; "
                "callbacks may use webnn_py.runtime, without blocking"
            )

    def _soon(self, function: Callable[..., object], *args: object) -> None:
        """Have ``function`` called in the loop's thread, if the loop has not ended."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(function, *args)

    # --- in the loop's thread --------------------------------------------------------------------------------

    def keep(self, thing: Closable) -> None:
        """``thing`` is open: the loop runs until it is closed, unless its end has been decided by now.

        Raises:
            trio.RunFinishedError: it has; the call of :meth:`run` that this is called from says so in its own words.
        """
        if self._nursery is None:
            raise trio.RunFinishedError
        self._open[thing] = None
        self._unused.deadline = math.inf

    async def close(self, thing: Closable) -> None:
        """Close ``thing``, and end the loop if it was the last one; cancelling does not interrupt this."""
        try:
            with trio.CancelScope(shield=True):
                await thing.close()
        finally:
            self._open.pop(thing, None)
            if not self._open:
                self._stop()

    async def end_with_the_program(self) -> None:
        """End when all other threads that the interpreter waits for have ended."""
        await trio.to_thread.run_sync(_join_all_but, self._thread)
        for thing in list(self._open):
            await self.close(thing)
        self._stop()

    def _serve(self, started: _Call[None]) -> None:
        self.running[self] = None
        try:
            trio.run(self._main, started)
        except BaseException as failure:  # noqa: BLE001 - raised by the calls that it ended, and by later ones
            self._failure = failure
        finally:
            self.running.pop(self, None)
            self._ended = True  # calls are added before they look at this, so that none waits for ever
            for call in [started, *self._calls]:
                call.settle(_over())

    async def _main(self, started: _Call[None]) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._unused = trio.CancelScope(deadline=trio.current_time() + SECONDS_UNUSED)
        async with open_ml() as self.ml, trio.open_nursery() as nursery:
            self._nursery = nursery
            started.settle(outcome.Value(None))
            try:
                with self._unused:
                    await trio.sleep_forever()
            finally:
                self._nursery = None
                nursery.cancel_scope.cancel()
        del self.ml  # not left to the main thread, where finalisers may be interrupted

    def _start(self, call: _Call[Any], context: contextvars.Context | None = None) -> None:
        if self._nursery is None:
            call.settle(_over())
        else:
            (context or contextvars.Context()).run(self._nursery.start_soon, call.run)

    def _stop(self) -> None:
        self._nursery = None  # from here on calls are refused
        self._unused.cancel()


@final
class _Call(Generic[T]):
    """A call from a thread to the loop: a task there, and the result that the thread waits for."""

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self._function = function
        self._scope = trio.CancelScope()
        self._begun = False
        self._answer: outcome.Outcome[T] | None = None
        self._settled = threading.Lock()
        self._settled.acquire()

    async def run(self) -> None:
        """Carry it out, unless it was cancelled before it began."""
        if not self._scope.cancel_called:
            self._begun = True
            with self._scope:
                self.settle(await outcome.acapture(self._function))

    def cancel(self) -> None:
        """Cancel it, in the loop's thread; it may not even have got here."""
        self._scope.cancel()
        if not self._begun:
            self.settle(_over())

    def settle(self, answer: outcome.Outcome[T]) -> None:
        """Answer; the first answer counts."""
        if self._answer is None:
            self._answer = answer
            with suppress(RuntimeError):  # released by now: caller and loop both found that the loop has ended
                self._settled.release()

    def wait(self) -> None:
        """Wait for the answer; may be interrupted, and called again."""
        while self._answer is None:  # set before the release: an interrupt behind the lock loses nothing
            self._settled.acquire(timeout=SECONDS_WITHOUT_INTERRUPT)

    def take(self) -> outcome.Outcome[T]:
        """Return the answer, for the one who waited; it is not kept, since an error's frames refer to this."""
        answer, self._answer = self._answer, _over()
        return _over() if answer is None else answer


def _over() -> outcome.Error:
    return outcome.Error(trio.RunFinishedError("the loop has ended"))


def _join_all_but(loop: threading.Thread) -> None:
    """Wait for all threads that the interpreter waits for at its end, those that they start included."""
    spared = (loop, threading.main_thread())
    while others := [
        thread for thread in threading.enumerate() if thread.is_alive() and not thread.daemon and thread not in spared
    ]:
        for thread in others:
            thread.join()


def _end_with_the_program() -> None:
    for loop in list(LoopThread.running):
        loop.run_soon(loop.end_with_the_program)


def _forget_after_fork() -> None:
    LoopThread.running.clear()
    LoopThread._shared = None
    LoopThread._starting = threading.Lock()  # a thread that is not here may have held it


# atexit would be too late: its functions run when all threads that are no daemons have ended, after which none can be
# started (Python 3.12). concurrent.futures uses this, too.
threading._register_atexit(_end_with_the_program)  # type: ignore[attr-defined]
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_after_fork)
