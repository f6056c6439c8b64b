"""The onnxruntime backend on NVIDIA GPUs: buffers are in the GPU's memory, and all work is on one stream."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar

import attrs
import onnxruntime

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.graph import Graph
from webnn_py.core.message_text import device_text
from webnn_py.devices.copying import CopyRegion
from webnn_py.devices.onnxruntime.backend import OnnxruntimeBackend
from webnn_py.devices.onnxruntime.cuda_graph import CudaGraph
from webnn_py.devices.onnxruntime.cuda_memory import CudaBuffer, CudaError, CudaStream
from webnn_py.devices.onnxruntime.engine import EngineOptions

T = TypeVar("T")

INLINE_SECONDS: Final = 0.0003
"""The longest wait for the GPU for which the event loop does not look for other tasks: a look takes 0.1 ms."""

COPY_BYTES_PER_SECOND: Final = 5e9
"""A cautious estimate of the speed of a copy to the host."""


@attrs.define
class _Submitted:
    """The dispatches that were submitted since the GPU was last waited for.

    Attributes:
        seconds: the time that they are expected to take.
        began: when the first was submitted, in seconds of ``perf_counter``.
        graph: their graph; None if there are several.
        count: how many they are.
    """

    seconds: float = 0.0
    began: float = 0.0
    graph: CudaGraph | None = None
    count: int = 0

    def add(self, graph: CudaGraph) -> None:
        """Count one more."""
        if not self.count:
            self.began, self.graph = perf_counter(), graph
        elif self.graph is not graph:
            self.graph = None
        self.count += 1
        self.seconds += graph.device_seconds

    def finish(self) -> None:
        """Note that all of them have just finished."""
        if self.graph is not None:
            self.graph.measured((perf_counter() - self.began) / self.count)
        self.seconds, self.graph, self.count = 0.0, None, 0


class CudaBackend(OnnxruntimeBackend):
    """Runs graphs on an NVIDIA GPU.

    A dispatch returns when its kernels are submitted. Nothing waits for the GPU but reads, and graphs of which the CPU
    computes a part.

    Args:
        options: the options of onnxruntime.

    Raises:
        NotSupportedError: there is no such GPU, or CUDA's libraries cannot be loaded.
    """

    def __init__(self, options: EngineOptions) -> None:
        onnxruntime.preload_dlls()  # CUDA and cuDNN, where they are installed as packages
        try:
            self._stream = CudaStream(int(options.provider_options.get("device_id", "0")))
        except CudaError as error:
            raise NotSupportedError(
                f"{options.provider.name} cannot be used: {device_text(error)}; if an earlier context of this "
                "process was lost, start another process"
            ) from error
        streams = {"user_compute_stream": str(self._stream.handle)}
        super().__init__(attrs.evolve(options, provider_options={**options.provider_options, **streams}))
        self.info = attrs.evolve(self.info, adapter=self._stream.adapter)
        self._submitted = _Submitted()
        self._is_over = False

    def allocate(self, descriptor: MLOperandDescriptor) -> CudaBuffer:  # type: ignore[override]  # buffers are opaque
        """Allocate zeros."""
        with self._noticing_loss():
            return self._stream.allocate(descriptor)

    def stage(self, array: HostArray) -> HostArray:
        """Return a copy of an array that is to be written, in memory that the GPU reads itself."""
        return self._stream.host_copy(array)

    def write(self, storage: Storage, data: HostArray) -> None:  # type: ignore[override]
        """Copy an array into a buffer."""
        with self._noticing_loss():
            self._stream.write(storage.data, data)

    def read(self, storage: Storage) -> HostArray | Coroutine[Any, Any, HostArray]:
        """Copy the contents to the host, behind all work that was submitted."""
        buffer: CudaBuffer = storage.data
        seconds = self._submitted.seconds + buffer.descriptor.byte_length / COPY_BYTES_PER_SECOND
        read = partial(self._waited_for, partial(self._stream.read, buffer))
        if seconds <= INLINE_SECONDS or self._thread.may_skip_check(seconds):
            with self._noticing_loss():
                return read()
        return self._in_thread_unless_alone(read, seconds)

    def copy(self, source: Storage, destination: Storage, region: CopyRegion) -> None:
        """Copy elements from one buffer to another."""
        with self._noticing_loss():
            self._stream.copy(source.data, destination.data, region)

    def clear(self, storage: Storage) -> None:
        """Set all bytes to zero."""
        with self._noticing_loss():
            self._stream.clear(storage.data)

    def free(self, data: Any) -> None:
        """Release the memory of a buffer behind all work that was submitted, or a shared constant on the host."""
        if isinstance(data, CudaBuffer):
            for binding in list(data.bound_to):
                binding.unbind()
            if not self._is_over:
                with self._noticing_loss():
                    self._stream.free(data)

    def compile(self, graph: Graph) -> Coroutine[Any, Any, CudaGraph]:
        """Write the model and create its session."""
        return self._in_thread(partial(CudaGraph, graph, self._options, self._constants, self._stream))

    def dispatch(
        self, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
    ) -> Coroutine[Any, Any, None] | None:
        """Bind the buffers and submit the kernels."""
        with self._noticing_loss():
            pending = super().dispatch(compiled, inputs, outputs)
        if pending is None:
            self._submitted.add(compiled)
            return None
        return self._submitted_later(compiled, pending)

    async def _submitted_later(self, compiled: CudaGraph, pending: Coroutine[Any, Any, None]) -> None:
        with self._noticing_loss():
            await pending
        self._submitted.add(compiled)

    def finish(self) -> Coroutine[Any, Any, None] | None:  # type: ignore[override]
        """Wait until all submitted work has finished."""
        if self._is_over or (not self._submitted.count and self._is_idle()):
            return None
        return self._in_thread_unless_alone(
            partial(self._waited_for, self._stream.synchronize), self._submitted.seconds
        )

    def statistics(self) -> Mapping[str, int]:
        """Return the bytes of the GPU's memory and of pinned memory; nothing once the device is lost or closed."""
        if not self._is_over:
            with suppress(CudaError), self._noticing_loss():
                return self._stream.memory()
        return {}

    def close(self) -> None:
        """Destroy the stream."""
        self._is_over = True
        self._stream.close()

    def _is_idle(self) -> bool:
        with self._noticing_loss():
            return self._stream.is_idle()

    def _waited_for(self, step: Callable[[], T]) -> T:
        """Take a step that waits for the GPU."""
        result = step()
        self._submitted.finish()
        return result

    async def _in_thread(self, step: Callable[[], T]) -> T:
        with self._noticing_loss():
            return await self._thread.run(step)

    async def _in_thread_unless_alone(self, step: Callable[[], T], seconds: float) -> T:
        with self._noticing_loss():
            return await self._thread.run_unless_alone(step, seconds)

    @contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        """Report the loss of the device where an exception is that of broken work: every later call fails as well."""
        try:
            yield
        except Exception:
            if not self._is_over:
                try:
                    self._stream.is_idle()
                except CudaError as error:
                    self._is_over = True
                    self.lost(f"CUDA reports {error}")
            raise
