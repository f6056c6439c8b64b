"""``Device``: a backend, with the bookkeeping that all backends share.

It counts the memory on the device, and it propagates failures: a write or dispatch that fails marks the buffers that it
should have written, a dispatch that reads a marked buffer marks its outputs, a read of a marked buffer raises, and a
successful full overwrite clears the mark.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
import trio

from webnn_py.core.device.backend import (
    SHARED_MEMORY_ATTRIBUTE,
    Backend,
    CompiledGraph,
    HostArray,
    KernelTiming,
    Memory,
    OnProgress,
    StagesWrites,
    Storage,
    TimesKernels,
    begin_compile,
    constant_buffers,
)
from webnn_py.core.device.bookkeeping.lent_memory import after_return
from webnn_py.core.device.records.failure import Failure
from webnn_py.core.errors import UnknownError
from webnn_py.core.graph import Graph
from webnn_py.core.in_flight import like, then
from webnn_py.core.message_text import device_text, shown
from webnn_py.core.unreported_errors import Line

Report = Callable[[Sequence[KernelTiming]], None]


class Readback:
    """The bytes of a read for the script; they count as live until they are taken or dropped."""

    __slots__ = ("_device", "data")

    def __init__(self, device: Device) -> None:
        self._device = device
        self.data: HostArray | None = None

    def take(self) -> HostArray | None:
        """Return the bytes, or drop them: they no longer count."""
        data = self.data
        if data is not None:
            self._device.live_bytes -= data.nbytes
            self.data = None
        return data


class GraphHandle:
    """A graph on the device: empty until compiled, and again after its release."""

    __slots__ = ("captured", "compiled", "constants", "failure", "in_place", "label", "number")

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.compiled: CompiledGraph | None = None
        self.failure: Exception | None = None  # the reason why there is no compiled graph
        self.captured: list[Memory] = []
        self.in_place: Mapping[str, str] = {}  # the outputs that may be in the memory of an input: that input
        self.constants: Mapping[Storage, Memory] = {}  # of constant buffers, which may be destroyed before the graph
        self.number = 0  # its number for observers; 0 if none has asked for it


class Device:
    """A backend with counts and failures; only the device timeline calls it, one step at a time.

    Steps return None when they are done, else an awaitable that finishes them.

    Args:
        backend: the backend.

    Attributes:
        live_buffers: buffers allocated and not released yet.
        live_bytes: bytes of buffers, of graphs' constants and intermediates, and of reads in flight.
        host_copies: the number of copies of bytes between host and device.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.live_buffers = 0
        self.live_bytes = 0
        self.host_copies = 0
        self.host_copy: Callable[[HostArray], Any] = (
            backend.stage if isinstance(backend, StagesWrites) else methodcaller("copy")
        )
        self.is_lost = False
        self.watch_kernels: Callable[[], Report] | None = None  # returns the reporter of the next dispatch
        self._lent: dict[Storage, None] = {}
        # Its own limiter: threads of the user's must not keep a device from finishing.
        self.limiter = trio.CapacityLimiter(1)

    # --- buffers ---------------------------------------------------------------------------------------------

    def allocate(self, storage: Storage) -> Awaitable[None] | None:
        """Give ``storage`` zeroed memory."""
        return then(self.backend.allocate(storage.descriptor), partial(self._enter, storage))

    def _enter(self, storage: Storage, data: Any) -> None:
        # spec: MLContext.createTensor 6.1.1; MLContext.createConstantTensor 10.1.1
        storage.memory = Memory(data, storage.descriptor.byte_length)
        self.live_buffers += 1
        self._hold(storage.memory)

    def allocate_constant(self, storage: Storage, data: HostArray) -> Awaitable[None] | None:
        """Give ``storage`` memory with the bytes of ``data``, which never change."""

        def write(_allocated: None) -> Awaitable[None] | None:
            self.host_copies += 1
            # spec: MLContext.createConstantTensor 10.1.3
            return self.backend.write(storage, data)

        return then(self.allocate(storage), write)

    def write(self, storage: Storage, data: Any, line: Line | None = None) -> Awaitable[None] | None:
        """Store ``data``; a failure marks ``storage``, and reports the ``line`` of the call that requested it."""
        if storage.lent is not None:
            return after_return([storage], lambda: self.write(storage, data, line))
        self.host_copies += 1
        try:  # with few calls, since each run passes here
            # spec: MLContext.writeTensor 7.1.1
            pending = self.backend.write(storage, data)
        except Exception as error:  # noqa: BLE001 - a later read reports it
            self.fail([storage], "write_buffer()", error, line)
            return None
        if pending is not None:
            return self._finish([storage], pending, "write_buffer()", line)
        storage.failure = None
        return None

    def read(self, storage: Storage, readback: Readback, method: str = "read_buffer()") -> Awaitable[None] | None:
        """Copy the contents of ``storage`` into ``readback``, for a ``method`` that errors name.

        Raises:
            UnknownError: a step that should have written the contents has failed.
        """
        if storage.lent is not None:
            return after_return([storage], lambda: self.read(storage, readback, method))
        if storage.failure is not None:
            storage.failure.mark_reported()
            raise UnknownError(f"{method}: the buffer holds no data, because {storage.failure}")
        self.host_copies += 1
        try:
            # spec: MLContext.readTensor(tensor) 8.1.1; MLContext.readTensor(tensor, outputData) 9.1.1
            data = self.backend.read(storage)
        except Exception:
            if storage.failure is not None:  # of a step that was submitted together with the read
                storage.failure.mark_reported()  # type: ignore[unreachable]  # read() may submit a step that fails
            raise
        if isinstance(data, np.ndarray):
            readback.data = data
            self.live_bytes += data.nbytes
            return None
        return like(data, self._finish_read(data, readback))

    async def _finish_read(self, data: Awaitable[HostArray], readback: Readback) -> None:
        readback.data = array = await data
        self.live_bytes += array.nbytes

    def release(self, storage: Storage) -> Awaitable[None] | None:
        """Release the memory of ``storage``, if it has any."""
        if storage.lent is not None:
            return after_return([storage], lambda: self.release(storage))
        if storage.failure is not None:
            storage.failure.miss()
            storage.failure = None
        memory, storage.memory = storage.memory, None
        if memory is None:
            return None
        return then(self._let_go(memory), lambda _: self._count(buffers=-1))

    # --- buffers that cross the border -----------------------------------------------------------------------

    def adopt(self, storage: Storage, data: Any) -> None:
        """Put a user's memory under ``storage``; it is not counted, and never freed."""
        storage.memory = Memory(data, 0, borrowed=True)
        self.live_buffers += 1
        self._hold(storage.memory)

    def hold_back(self, storage: Storage, until: trio.Event) -> None:
        """Have steps that need ``storage`` wait for an event."""
        storage.lent = until
        self._lent[storage] = None

    def let_go_on(self, storage: Storage) -> None:
        """Have later steps find ``storage`` as usual; those that wait are woken by the event."""
        storage.lent = None
        self._lent.pop(storage, None)

    def recall_lent(self) -> None:
        """Stop waiting for lent memory, since the context is lost."""
        self.is_lost = True
        for storage in list(self._lent):
            lent, storage.lent = storage.lent, None
            if lent is not None:
                lent.set()
        self._lent.clear()

    # --- graphs ----------------------------------------------------------------------------------------------

    def compile(self, graph: Graph, handle: GraphHandle, progress: OnProgress | None = None) -> Awaitable[None] | None:
        """Compile ``graph`` and put it into ``handle``; operators that the backend does not support are expanded first.

        Raises:
            NotComputableError: the graph has a node that no device computes.
        """
        from webnn_py.core.device.compiling.expansion import needs_expansion  # noqa: PLC0415 - imported when it is used
        from webnn_py.core.device.compiling.graph_validation import validate_graph  # noqa: PLC0415 - imported when it is used

        validate_graph(graph)
        if needs_expansion(graph, self.backend.capabilities):
            return self._expand_and_compile(graph, handle, progress)
        compiled = begin_compile(self.backend, graph, progress)
        return then(compiled, lambda compiled: self.keep(graph, compiled, handle))

    async def _expand_and_compile(self, graph: Graph, handle: GraphHandle, progress: OnProgress | None) -> None:
        from webnn_py.core.device.compiling.expansion import expand  # noqa: PLC0415 - imported when it is used

        expanded = await trio.to_thread.run_sync(expand, graph, self.backend.capabilities, limiter=self.limiter)
        pending = self.compile(expanded, handle, progress)
        if pending is not None:
            await pending

    def keep(self, graph: Graph, compiled: CompiledGraph, handle: GraphHandle) -> None:
        """Put a compiled graph into ``handle``, and hold the memory that it uses."""
        # spec: build 18.1.3
        handle.compiled = compiled
        handle.in_place = getattr(compiled, "in_place", handle.in_place)
        self.live_bytes += compiled.byte_length
        handle.constants = {s: s.memory for s in constant_buffers(graph) if s.memory is not None}
        shared = getattr(compiled, SHARED_MEMORY_ATTRIBUTE, ())  # a check for a protocol takes ten times as long
        handle.captured = [*handle.constants.values(), *shared]
        for memory in handle.captured:
            self._hold(memory)

    def dispatch(
        self,
        handle: GraphHandle,
        inputs: Mapping[str, Storage],
        outputs: Mapping[str, Storage],
        line: Line | None = None,
    ) -> Awaitable[None] | None:
        """Run a graph; a failure, or a marked input, marks all ``outputs``, as :meth:`write` does."""
        if self._lent:
            lent = [storage for storage in (*inputs.values(), *outputs.values()) if storage.lent is not None]
            if lent:
                return after_return(lent, lambda: self.dispatch(handle, inputs, outputs, line))
        for name, storage in inputs.items():
            if storage.failure is not None:
                why = f"the input {shown(name)} of a dispatch() holds no data, because {storage.failure}"
                self._follow(outputs.values(), storage.failure, why)
                return None
        run: Callable[..., Awaitable[None] | None] = self.backend.dispatch
        if self.watch_kernels is not None:
            run = partial(_dispatch_timed, self.backend, self.watch_kernels())
        try:  # as in write()
            # spec: MLContext.dispatch 8.1.1
            if handle.failure is not None:
                raise handle.failure
            pending = run(handle.compiled, inputs, outputs)
        except Exception as error:  # noqa: BLE001 - a later read reports it
            self.fail(outputs.values(), "dispatch()", error, line)
            return None
        if pending is not None:
            return self._finish(outputs.values(), pending, "dispatch()", line)
        for storage in outputs.values():
            storage.failure = None
        return None

    def release_graph(self, handle: GraphHandle) -> Awaitable[None] | None:
        """Release a graph's memory, if it was compiled."""
        compiled, handle.compiled = handle.compiled, None
        captured, handle.captured = handle.captured, []
        handle.constants = {}
        byte_length = 0 if compiled is None else compiled.byte_length
        steps = [] if compiled is None else [self.backend.release_graph(compiled)]
        steps += [self._let_go(memory) for memory in captured]
        pending = [step for step in steps if step is not None]
        if pending:
            return like(pending[-1], self._finish_release_graph(pending, byte_length))
        self.live_bytes -= byte_length
        return None

    async def _finish_release_graph(self, pending: list[Awaitable[None]], byte_length: int) -> None:
        for step in pending:
            await step
        self.live_bytes -= byte_length

    # --- failures --------------------------------------------------------------------------------------------

    async def _finish(
        self, storages: Iterable[Storage], pending: Awaitable[None], method: str, line: Line | None
    ) -> None:
        try:
            await pending
        except Exception as error:  # noqa: BLE001 - a later read reports it
            self.fail(storages, method, error, line)
        else:
            _mark(storages, None)

    def fail(self, storages: Iterable[Storage], method: str, error: Exception, line: Line | None) -> None:
        """Mark storages that a step should have written, and report the ``line`` of the call that requested it."""
        failure = Failure.from_text(f"{method} failed: {device_text(error)}", line)
        if self.is_lost:
            failure.mark_reported()  # the loss reports it, and no reads follow
        _mark(storages, failure)

    def _follow(self, storages: Iterable[Storage], failure: Failure, why: str) -> None:
        _mark(storages, failure.follow(why))

    # --- counts ----------------------------------------------------------------------------------------------

    def _hold(self, memory: Memory) -> None:
        memory.holders += 1
        if memory.holders == 1:
            self.live_bytes += memory.byte_length

    def _let_go(self, memory: Memory) -> Awaitable[None] | None:
        memory.holders -= 1
        if memory.holders:
            return None
        data, memory.data = memory.data, None
        pending = None if memory.borrowed else self.backend.free(data)
        return then(pending, lambda _: self._count(byte_length=-memory.byte_length))

    def _count(self, *, buffers: int = 0, byte_length: int = 0) -> None:
        self.live_buffers += buffers
        self.live_bytes += byte_length


def _dispatch_timed(backend: Backend, report: Report, *given: Any) -> Awaitable[None] | None:
    """Run a graph on a backend that times kernels, and report the timings when the kernels have run."""
    assert isinstance(backend, TimesKernels)  # noqa: S101 - the watcher checks it before
    return then(backend.dispatch_timed(*given), report)


def _mark(storages: Iterable[Storage], failure: Failure | None) -> None:
    for storage in storages:
        storage.failure = failure
