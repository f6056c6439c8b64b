"""A stand-in for CUDA's runtime: a GPU whose memory is the host's, and whose work waits until it is asked for."""

import ctypes
import enum
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Error = enum.IntEnum(
    "cudaError_t",
    {"cudaSuccess": 0, "cudaErrorMemoryAllocation": 2, "cudaErrorIllegalAddress": 700, "cudaErrorNotReady": 600},
)
MemcpyKind = enum.IntEnum(
    "cudaMemcpyKind", ["cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"]
)
CaptureStatus = enum.IntEnum(
    "cudaStreamCaptureStatus", {"cudaStreamCaptureStatusNone": 0, "cudaStreamCaptureStatusActive": 1}
)


class FakeCuda(ModuleType):
    """``cuda.bindings.runtime``.

    Attributes:
        queued: the work that was submitted and has not run.
        waits: how often the host waited.
        calls: the names of the functions that were called.
        memory: the sizes of what is allocated on the GPU, by address.
        pinned: the same of pinned memory of the host.
        capacity: the most bytes of the GPU.
        gpus: the numbers of the GPUs that are there.
        device: that of the GPU that the thread uses.
        asked_of: the GPUs whose memory was asked for.
        is_capturing: whether a capture is under way: nothing can be submitted.
        error: the error that all calls return once it is set: the GPU is lost.
    """

    def __init__(self) -> None:
        super().__init__("cuda.bindings.runtime")
        self.cudaError_t, self.cudaMemcpyKind, self.cudaStreamCaptureStatus = Error, MemcpyKind, CaptureStatus
        self.queued: list[Callable[[], object]] = []
        self.waits = 0
        self.calls: list[str] = []
        self.memory: dict[int, Any] = {}
        self.pinned: dict[int, Any] = {}
        self.capacity = 2**30
        self.is_capturing = False
        self.error = Error.cudaSuccess
        self.streams = 0
        self.gpus, self.device = {0}, 0
        self.asked_of: list[int] = []

    def _done(self, name: str, *values: object) -> tuple[object, ...]:
        self.calls.append(name)
        return (self.error, *values)

    def _submit(self, name: str, work: Callable[[], object]) -> tuple[object, ...]:
        assert not self.is_capturing, f"{name} during a capture"
        self.queued.append(work)
        return self._done(name)

    def run_queued(self) -> None:
        """Run all that was submitted, as the GPU does sooner or later."""
        queued, self.queued = self.queued, []
        for work in queued:
            work()

    def cudaStreamIsCapturing(self, _stream: object) -> tuple[object, ...]:  # noqa: N802
        return self._done("cudaStreamIsCapturing", CaptureStatus(self.is_capturing))

    def cudaStreamEndCapture(self, _stream: object) -> tuple[object, ...]:  # noqa: N802
        self.is_capturing = False
        return self._done("cudaStreamEndCapture", "a graph")

    def cudaGraphDestroy(self, _graph: object) -> tuple[object, ...]:  # noqa: N802
        return self._done("cudaGraphDestroy")

    def cudaSetDevice(self, number: int) -> tuple[object, ...]:  # noqa: N802 - CUDA's name, as all below
        if number not in self.gpus:
            return (Error.cudaErrorIllegalAddress,)
        self.device = number
        return self._done("cudaSetDevice")

    def cudaGetDevice(self) -> tuple[object, ...]:  # noqa: N802
        return self._done("cudaGetDevice", self.device)

    def cudaMemGetInfo(self) -> tuple[object, ...]:  # noqa: N802
        self.asked_of.append(self.device)
        taken = sum(map(len, self.memory.values()))
        return self._done("cudaMemGetInfo", self.capacity - taken, self.capacity)

    def cudaStreamCreateWithFlags(self, _flags: int) -> tuple[object, ...]:  # noqa: N802
        self.streams += 1
        return self._done("cudaStreamCreateWithFlags", self.streams)

    def cudaStreamDestroy(self, _stream: object) -> tuple[object, ...]:  # noqa: N802
        self.run_queued()
        self.streams -= 1
        return self._done("cudaStreamDestroy")

    def cudaGetDeviceProperties(self, _number: int) -> tuple[object, ...]:  # noqa: N802
        properties = type("Properties", (), {"name": b"a fake GPU"})
        return self._done("cudaGetDeviceProperties", properties)

    def cudaGetErrorString(self, error: object) -> tuple[object, bytes]:  # noqa: N802
        return Error.cudaSuccess, b"the text of the error"

    def cudaGetLastError(self) -> tuple[object, ...]:  # noqa: N802
        return (self.error,)

    def cudaMallocAsync(self, size: int, _stream: object) -> tuple[object, ...]:  # noqa: N802
        if sum(map(len, self.memory.values())) + size > self.capacity:
            return Error.cudaErrorMemoryAllocation, 0
        block = (ctypes.c_char * size)()
        self.memory[ctypes.addressof(block)] = block
        return self._done("cudaMallocAsync", ctypes.addressof(block))

    def cudaFreeAsync(self, address: int, _stream: object) -> tuple[object, ...]:  # noqa: N802
        return self._submit("cudaFreeAsync", lambda: self.memory.pop(address))

    def cudaHostAlloc(self, size: int, _flags: int) -> tuple[object, ...]:  # noqa: N802
        block = (ctypes.c_char * size)()
        self.pinned[ctypes.addressof(block)] = block
        return self._done("cudaHostAlloc", ctypes.addressof(block))

    def cudaFreeHost(self, address: int) -> tuple[object, ...]:  # noqa: N802
        del self.pinned[address]
        return self._done("cudaFreeHost")

    def cudaMemcpyAsync(  # noqa: N802
        self, to: int, source: int, size: int, kind: object, _stream: object
    ) -> tuple[object, ...]:
        return self._submit("cudaMemcpyAsync", lambda: ctypes.memmove(to, source, size))

    def cudaMemsetAsync(self, address: int, value: int, size: int, _stream: object) -> tuple[object, ...]:  # noqa: N802
        return self._submit("cudaMemsetAsync", lambda: ctypes.memset(address, value, size))

    def cudaStreamSynchronize(self, _stream: object) -> tuple[object, ...]:  # noqa: N802
        self.waits += 1
        self.run_queued()
        return self._done("cudaStreamSynchronize")

    def cudaStreamQuery(self, _stream: object) -> tuple[object, ...]:  # noqa: N802
        return (Error.cudaErrorNotReady,) if self.queued and not self.error else self._done("cudaStreamQuery")

    def cudaEventCreateWithFlags(self, _flags: int) -> tuple[object, ...]:  # noqa: N802
        return self._done("cudaEventCreateWithFlags", [False])

    def cudaEventRecord(self, event: list[bool], _stream: object) -> tuple[object, ...]:  # noqa: N802
        def record() -> None:
            event[0] = True

        return self._submit("cudaEventRecord", record)

    def cudaEventQuery(self, event: list[bool]) -> tuple[object, ...]:  # noqa: N802
        return (Error.cudaSuccess if event[0] else Error.cudaErrorNotReady,)

    def cudaEventDestroy(self, _event: object) -> tuple[object, ...]:  # noqa: N802
        return self._done("cudaEventDestroy")


@contextmanager
def with_cuda_bindings() -> Iterator[None]:
    """Import the stand-in within the context where the package is not installed."""
    if find_spec("cuda") is not None:
        yield
        return
    bindings = ModuleType("cuda.bindings")
    bindings.runtime = FakeCuda()
    sys.modules |= {"cuda": ModuleType("cuda"), "cuda.bindings": bindings}
    try:
        yield
    finally:
        del sys.modules["cuda"], sys.modules["cuda.bindings"]
