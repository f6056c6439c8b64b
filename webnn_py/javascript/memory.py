"""Memory that a script makes this process hold, and the limit on it."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.errors import QuotaExceededError
from webnn_py.javascript.values import BufferSource
from webnn_py.script.builder import MLGraphBuilder
from webnn_py.script.ml import ML
from webnn_py.timelines.promise import MLPromise

OPERATION_BYTES: Final = 2048
"""An entry of a timeline, or an operator of a drawing: objects of Python's."""

HANDLE_BYTES: Final = 1024
"""An object that a script has a handle of."""

CONTEXT_BYTES: Final = 2**18
"""A context: its timeline, and the device's own objects."""

TEXT_FACTOR: Final = 16
"""Bytes of Python objects for each byte of a message that is parsed."""

SMALL_BYTES: Final = 2**16
"""Messages up to this length are always read: a script that has used up its memory can still give some back."""

ALLOWANCE_BYTES: Final = 128 * 2**20
"""The memory that the two processes may need besides: compiled kernels, libraries' own arenas, what allocators keep."""

POLL_SECONDS: Final = 0.01

_ENDING = ("destroy", "endExport", "returnContents")
"""Methods that only give something back, and are never refused."""


class MemoryAccount:
    """Counts what a script makes this process hold, and refuses what would exceed the limit.

    Args:
        ml: its contexts' buffers, graphs, reads and queued operations are counted.
        limit: bytes; None for any number.
        handles: the number of objects that the script has handles of.
    """

    def __init__(self, ml: ML, limit: int | None, handles: Callable[[], int]) -> None:
        self._ml = ml
        self._limit = limit
        self._handles = handles
        self._pending = 0
        self._drawn: WeakKeyDictionary[MLGraphBuilder, int] = WeakKeyDictionary()
        self._drawn_at_most = 0

    @property
    def held(self) -> int:
        """Bytes that are held, or will be when what is enqueued has run; never less than there are."""
        contexts = list(self._ml._contexts)
        total = self._pending + self._drawn_at_most + HANDLE_BYTES * self._handles() + CONTEXT_BYTES * len(contexts)
        for context in contexts:
            timeline = context.device_timeline
            total += context._device.live_bytes + timeline.queued_bytes + OPERATION_BYTES * timeline.queued_operations
        return total

    @property
    def room(self) -> int | None:
        """Bytes that may still be held; None for any number."""
        if self._limit is None:
            return None
        if self.held > self._limit:
            self._drawn_at_most = sum(self._drawn.values())  # builders that are no more are not counted
        return max(0, self._limit - self.held)

    def admit(self, what: str, count: int) -> None:
        """Refuse ``what`` if it would exceed the limit by its ``count`` of bytes.

        Raises:
            QuotaExceededError: it would.
        """
        room = self.room
        if room is not None and self._limit is not None and count > room:
            raise QuotaExceededError(
                f"{what}: it needs {count} bytes, and {room} of {self._limit} are left; --memory-limit sets the limit"
            )

    def admit_call(self, member: str, this: object, arguments: list[Any], text_bytes: int) -> int:
        """Refuse a call of the API that would exceed the limit.

        Returns:
            The bytes for :meth:`hold`.

        Raises:
            QuotaExceededError: it would exceed it.
        """
        if self._limit is None or member in _ENDING:
            return 0
        given = sum(argument.byte_length for argument in arguments if isinstance(argument, BufferSource))
        kept, needed = 0, OPERATION_BYTES + given
        if isinstance(this, MLGraphBuilder):
            drawn = arguments[0]._operator_count if member == "subgraph" else 0
            kept = needed = needed + TEXT_FACTOR * text_bytes + OPERATION_BYTES * drawn
        elif member in ("createTensor", "createExportableTensor"):
            kept = MLOperandDescriptor(arguments[0]["dataType"], arguments[0]["shape"]).byte_length
            needed += kept
        elif member == "createConstantTensor":  # the copy in the queue, and the device's
            kept = given
            needed += kept
        elif member in ("readTensor", "exportToGPU"):
            buffer = arguments[0]
            kept = buffer._descriptor.byte_length * (1 if len(arguments) == 1 else 2)
            needed = OPERATION_BYTES + kept
        elif member == "createContext":
            needed = CONTEXT_BYTES
        self.admit(f"{member}()", needed)
        return kept

    def hold(self, count: int, this: object, result: object) -> None:
        """Count what a call has made until its promise is settled; from then on its context counts it.

        What a builder is given counts as long as the builder has it.
        """
        if isinstance(this, MLGraphBuilder) and isinstance(result, MLPromise):
            if not this._has_built:
                return
            drawn = self._drawn.pop(this, 0)
            self._drawn_at_most -= drawn
            count += drawn
        elif isinstance(this, MLGraphBuilder):
            self._drawn[this] = self._drawn.get(this, 0) + count
            self._drawn_at_most += count
            return
        if isinstance(result, MLPromise) and count:
            self._pending += count
            result._on_settled(partial(self._let_go, count))

    def _let_go(self, count: int) -> None:
        self._pending -= count


def _resident(process: int) -> int:
    """Return the bytes of memory of a process that are no file's; 0 where this cannot be known, or it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    lines = dict(line.partition(":")[::2] for line in status.splitlines())
    return sum(1024 * int(lines[name].split()[0]) for name in ("RssAnon", "RssShmem") if name in lines)


@contextmanager
def watched(limit: int | None, engine: int, end: Callable[[], None]) -> Iterator[None]:
    """Call ``end`` from a thread when this process and the engine's have grown beyond the limit.

    An account cannot count everything: what a graph needs while it runs, or what a library keeps. Where the operating
    system does not report the memory of processes (Linux does), nothing is watched.
    """
    if limit is None or sys.platform != "linux":
        yield
        return
    processes = os.getpid(), engine
    most = sum(map(_resident, processes)) + limit + ALLOWANCE_BYTES
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            if sum(map(_resident, processes)) > most:
                end()
                return

    thread = threading.Thread(target=watch, name="memory limit", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
