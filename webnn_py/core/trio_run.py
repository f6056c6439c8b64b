"""``TrioRun``: where calls must come from, the one run of trio in which a block of ``open_ml()`` lives."""

import os
import sys
import threading
from collections.abc import Callable
from typing import ClassVar, Final, NoReturn, final

from trio.lowlevel import Task, TrioToken, current_task, current_trio_token, in_trio_task

from webnn_py.core.distribution import page

FORKED: Final = (
    "opened before os.fork(), which copies neither threads nor devices; open it in the process that uses it, and start "
    'processes with multiprocessing\'s "spawn"'
)
"""Why what a forked process has from its parent is refused."""


@final
class TrioRun:
    """The run of trio that this was made in: what changes state is called in its tasks."""

    __slots__ = ("_depth", "_seen", "_token", "called", "thread")

    depth: ClassVar[int] = 0
    """How many times :func:`os.fork` lies between this process and the one that imported the module."""

    def __init__(self, call: str) -> None:
        """Note the trio run in which ``call`` is made.

        Raises:
            RuntimeError: there is none.
        """
        check_in_trio(call)
        self._depth = self.depth
        self._token: TrioToken = current_trio_token()
        self.thread = threading.get_ident()
        self._seen: Task | None = current_task()
        self.called: Callable[[str], None] | None = None

    def check(self, call: str, *, is_call: bool = True) -> Task:
        """Refuse a call from another thread, another process, another trio run or none; else report it to ``called``.

        Args:
            call: the call, for messages.
            is_call: whether it is one that observers see: not the wait for a promise, nor a method of a timeline.

        Returns:
            The task that calls.

        Raises:
            RuntimeError: it is.
        """
        try:
            task = current_task()
        except RuntimeError:
            self._refuse(call)
        if task is not self._seen or self._depth != TrioRun.depth:
            if self.is_inherited or current_trio_token() is not self._token:
                self._refuse(call)
            self._seen = task  # a task stays in its run, so one that was checked needs no second check
        if self.called is not None and is_call:
            self.called(call)
        return task

    @property
    def is_inherited(self) -> bool:
        """Return whether this was made in a process that the present one was forked from."""
        return self._depth != TrioRun.depth

    def _refuse(self, call: str) -> NoReturn:
        if self.is_inherited:
            raise RuntimeError(f"{call}: {FORKED}")
        if in_trio_task():
            raise RuntimeError(f"{call}: this is another trio.run() than that of the open_ml() block; call it in that")
        if threading.get_ident() == self.thread or _in_asyncio():
            check_in_trio(call)
        raise RuntimeError(
            f"{call}: this is another thread than that of the open_ml() block; call it through "
            "trio.from_thread.run_sync(), with that run's trio_token unless trio.to_thread has started this thread"
        )


def _note_fork() -> None:
    TrioRun.depth += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def check_in_trio(call: str) -> None:
    """Refuse a call that is made outside of trio's tasks.

    Raises:
        RuntimeError: it is.
    """
    if in_trio_task():
        return
    if _in_asyncio():
        raise RuntimeError(f"{call}: webnn_py runs on trio, and this is asyncio; {page('blocking')} has ways to it")
    raise RuntimeError(
        f"{call}: webnn_py runs on trio, and this is no task of trio's; call it within trio.run(), or without trio: "
        f"{page('blocking')}"
    )


def _in_asyncio() -> bool:
    asyncio = sys.modules.get("asyncio")  # takes long to import; who runs it has imported it
    try:
        return asyncio is not None and asyncio.get_running_loop() is not None
    except RuntimeError:
        return False
