"""Devices in a process that was forked: it has its parent's objects, but neither their threads nor their drivers."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final, final
from weakref import ref

from webnn_py.core.errors import NotSupportedError

_OPEN: Final[list[ref[Any]]] = []
"""No ``WeakSet``: that has callbacks in Python, in which trio would raise an interrupt that is then lost."""

_DRIVERS: Final[list[Driver]] = []


def keep_in_children(native: object) -> None:
    """Never finalize a native object in processes that are forked from this one: that may wait for its threads."""
    _OPEN[:] = [other for other in _OPEN if other() is not None]
    _OPEN.append(ref(native))


def _after_fork() -> None:
    for reference in _OPEN:
        if (native := reference()) is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))
    if any(driver.is_inherited for driver in _DRIVERS):
        _skip_exit_handlers()


def _skip_exit_handlers() -> None:
    """End this process before the exit handlers of its parent's drivers, which wait for threads or crash.

    Handlers run in reverse order of their registration, after Python's own and those of this process.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # glibc calls the function with the exit status
        libc.on_exit(libc._exit, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@final
class Driver:
    """A driver that can only be used in one process, and in none that is forked from it.

    Args:
        name: its name, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process: int | None = None
        _DRIVERS.append(self)

    @property
    def is_inherited(self) -> bool:
        """Return whether a process that this one was forked from has used it."""
        return self._process is not None and self._process != os.getpid()

    def enter(self) -> None:
        """Begin to use it in this process.

        Raises:
            NotSupportedError: a process that this one was forked from has used it.
        """
        if self.is_inherited:
            raise NotSupportedError(
                f"{self._name} was opened before os.fork(), and cannot be used in the forked process; start processes "
                'with multiprocessing\'s "spawn" instead'
            )
        self._process = os.getpid()
