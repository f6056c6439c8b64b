"""The numpy backend: buffers are arrays, a graph is a list of calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from webnn_py.core.descriptors import BYTES_PER_ELEMENT, MLOperandDataType, MLOperandDescriptor
from webnn_py.core.device.backend import BackendInfo, Capabilities, HostArray, KernelTiming, Storage
from webnn_py.core.graph import Graph
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.host_processor import processor
from webnn_py.devices.in_place import updates_of
from webnn_py.devices.numpy.executable import NumpyGraph
from webnn_py.devices.numpy.passes.pipeline import rewritten
from webnn_py.devices.numpy.table import find
from webnn_py.devices.shared_constants import SharedConstants
from webnn_py.devices.worker_thread import WorkerThread

if TYPE_CHECKING:  # which a program that copies nothing does not load
    from webnn_py.devices.copying import CopyRegion

T = TypeVar("T")

THREAD_SECONDS = 0.0005
"""Steps expected to take longer run in a worker thread if other tasks wait; that costs about a fifth of this."""

COPY_BYTES_PER_SECOND = 4e9
"""A cautious estimate of the speed of a copy into fresh memory."""


def _supports(operator: Operator[..., Any]) -> tuple[MLOperandDataType, ...]:
    return tuple(BYTES_PER_ELEMENT) if find(operator) is not None else ()


CAPABILITIES = Capabilities(_supports)


class NumpyBackend:
    """Runs graphs with numpy: short ones inline, and long ones in a worker thread if other tasks could run.

    Args:
        keep_subnormals: whether subnormal numbers in constants stay.
    """

    capabilities = CAPABILITIES
    overlapping = False

    def __init__(self, *, keep_subnormals: bool = False) -> None:
        self._keep_subnormals = keep_subnormals
        self.info = BackendInfo("numpy", processor(), f"numpy {np.__version__}")
        self.lost: Callable[[str], None] = lambda _message: None
        self._thread = WorkerThread()
        self._constants = SharedConstants()
        self._running: NumpyGraph | None = None

    def allocate(self, descriptor: MLOperandDescriptor) -> HostArray:
        """Allocate zeros; the system provides the pages when they are first touched."""
        return np.zeros(descriptor.shape, descriptor.data_type)

    def write(self, storage: Storage, data: HostArray) -> None:
        """Take over ``data``, which belongs to the device now, as the contents, without a copy."""
        if storage.memory is None:
            raise MemoryError("the buffer has no memory on the device")
        storage.memory.data = data

    def read(self, storage: Storage) -> HostArray | Coroutine[Any, Any, HostArray]:
        """Copy the contents."""
        array: HostArray = storage.data
        if array.nbytes > THREAD_SECONDS * COPY_BYTES_PER_SECOND:
            return self._thread.run(array.copy)
        return array.copy()

    def copy(self, source: Storage, destination: Storage, region: CopyRegion) -> Coroutine[Any, Any, None] | None:
        """Copy elements from one array to another."""
        taken: HostArray = source.data.reshape(-1)[region.of_source]
        target = destination.data.reshape(-1)[region.of_destination]
        if taken.nbytes > THREAD_SECONDS * COPY_BYTES_PER_SECOND:
            return self._thread.run(lambda: np.copyto(target, taken))
        np.copyto(target, taken)
        return None

    def clear(self, storage: Storage) -> None:
        """Replace the contents by fresh zeros, whose pages the system provides when they are first touched."""
        self.write(storage, self.allocate(storage.descriptor))

    def free(self, data: HostArray) -> None:
        """Do nothing: the last reference frees the array."""

    def compile(self, graph: Graph) -> NumpyGraph | Coroutine[Any, Any, NumpyGraph]:
        """Make the list of calls, and fold constants."""
        seconds = NumpyGraph.compile_seconds(graph)
        if seconds > THREAD_SECONDS:
            return self._thread.run_unless_alone(lambda: self._compiled(graph), seconds)
        return self._compiled(graph)

    def _compiled(self, graph: Graph) -> NumpyGraph:
        changed, reports = rewritten(graph, keep_subnormals=self._keep_subnormals)
        return NumpyGraph(changed, self._constants, reports, updates_of(graph))

    def dispatch(
        self, compiled: NumpyGraph, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> Coroutine[Any, Any, None] | None:
        """Replay the list of calls."""
        arrays_in = {name: storage.data for name, storage in inputs.items()}  # inline, since each dispatch passes here
        arrays_out = {name: storage.data for name, storage in outputs.items()}
        if self._is_long(compiled):
            return self._run_later(compiled, partial(compiled.run, arrays_in, arrays_out))
        compiled.run(arrays_in, arrays_out)
        return None

    def dispatch_timed(
        self, compiled: NumpyGraph, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> list[KernelTiming] | Coroutine[Any, Any, list[KernelTiming]]:
        """Replay the list of calls, reading the host's clock before and after each call."""
        arrays_in, arrays_out = _arrays(inputs), _arrays(outputs)
        timings: list[KernelTiming] = []

        def run() -> list[KernelTiming]:
            compiled.run(arrays_in, arrays_out, timings)
            return timings

        return self._run_later(compiled, run) if self._is_long(compiled) else run()

    def _is_long(self, compiled: NumpyGraph) -> bool:
        """Return whether a run may take too long to run inline at once."""
        seconds = compiled.expected_seconds
        return seconds > THREAD_SECONDS and not (compiled.is_measured and self._thread.may_skip_check(seconds))

    async def _run_later(self, compiled: NumpyGraph, run: Callable[[], T]) -> T:
        self._running = compiled
        try:
            expected = compiled.expected_seconds if compiled.is_measured else math.inf
            return await self._thread.run_unless_alone(run, expected)
        finally:
            self._running = None

    def release_graph(self, compiled: NumpyGraph) -> None:
        """Drop the arrays, even if the graph is still referenced."""
        compiled.release()

    def finish(self) -> None:
        """Do nothing: no work runs asynchronously to the device timeline."""

    def flush(self) -> None:
        """Do nothing: no work is batched, every step runs at once."""

    def stop(self) -> None:
        """End a running dispatch before its next kernel."""
        if self._running is not None:
            self._running.stopped = True

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _arrays(storages: Mapping[str, Storage]) -> dict[str, HostArray]:
    return {name: storage.data for name, storage in storages.items()}
