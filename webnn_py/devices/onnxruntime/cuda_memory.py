"""A GPU's memory through CUDA's runtime: allocated, copied and freed in the order of one stream.

The sessions of a context compute on its stream as well. So every step finds what the steps before it have written,
without a wait between them.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

import numpy as np
from cuda.bindings import runtime

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray
from webnn_py.devices.copying import CopyRegion

if TYPE_CHECKING:
    import onnxruntime

    from webnn_py.devices.onnxruntime.session import Binding

TO_DEVICE: Final = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
TO_HOST: Final = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
ON_DEVICE: Final = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice

NOT_CAPTURING: Final = runtime.cudaStreamCaptureStatus.cudaStreamCaptureStatusNone

DEVICE: Final = "cuda"
"""onnxruntime's name of this kind of memory."""

NON_BLOCKING: Final = 1
"""The flag of a stream that does not wait for the process's default stream."""


WITHOUT_TIMING: Final = 2
"""The flag of an event that keeps no time."""

LEAST_PINNED: Final = 2**16
"""The bytes from which on arrays are in pinned memory."""

PARALLEL_BYTES: Final = 2**22
"""The bytes from which on several threads copy an array: one copies 10 GB/s, and to wake the others takes 0.1 ms."""

COPYING_THREADS: Final = min(4, os.cpu_count() or 1)
"""How many threads copy a large array, the calling one among them."""

MOST_UNREAD: Final = 256
"""The most arrays that are kept together until the GPU has read them: an event for each would take 10 µs."""

MOST_UNREAD_BYTES: Final = 2**24
"""The most bytes of arrays that are kept together."""

MOST_PINNED: Final = 2**28
"""The most bytes of pinned memory, which the system cannot use for anything else."""


class CudaError(RuntimeError):
    """An error that CUDA's runtime reports."""


def checked(result: tuple[Any, ...]) -> Any:
    """Return the value of a call of CUDA's runtime; None where it has none, several as a list.

    Raises:
        MemoryError: the GPU has not enough memory.
        CudaError: the call failed, or work that was submitted before did.
    """
    error, *values = result
    if error == runtime.cudaError_t.cudaSuccess:
        return values if len(values) > 1 else values[0] if values else None
    text = runtime.cudaGetErrorString(error)[1].decode()
    runtime.cudaGetLastError()  # which would otherwise be reported to onnxruntime's next call
    if error == runtime.cudaError_t.cudaErrorMemoryAllocation:
        raise MemoryError(f"the GPU has not enough memory: {text}")
    raise CudaError(f"{text} ({error.name})")


def adapter_name(device_id: int) -> str:
    """Return the name of a GPU.

    Raises:
        CudaError: there is no such GPU.
    """
    name: bytes = checked(runtime.cudaGetDeviceProperties(device_id)).name
    return name.decode()


