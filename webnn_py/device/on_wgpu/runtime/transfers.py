"""Large copies between host and device, in slices through mapped memory that is kept, and bounded.

What a large write is given is copied once by the host, at the call: into mapped memory, by several threads. A large
read is cut into slices, so that the GPU copies one while the host copies the one before.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np
import trio
import wgpu
from trio.lowlevel import enable_ki_protection

from webnn_py.device.backend import HostArray
from webnn_py.device.on_wgpu.runtime.native import BufferCopy, NativeQueue, Ticket, is_lost

LARGE: Final = 2**22
"""From so many bytes on, several threads copy, and writes are staged."""

SLICE: Final = 2**24
"""The bytes of a slice of mapped memory."""

MOST_STAGED: Final = 2**29
"""So many bytes of mapped memory may writes have that wait or are under way; what is beyond, is copied once more."""

KEPT: Final = 2**28
"""So many bytes of mapped memory are kept for the next writes."""

LONG_READ: Final = 2**27
"""A read of more bytes than this goes in slices."""

SLICE_READ: Final = 2**25
SLICES_READ: Final = 4
"""The bytes of a slice of such a read, and how many of them have mapped memory at a time."""

PIECE: Final = 2**23
"""So many bytes are copied before other tasks run: 1 or 2 ms."""

COPYING_THREADS: Final = min(8, os.cpu_count() or 1)

UPLOAD: Final = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC


def as_bytes(array: HostArray) -> HostArray:
    """The bytes of a contiguous array, in place."""
    return array.reshape(-1).view(np.uint8)


def copy_in_shares(target: Any, source: Any, copiers: ThreadPoolExecutor) -> None:
    """Copy many bytes in shares side by side, since fresh pages are what takes the time.

    Args:
        target: an array of bytes.
        source: likewise, of the same size.
        copiers: the threads.
    """
    edges = [source.nbytes * share // COPYING_THREADS for share in range(COPYING_THREADS + 1)]
    spans = [slice(*edge) for edge in pairwise(edges)]
    list(copiers.map(lambda span: np.copyto(target[span], source[span]), spans))


async def copy_mapped(
    target: HostArray, source: HostArray, copiers: ThreadPoolExecutor, look: Callable[[], None] | None
) -> None:
    """Copy mapped memory, much of it beside other tasks.

    Args:
        target: an array of bytes.
        source: likewise, of the same size: the memory.
        copiers: the threads.
        look: raises when the memory has gone with its device, which other tasks may destroy: then they have their turns
            between pieces only. None where nobody else has the device.
    """
    if target.nbytes < LARGE:
        np.copyto(target, source)
    elif look is None:
        await trio.to_thread.run_sync(copy_in_shares, target, source, copiers, limiter=trio.CapacityLimiter(1))
    else:
        for start in range(0, target.nbytes, PIECE):
            if start:
                await trio.lowlevel.cancel_shielded_checkpoint()
                look()
            copy_in_shares(target[start : start + PIECE], source[start : start + PIECE], copiers)


@attrs.frozen(eq=False)
class MappedSlice:
    """Memory that the host may write, and the GPU buffer that it is of."""

    buffer: wgpu.GPUBuffer
    memory: np.ndarray[Any, Any]


class StagedBytes:
    """The bytes of a write in mapped memory, until they are written, or nobody wants them any more."""

    def __init__(self, slices: Sequence[MappedSlice], byte_length: int, ring: UploadRing) -> None:
        self.nbytes = byte_length
        self._slices = slices
        self._ring = ring

    def take(self) -> Sequence[MappedSlice]:
        """The slices, which are the caller's now."""
        slices, self._slices = self._slices, ()
        return slices

    @enable_ki_protection
    def __del__(self) -> None:
        self._ring.idle.extend(self.take())


class UploadRing:
    """Slices of mapped memory for writes.

    Args:
        device: whose memory.
        queue: of the context.
        copiers: threads that copy.
    """

    def __init__(self, device: wgpu.GPUDevice, queue: NativeQueue, copiers: ThreadPoolExecutor) -> None:
        self._device = device
        self._queue = queue
        self._copiers = copiers
        self._all: dict[wgpu.GPUBuffer, None] = {}
        self._on_the_way: deque[tuple[Ticket, wgpu.GPUBuffer]] = deque()
        self.idle: deque[MappedSlice] = deque()

    def stage(self, array: HostArray) -> StagedBytes | None:
        """Copy a contiguous array into mapped memory; None where there is none."""
        if array.nbytes % 4 or array.nbytes < LARGE:
            return None
        if self._on_the_way:
            self._queue.poll(wait=False)
        if is_lost(self._device):  # and so is what was mapped: the library ends the process when it is asked for it
            return None
        self._collect()
        count = -(-array.nbytes // SLICE)
        missing = count - len(self.idle)
        if missing > 0 and not self._grow(missing):
            return None
        staged = StagedBytes([self.idle.popleft() for _ in range(count)], array.nbytes, self)
        source = as_bytes(array)
        for index, piece in enumerate(staged._slices):
            part = source[index * SLICE : (index + 1) * SLICE]
            copy_in_shares(piece.memory[: part.nbytes], part, self._copiers)
        return staged

    def _grow(self, missing: int) -> bool:
        """Make more slices; whether there is room for so many."""
        if (len(self._all) + missing) * SLICE > MOST_STAGED:
            return False
        for _ in range(missing):
            try:
                buffer = self._device.create_buffer(label="upload", size=SLICE, usage=UPLOAD, mapped_at_creation=True)
            except wgpu.GPUError:
                return False
            self._all[buffer] = None
            try:
                self._map(buffer)
            except MemoryError:
                self._drop(buffer)
                return False
        return True

    def _drop(self, buffer: wgpu.GPUBuffer) -> None:
        del self._all[buffer]
        buffer.destroy()

    def _map(self, buffer: wgpu.GPUBuffer) -> None:
        memory = np.frombuffer(self._queue.mapped_for_writing(buffer, SLICE), np.uint8)
        self.idle.append(MappedSlice(buffer, memory))

    def _collect(self) -> None:
        """Take back what the GPU has copied."""
        while self._on_the_way and self._on_the_way[0][0].done is not None:
            ticket, buffer = self._on_the_way.popleft()
            if ticket.done or (len(self.idle) + 1) * SLICE > KEPT:
                self._drop(buffer)
            else:
                self._map(buffer)

    def commands(self, staged: StagedBytes, target: wgpu.GPUBuffer) -> list[BufferCopy]:
        """Copies of all slices, which are unmapped for that; :meth:`submitted` has to follow.

        Raises:
            wgpu.GPUError: the device is lost.
        """
        copies = []
        for index, piece in enumerate(staged.take()):
            length = min(SLICE, staged.nbytes - index * SLICE)
            self._queue.unmap(piece.buffer)
            copies.append(BufferCopy(piece.buffer, target, length, target_offset=index * SLICE))
        return copies

    def submitted(self, copies: Sequence[BufferCopy]) -> None:
        """Have the slices mapped again, once they have been copied."""
        for copy in copies:
            self._on_the_way.append((self._queue.map_for_writing(copy.source, SLICE), copy.source))

    def close(self) -> None:
        """Give all memory back."""
        self.idle.clear()
        self._on_the_way.clear()
        for buffer in self._all:
            buffer.destroy()
        self._all = {}
