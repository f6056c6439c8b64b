"""``MLPromise``: the answer of a method that the IDL types ``Promise``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, Literal, NoReturn, Self, TypeVar, cast, final

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.core.handle import Promised
from webnn_py.core.message_text import shortened, shown
from webnn_py.core.timelines.timeline import Timeline
from webnn_py.core.trio_run import TrioRun, check_in_trio
from webnn_py.core.unreported_errors import Line, UnreportedError

T = TypeVar("T")

PromiseState = Literal["pending", "fulfilled", "rejected"]


@final
class MLPromise(Promised, Generic[T]):
    """An answer that comes later; its work was enqueued by the call that returned it.

    Awaiting it gives the answer, or raises the error with which it was rejected: the method that returned it says
    which.
    A promise is settled once. It may be awaited any number of times by any number of tasks. Cancelling a task that
    awaits it ends that wait and nothing else: the device goes on, and others still get the answer.
    A rejection that nobody awaits is reported by a ``RuntimeWarning``, at the line of the call, when the promise is
    dropped. Rejections by ``destroy()`` and by the loss of a context, which ``lost`` reports, are silent.
    """

    _made_by = "the API's methods"

    __slots__ = (
        "__weakref__",
        "_answers",
        "_line",
        "_observed",
        "_outcome",
        "_state",
        "_timeline",
        "_trio_run",
        "_unreported",
        "_waiters",
    )
    _state: PromiseState
    _outcome: object
    _answers: str
    _trio_run: TrioRun | None
    _line: Line | None
    _unreported: UnreportedError | None
    _waiters: dict[trio.lowlevel.Task | Callable[[], None], None] | None
    _observed: Callable[[Exception | None, object], None] | None
    _timeline: Timeline[Any] | None

    @classmethod
    def _create(
        cls,
        answers: str = "",
        trio_run: TrioRun | None = None,
        line: Line | None = None,
        timeline: Timeline[Any] | None = None,
    ) -> Self:
        """Return a pending promise.

        Args:
            answers: the call that it answers, for eyes.
            trio_run: where it may be awaited; None for anywhere in trio.
            line: where that call was made.
            timeline: what settles it, which who awaits it may run; None where that takes long.
        """
        self = cls.__new__(cls)
        self._answers = answers
        self._trio_run = trio_run
        self._line = line
        self._unreported = None
        self._state = "pending"
        self._outcome = None
        self._waiters = None
        self._observed = None
        self._timeline = timeline
        return self

    @classmethod
    def refused(cls, error: Exception, answers: str = "", line: Line | None = None) -> Self:
        """Return a promise that is rejected from the start, for tools. Not in the specification.

        Args:
            error: what it is rejected with.
            answers: the call that is refused, for its text.
            line: where that call was made.
        """
        self = cls._create(answers, None, line)
        self._unreported = _unreported(error, line)
        self._state = "rejected"
        self._outcome = error
        return self

    @property
    def state(self) -> PromiseState:
        """``"pending"``, ``"fulfilled"`` or ``"rejected"``: for looking without waiting."""
        return self._state

    def run_waiting(self) -> None:
        """Run what waits on the timeline that settles it, as awaiting does, for tools. Not in the specification."""
        if self._timeline is not None:
            self._timeline.run_waiting()

    @property
    def outcome(self) -> T | Exception | None:
        """The value, or the error of a rejection, which counts as awaited; None while pending.

        Not in the specification.
        """
        if self._unreported is not None:
            self._mark_reported()
        return cast("T | Exception | None", self._outcome)

    def _resolve(self, value: T) -> bool:
        """Fulfil the promise; False when it was settled before."""
        return self._settle("fulfilled", value)

    def _reject(self, error: Exception, *, is_reported: bool = False) -> bool:
        """Reject the promise; return False if it was already settled.

        Args:
            error: what it is rejected with.
            is_reported: whether the program knows without awaiting it, from its own ``destroy()`` or from ``lost``.
        """
        if not is_reported and not self._waiters and self._state == "pending":
            self._unreported = _unreported(error, self._line)
        return self._settle("rejected", error)

    @enable_ki_protection
    def _settle(self, state: PromiseState, outcome: object) -> bool:
        if self._state != "pending":
            return False
        self._state = state
        self._outcome = outcome
        self._timeline = None
        if self._observed is not None:
            observed, self._observed = self._observed, None
            observed(*((cast("Exception", outcome), None) if state == "rejected" else (None, outcome)))
        if self._waiters is not None:
            waiters, self._waiters = self._waiters, None
            for waiter in waiters:
                if isinstance(waiter, trio.lowlevel.Task):
                    trio.lowlevel.reschedule(waiter)
                else:
                    waiter()
        return True

    @enable_ki_protection
    def on_settled(self, callback: Callable[[], None]) -> None:
        """Have a function called when the promise settles, within the task that settles it; at once, if it has.

        For tools and extensions; a rejection counts as awaited. Not in the specification.
        """
        if self._state != "pending":
            self._mark_reported()
            callback()
            return
        if self._waiters is None:
            self._waiters = {}
        self._waiters[callback] = None

    def __await__(self) -> Generator[Any, Any, T]:
        if self._trio_run is None:
            check_in_trio(self._answers)
            task = trio.lowlevel.current_task()
        else:
            task = self._trio_run.check(self._answers, is_call=False)
        if self._timeline is not None:
            self._timeline.run_waiting()
        if self._unreported is not None:
            self._mark_reported()
        if self._state == "pending":
            yield from self._wait(task)
        else:
            yield from trio.lowlevel.checkpoint().__await__()  # noqa: ASYNC105 - awaited, by hand
        if self._state == "fulfilled":
            return self._outcome  # type: ignore[return-value]  # cast() would be a call
        raise self._error()

    def _error(self) -> Exception:
        """Return a copy of the error for each awaiter: one exception raised in two tasks would mix their tracebacks."""
        error = cast("Exception", self._outcome)
        copied = copy.copy(error)
        copied.__cause__ = error.__cause__
        return copied

    @staticmethod
    async def all(promises: Iterable[MLPromise[T]]) -> list[T]:
        """Wait for several answers as JavaScript's ``Promise.all()`` does: a checkpoint for all, not one for each.

        Args:
            promises: what to wait for.

        Returns:
            The answers, in the order of the promises.

        Raises:
            TypeError: something else than promises is given.
            Exception: the error of one that is rejected, as soon as one is; the others, which are not waited for any
                more, count as awaited.
        """
        given = list(promises)
        for place, promise in enumerate(given):
            if type(promise) is not MLPromise:
                raise TypeError(f"MLPromise.all(): promises[{place}] is {shown(promise)}; it must be an MLPromise")
            if promise._trio_run is not None:
                promise._trio_run.check(promise._answers, is_call=False)
            if promise._timeline is not None:
                promise._timeline.run_waiting()
            if promise._unreported is not None:
                promise._mark_reported()
        if pending := [promise for promise in given if promise._state == "pending"]:
            await _decision(given, pending)
        else:
            await trio.lowlevel.checkpoint()
        for promise in given:
            if promise._state == "rejected":
                raise promise._error()
        return [cast("T", promise._outcome) for promise in given]

    @enable_ki_protection
    def _mark_reported(self) -> None:
        if self._unreported is not None:
            self._unreported.mark_reported()

    @enable_ki_protection  # an interrupt in the midst would leave the task among those that are woken
    def _wait(self, task: trio.lowlevel.Task) -> Generator[Any, Any, None]:
        if self._waiters is None:
            self._waiters = {}
        self._waiters[task] = None

        def forget(_raise_cancel: object) -> trio.lowlevel.Abort:
            if self._waiters is not None:
                self._waiters.pop(task, None)
            return trio.lowlevel.Abort.SUCCEEDED

        yield from trio.lowlevel.wait_task_rescheduled(forget).__await__()  # noqa: ASYNC105 - awaited, by hand

    def __bool__(self) -> NoReturn:
        raise TypeError("an MLPromise is neither true nor false; await it, or look at its state")

    def _named(self) -> str:
        return self._answers or "this"

    def _described(self) -> str:
        state = f"of {self._answers} {self._state}" if self._answers else self._state
        if self._state != "rejected":
            return state
        error = cast("Exception", self._outcome)
        words = " ".join(str(error).split()).removeprefix(f"{self._answers}: ")
        return f"{state}: {type(error).__name__}: {shortened(words)}"


def _unreported(error: Exception, line: Line | None) -> UnreportedError:
    words = f"{type(error).__name__} that was never awaited: {shortened(' '.join(str(error).split()), 500)}"
    return UnreportedError(words, line, is_missed=True)


@enable_ki_protection  # as for one that waits: trio.Event.wait() has none
async def _decision(promises: list[MLPromise[T]], pending: list[MLPromise[T]]) -> None:
    """Wait until one of several promises is rejected, or none is pending."""
    decided = trio.Event()

    def look() -> None:
        states = {promise._state for promise in promises}
        if "rejected" in states or "pending" not in states:
            decided.set()

    for promise in pending:
        promise.on_settled(look)
    look()
    try:
        await decided.wait()
    except BaseException:
        for promise in pending:
            if promise._waiters is not None:
                promise._waiters.pop(look, None)
        raise