class PinnedMemory:
    """Memory of the host that the GPU reads and writes itself, five times as fast as other memory.

    It is in blocks of powers of two; a block is used again when nothing refers to its array any more.

    Attributes:
        byte_length: the bytes of all blocks.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[int]] = {}
        self.byte_length = 0
        self._is_closed = False
        self._in_use: deque[tuple[Any, list[HostArray]]] = deque()

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> HostArray:
        """Return an array with any contents; small ones, and what exceeds the limit, are in ordinary memory."""
        byte_length = math.prod(shape) * dtype.itemsize
        if byte_length < LEAST_PINNED:
            return np.empty(shape, dtype)
        self._let_go()
        size = 1 << (byte_length - 1).bit_length()
        blocks = self._free.setdefault(size, [])
        try:
            address = blocks.pop()  # which is atomic; blocks come back in any thread
        except IndexError:
            if self.byte_length + size > MOST_PINNED:
                return np.empty(shape, dtype)
            address = int(checked(runtime.cudaHostAlloc(size, 0)))
            self.byte_length += size
        block: Any = (ctypes.c_char * byte_length).from_address(address)
        finalize(block, self._give_back, address, size).atexit = False
        return np.ndarray(shape, dtype, buffer=block)

    def keep(self, arrays: list[HostArray], stream: Any) -> None:
        """Keep arrays until all work that was submitted to a stream has finished."""
        event = checked(runtime.cudaEventCreateWithFlags(WITHOUT_TIMING))
        checked(runtime.cudaEventRecord(event, stream))
        self._in_use.append((event, arrays))

    def _let_go(self) -> None:
        while self._in_use and runtime.cudaEventQuery(self._in_use[0][0])[0] == runtime.cudaError_t.cudaSuccess:
            runtime.cudaEventDestroy(self._in_use.popleft()[0])

    def _give_back(self, address: int, size: int) -> None:
        if self._is_closed:
            runtime.cudaFreeHost(address)
        else:
            self._free[size].append(address)

    def close(self) -> None:
        """Free what no array uses; the rest is freed with its arrays. All work must have finished."""
        self._is_closed = True
        while self._in_use:
            runtime.cudaEventDestroy(self._in_use.popleft()[0])
        for blocks in self._free.values():
            while blocks:
                runtime.cudaFreeHost(blocks.pop())


class CudaStream:
    """A queue of work on a GPU: steps run in the order in which they are submitted.

    Args:
        device_id: the number of the GPU, as CUDA counts them.

    Raises:
        CudaError: there is no such GPU, or the process's earlier work has broken its connection to it.
    """

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        checked(runtime.cudaSetDevice(device_id))
        self._stream = checked(runtime.cudaStreamCreateWithFlags(NON_BLOCKING))
        self._pinned = PinnedMemory()
        # The GPU writes to ordinary memory by way of the driver's own, which takes 5 µs more.
        self._small_reads = self._pinned.array((LEAST_PINNED,), np.dtype(np.uint8))
        self._copying = ThreadPoolExecutor(
            COPYING_THREADS, "webnn_py copies"
        )  # which starts threads when it needs them
        self._unread: list[HostArray] = []  # arrays that the GPU may still have to read
        self._unread_bytes = 0
        self.adapter = adapter_name(device_id)

    @property
    def handle(self) -> int:
        """The address of the stream, for onnxruntime."""
        return int(self._stream)

    def allocate(self, descriptor: MLOperandDescriptor) -> CudaBuffer:
        """Allocate memory with all bytes zero."""
        address = int(checked(runtime.cudaMallocAsync(descriptor.byte_length, self._stream)))
        buffer = CudaBuffer(self, address, descriptor)
        self.clear(buffer)
        return buffer

    def free(self, buffer: CudaBuffer) -> None:
        """Free memory behind all work that was submitted before."""
        checked(runtime.cudaFreeAsync(buffer.address, self._stream))

    def host_copy(self, array: HostArray) -> HostArray:
        """Return a copy of an array; of a large one in pinned memory."""
        copy = self._pinned.array(array.shape, array.dtype)
        if array.nbytes < PARALLEL_BYTES or not array.flags.c_contiguous:
            np.copyto(copy, array)
            return copy
        parts = [np.array_split(one.reshape(-1), COPYING_THREADS) for one in (copy, array)]
        own, *others = zip(*parts, strict=True)
        waiting = [self._copying.submit(np.copyto, *part) for part in others]
        np.copyto(*own)
        for one in waiting:
            one.result()
        return copy

    def write(self, buffer: CudaBuffer, data: HostArray) -> None:
        """Copy an array from the host, which must not change any more."""
        checked(runtime.cudaMemcpyAsync(buffer.address, data.ctypes.data, data.nbytes, TO_DEVICE, self._stream))
        self._unread.append(data)
        self._unread_bytes += data.nbytes
        if self._unread_bytes >= MOST_UNREAD_BYTES or len(self._unread) >= MOST_UNREAD:
            self._pinned.keep(self._unread, self._stream)
            self._unread, self._unread_bytes = [], 0

    def read(self, buffer: CudaBuffer) -> HostArray:
        """Copy the contents to the host, and wait until all work that was submitted before has finished."""
        array = self._pinned.array(buffer.descriptor.shape, np.dtype(buffer.descriptor.data_type))
        begin, size = array.ctypes.data, array.nbytes
        target = begin if size >= LEAST_PINNED else self._small_reads.ctypes.data
        checked(runtime.cudaMemcpyAsync(target, buffer.address, size, TO_HOST, self._stream))
        self.synchronize()
        if target != begin:
            ctypes.memmove(begin, target, size)
        return array

    def copy(self, source: CudaBuffer, destination: CudaBuffer, region: CopyRegion) -> None:
        """Copy elements from one buffer to another."""
        size = source.descriptor.byte_length // source.descriptor.element_count
        begin, end = (
            destination.address + region.destination_offset * size,
            source.address + region.source_offset * size,
        )
        checked(runtime.cudaMemcpyAsync(begin, end, region.count * size, ON_DEVICE, self._stream))

    def clear(self, buffer: CudaBuffer) -> None:
        """Set all bytes to zero."""
        checked(runtime.cudaMemsetAsync(buffer.address, 0, buffer.descriptor.byte_length, self._stream))

    def memory(self) -> dict[str, int]:
        """Return the memory of the GPU as it is now, and the pinned memory of the host."""
        current = checked(runtime.cudaGetDevice())  # of this thread, whose other code may use another GPU
        checked(runtime.cudaSetDevice(self.device_id))
        try:
            free, total = checked(runtime.cudaMemGetInfo())
        finally:
            runtime.cudaSetDevice(current)
        return {"total_bytes": total, "free_bytes": free, "pinned_bytes": self._pinned.byte_length}

    def end_capture(self) -> None:
        """Drop what a capture under way has recorded, since nothing else can be submitted before it ends."""
        if checked(runtime.cudaStreamIsCapturing(self._stream)) != NOT_CAPTURING:
            _, graph = runtime.cudaStreamEndCapture(self._stream)  # whose error is that of the capture
            if graph:
                runtime.cudaGraphDestroy(graph)
            runtime.cudaGetLastError()

    def synchronize(self) -> None:
        """Wait until all work that was submitted has finished."""
        checked(runtime.cudaStreamSynchronize(self._stream))
        self._unread.clear()
        self._unread_bytes = 0

    def is_idle(self) -> bool:
        """Return whether all work that was submitted has finished; raise ``CudaError`` where it failed."""
        error = runtime.cudaStreamQuery(self._stream)
        if error[0] == runtime.cudaError_t.cudaErrorNotReady:
            return False
        checked(error)
        return True

    def close(self) -> None:
        """Destroy the stream once all work that was submitted has finished, since it may read the host's memory."""
        runtime.cudaStreamSynchronize(self._stream)  # whose errors are those of earlier work, as the next call's
        self._unread.clear()
        del self._small_reads
        self._pinned.close()
        self._copying.shutdown()
        runtime.cudaStreamDestroy(self._stream)


class CudaBuffer:
    """The memory of a buffer on a GPU.

    Attributes:
        address: where it begins, in the GPU's memory.
        descriptor: its data type and shape.
        bound_to: the bindings that hold it, which must release it when it is freed.
    """

    __slots__ = ("_stream", "address", "bound_to", "descriptor")

    def __init__(self, stream: CudaStream, address: int, descriptor: MLOperandDescriptor) -> None:
        self._stream = stream
        self.address = address
        self.descriptor = descriptor
        self.bound_to: set[Binding] = set()

    @property
    def array(self) -> HostArray:
        """A copy of the contents, for which all submitted work is waited for."""
        return self._stream.read(self)

    def _placed(self, name: str) -> tuple[Any, ...]:
        dtype = np.dtype(self.descriptor.data_type).type
        return name, DEVICE, self._stream.device_id, dtype, self.descriptor.shape, self.address

    def bind_input(self, binding: onnxruntime.IOBinding, name: str) -> None:
        """Let a session read it."""
        binding.bind_input(*self._placed(name))

    def bind_output(self, binding: onnxruntime.IOBinding, name: str) -> None:
        """Let a session write it."""
        binding.bind_output(*self._placed(name))
