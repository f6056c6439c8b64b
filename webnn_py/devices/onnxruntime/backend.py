"""The onnxruntime backend: buffers are arrays that onnxruntime reads and writes in place, a graph is a session."""

import math
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.graph import Graph
from webnn_py.devices.composites.loops import LOOP
from webnn_py.devices.copying import CopyRegion
from webnn_py.devices.onnxruntime.claimed_operators import runs_loop
from webnn_py.devices.onnxruntime.engine import EngineOptions, describe
from webnn_py.devices.onnxruntime.executable import OnnxruntimeGraph
from webnn_py.devices.onnxruntime.session import HostBuffer, SpareBuffers
from webnn_py.devices.onnxruntime.webgpu_adapter import capabilities_on
from webnn_py.devices.shared_constants import SharedConstants
from webnn_py.devices.worker_thread import WorkerThread

THREAD_SECONDS: Final = 0.002
"""Steps expected to take longer run in a worker thread if other tasks wait; that costs 0.2 to 0.4 ms."""

COPY_BYTES_PER_SECOND: Final = 4e9
"""A cautious estimate of the speed of a copy into fresh memory."""

LEAST_TAKEN: Final = 2**16
"""The bytes from which on a write takes over the array: binding another array takes longer than copying fewer bytes."""


class OnnxruntimeBackend:
    """Runs graphs with onnxruntime: short ones inline, and long ones in a worker thread if other tasks could run.

    Args:
        options: the options of onnxruntime.
    """

    overlapping = False

    def __init__(self, options: EngineOptions) -> None:
        self.info = describe(options.provider)
        is_known = not options.provider.may_lack_float16
        self.capabilities = options.provider.capabilities if is_known else capabilities_on(options)
        self.lost: Callable[[str], None] = lambda _message: None
        self._thread = WorkerThread()
        self._options = options
        self._constants = SharedConstants()
        self._spares = SpareBuffers()
        self._running: OnnxruntimeGraph | None = None

    def allocate(self, descriptor: MLOperandDescriptor) -> HostBuffer:
        """Allocate zeros; the system provides the pages when they are first touched."""
        return HostBuffer(np.zeros(descriptor.shape, descriptor.data_type))

    def stage(self, array: HostArray) -> HostArray | HostBuffer:
        """Return a copy of an array that is to be written."""
        return self._spares.copy_of(array) if array.nbytes >= LEAST_TAKEN else array.copy()

    def write(self, storage: Storage, data: HostArray | HostBuffer) -> None:
        """Take over ``data``, which belongs to the device now, as the contents; copy small data instead."""
        if storage.memory is None:
            raise MemoryError("the buffer has no memory on the device")
        if not isinstance(data, HostBuffer):
            if data.nbytes < LEAST_TAKEN:
                storage.memory.data.array[...] = data  # numpy's copyto() takes one more Python call
                return
            data = HostBuffer(data)
        self._spares.give(storage.data)
        storage.memory.data = data

    def read(self, storage: Storage) -> HostArray | Coroutine[Any, Any, HostArray]:
        """Copy the contents."""
        if storage.memory is None:
            raise MemoryError("the buffer has no memory on the device")
        array: HostArray = storage.memory.data.array  # not storage.data: a property costs a call
        if array.nbytes > THREAD_SECONDS * COPY_BYTES_PER_SECOND:
            return self._thread.run(array.copy)
        return array.copy()

    def copy(self, source: Storage, destination: Storage, region: CopyRegion) -> Coroutine[Any, Any, None] | None:
        """Copy elements from one array to another."""
        taken: HostArray = source.data.array.reshape(-1)[region.of_source]
        target = destination.data.array.reshape(-1)[region.of_destination]
        if taken.nbytes > THREAD_SECONDS * COPY_BYTES_PER_SECOND:
            return self._thread.run(lambda: np.copyto(target, taken))
        np.copyto(target, taken)
        return None

    def clear(self, storage: Storage) -> None:
        """Replace the contents by fresh zeros, whose pages the system provides when they are first touched."""
        self.write(storage, np.zeros(storage.descriptor.shape, storage.descriptor.data_type))

    def free(self, data: HostBuffer | HostArray) -> None:
        """Release the memory of a buffer or a shared constant, which no graph may reference any more."""
        if isinstance(data, HostBuffer):
            self._spares.drop(data)
            data.unbind()

    def compile(self, graph: Graph) -> OnnxruntimeGraph | Coroutine[Any, Any, OnnxruntimeGraph]:
        """Write the model and create its session; inline if that takes little time."""
        make = partial(OnnxruntimeGraph, graph, self._options, self._constants)
        seconds = OnnxruntimeGraph.compile_seconds(graph)
        return make() if seconds <= THREAD_SECONDS else self._thread.run_unless_alone(make, seconds)

    def runs_loop(self, step: Graph, steps: int) -> bool:
        """Return whether the provider has loops, and runs these steps faster as one."""
        return bool(self.capabilities.supports(LOOP)) and runs_loop(step, steps)

    def dispatch(
        self, compiled: OnnxruntimeGraph, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> Coroutine[Any, Any, None] | None:
        """Bind the buffers and run the session."""
        compiled.bind(inputs, outputs)
        seconds = compiled.expected_seconds
        if seconds > THREAD_SECONDS and not self._thread.may_skip_check(seconds):
            return self._dispatch_later(compiled, compiled.run_checked, seconds)
        return self._dispatch_later(compiled, compiled.run_exactly, math.inf) if compiled.run() else None

    async def _dispatch_later(self, compiled: OnnxruntimeGraph, run: Callable[[], None], seconds: float) -> None:
        self._running = compiled
        try:
            await self._thread.run_unless_alone(run, seconds)
        finally:
            self._running = None

    def release_graph(self, compiled: OnnxruntimeGraph) -> None:
        """Drop the session, even if the graph is still referenced."""
        compiled.release()

    def finish(self) -> None:
        """Do nothing: no work runs asynchronously to the device timeline."""

    def flush(self) -> None:
        """Do nothing: no work is batched, every step runs at once."""

    def stop(self) -> None:
        """End a running dispatch before its next node."""
        if self._running is not None:
            self._running.stop()

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
