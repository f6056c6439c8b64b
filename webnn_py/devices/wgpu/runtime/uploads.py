"""The bytes of writes and constants in mapped memory, which is bounded and used in turn: the host copies once.

Slices of mapped memory come in sizes that are powers of two. The GPU copies out of them together with the kernels that
follow. A slice that has been copied is mapped again when the GPU says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, cast

import attrs
import numpy as np
import trio
import wgpu
from trio.lowlevel import enable_ki_protection

from webnn_py.core.device.backend import HostArray
from webnn_py.devices.wgpu.engines.engine import Engine, Ticket
from webnn_py.devices.wgpu.runtime.context_queue import BufferCopy, ContextQueue
from webnn_py.devices.wgpu.runtime.device_loss import is_lost
from webnn_py.devices.wgpu.runtime.transfers import as_bytes, copy_in_shares

LEAST: Final = 2**16
"""Writes of fewer bytes go through the queue, which copies them once more."""

SLICE: Final = 2**24
"""The most bytes of a slice of mapped memory."""

MOST_STAGED: Final = 2**29
"""The most bytes of mapped memory of writes that wait or are under way; further ones are copied once more."""

KEPT: Final = 2**28
"""The most bytes of mapped memory that are kept for the next writes."""

LEAST_CONSTANT: Final = 2**20
"""Constants of fewer bytes go through the queue, for which the library takes memory anew each time."""

MOST_SLICES: Final = 6
"""The most slices of a build; each is twice as long as the one before, up to the size of a whole one."""

UPLOAD: Final = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC


def sizes_of_slices(byte_length: int) -> list[int]:
    """Return the sizes of the slices for a number of bytes: whole ones, and a last one that may be smaller."""
    whole, rest = divmod(byte_length, SLICE)
    return [SLICE] * whole + [1 << (max(rest, LEAST) - 1).bit_length()] * (rest > 0)


@attrs.frozen(eq=False)
class MappedSlice:
    """Memory that the host may write, and the GPU buffer that it is of."""

    buffer: wgpu.GPUBuffer
    memory: np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class UploadCopy(BufferCopy):
    """A copy out of a slice, which may be mapped again once this is submitted."""

    ring: UploadRing = attrs.field(kw_only=True)

    def encode(self, engine: Engine, encoder: Any) -> None:
        super().encode(engine, encoder)
        self.ring.submitted(self.source)


class StagedBytes:
    """The bytes of a write in mapped memory, until they are written or dropped."""

    def __init__(self, slices: Sequence[MappedSlice], byte_length: int, ring: UploadRing) -> None:
        self.nbytes = byte_length
        self._slices = slices
        self._ring = ring

    def take(self) -> Sequence[MappedSlice]:
        """Return the slices, which are the caller's now."""
        slices, self._slices = self._slices, ()
        return slices

    @enable_ki_protection
    def __del__(self) -> None:
        for piece in self.take():
            self._ring.keep(piece)


def upload(
    write: Callable[[wgpu.GPUBuffer, Any, int], None], buffer: wgpu.GPUBuffer, data: np.ndarray[Any, Any]
) -> None:
    """Copy host bytes into a buffer; the queue wants a multiple of four bytes, and the buffer has room for it.

    Args:
        write: copies, in a way of the queue's.
        buffer: copy into this.
        data: the bytes.
    """
    if data.nbytes % 4:
        whole = np.zeros(-(-data.nbytes // 4) * 4, np.uint8)
        whole[: data.nbytes] = data.reshape(-1).view(np.uint8)
        data = whole
    write(buffer, np.ascontiguousarray(data), data.nbytes)


class UploadRing:
    """Slices of mapped memory for writes.

    Args:
        device: whose memory.
        queue: of the context.
        copiers: threads that copy.
    """

    def __init__(self, device: wgpu.GPUDevice, queue: ContextQueue, copiers: ThreadPoolExecutor) -> None:
        self._device = device
        self._queue = queue
        self._copiers = copiers
        self.byte_length = 0  # of all slices
        self._all: dict[wgpu.GPUBuffer, None] = {}
        self._submitted: list[wgpu.GPUBuffer] = []
        self._on_the_way: deque[tuple[Ticket, wgpu.GPUBuffer]] = deque()
        self._idle: dict[int, deque[MappedSlice]] = {}

    @property
    def idle_bytes(self) -> int:
        """The bytes of those that the next writes may use at once."""
        return sum(size * len(pieces) for size, pieces in self._idle.items())

    def keep(self, piece: MappedSlice) -> None:
        """Take back a slice that is mapped."""
        self._idle.setdefault(piece.memory.nbytes, deque()).append(piece)

    def stage(self, array: HostArray) -> StagedBytes | None:
        """Copy a contiguous array into mapped memory; return None if none is free."""
        if array.nbytes % 4 or array.nbytes < LEAST:
            return None
        sizes = sizes_of_slices(array.nbytes)
        if self._missing(sizes) and self._are_unanswered():
            self._queue.poll()
        if is_lost(self._device):  # and so is what was mapped: the library ends the process when it is asked for it
            return None
        self._collect()
        if not self._grow(sizes):
            return None
        staged = StagedBytes([self._idle[size].popleft() for size in sizes], array.nbytes, self)
        source = as_bytes(array)
        for index, piece in enumerate(staged._slices):
            part = source[index * SLICE : (index + 1) * SLICE]
            copy_in_shares(piece.memory[: part.nbytes], part, self._copiers)
        return staged

    def _missing(self, sizes: Sequence[int]) -> list[int]:
        missing: list[int] = []
        for size in dict.fromkeys(sizes):
            missing += [size] * (sizes.count(size) - len(self._idle.get(size, ())))
        return missing

    def _are_unanswered(self) -> bool:
        self.map_again()
        return bool(self._on_the_way) and self._on_the_way[0][0].done is None

    def _grow(self, sizes: Sequence[int]) -> bool:
        """Make the missing slices; return whether there is room for them."""
        missing = self._missing(sizes)
        wanted = sum(missing)
        for size in [size for size in self._idle if size not in sizes]:
            while self._idle[size] and self.byte_length + wanted > MOST_STAGED:
                self._drop(self._idle[size].pop().buffer)
        if self.byte_length + wanted > MOST_STAGED:
            return False
        for size in missing:
            try:
                buffer = self._device.create_buffer(label="upload", size=size, usage=UPLOAD, mapped_at_creation=True)
            except wgpu.GPUError:
                return False
            self._all[buffer] = None
            self.byte_length += size
            try:
                self._map(buffer)
            except MemoryError:
                self._drop(buffer)
                return False
        return True

    def _drop(self, buffer: wgpu.GPUBuffer) -> None:
        del self._all[buffer]
        self.byte_length -= buffer.size
        buffer.destroy()

    def _map(self, buffer: wgpu.GPUBuffer) -> None:
        memory = self._queue.engine.mapped_bytes(buffer, buffer.size, writes=True)
        self.keep(MappedSlice(buffer, np.frombuffer(memory, np.uint8)))

    def _collect(self) -> None:
        """Take back what the GPU has copied."""
        while self._on_the_way and self._on_the_way[0][0].done is not None:
            ticket, buffer = self._on_the_way.popleft()
            if ticket.done or self.idle_bytes + buffer.size > KEPT:
                self._drop(buffer)
            else:
                self._map(buffer)

    def commands(self, staged: StagedBytes, target: wgpu.GPUBuffer) -> list[BufferCopy]:
        """Copies of all slices, which are unmapped for that.

        Raises:
            wgpu.GPUError: the device is lost.
        """
        copies: list[BufferCopy] = []
        for index, piece in enumerate(staged.take()):
            length = min(SLICE, staged.nbytes - index * SLICE)
            self._queue.engine.unmap(piece.buffer)
            copies.append(UploadCopy(piece.buffer, target, length, target_offset=index * SLICE, ring=self))
        return copies

    def submitted(self, buffer: wgpu.GPUBuffer) -> None:
        """A slice is being submitted; :meth:`map_again` has to come later."""
        self._submitted.append(buffer)

    def map_again(self) -> None:
        """Ask for the memory of what has been submitted, once the GPU has copied it."""
        while self._submitted:
            buffer = self._submitted.pop()
            try:
                self._on_the_way.append((self._queue.map(buffer, buffer.size, writes=True), buffer))
            except wgpu.GPUError:  # the device is lost, which others tell
                self._drop(buffer)

    def close(self) -> None:
        """Give all memory back."""
        self._idle.clear()
        self._submitted.clear()
        self._on_the_way.clear()
        for buffer in self._all:
            buffer.destroy()
        self._all = {}
        self.byte_length = 0


class ConstantUploads:
    """Copies constants into fresh memory in the thread of a build, large ones through a few slices.

    Args:
        device: whose memory.
        queue: of the context.
        copiers: threads that copy into slices; None for a device that may be destroyed meanwhile, with its mapped
            memory: then all constants go through the queue.
    """

    def __init__(self, device: wgpu.GPUDevice, queue: ContextQueue, copiers: ThreadPoolExecutor | None) -> None:
        self._device = device
        self._queue = queue
        self._copiers = copiers
        self._all: list[wgpu.GPUBuffer] = []
        self._on_the_way: deque[tuple[Ticket, wgpu.GPUBuffer]] = deque()
        self._open: MappedSlice | None = None
        self._used = 0  # bytes of the open slice
        self._copies: list[BufferCopy] = []  # out of it

    def fill(self, target: wgpu.GPUBuffer, data: HostArray) -> None:
        """Copy ``data`` into ``target``; :meth:`submit` has to come later.

        Raises:
            wgpu.GPUError: there is no memory, or the device is lost.
        """
        if self._copiers is None or data.nbytes < LEAST_CONSTANT:
            upload(self._queue.fill, target, data)
            return
        source = as_bytes(np.ascontiguousarray(data))
        for start in range(0, source.nbytes, SLICE):
            part = source[start : start + SLICE]
            whole = -(-part.nbytes // 4) * 4
            memory, offset = self._room(whole)
            copy_in_shares(memory[: part.nbytes], part, self._copiers)
            memory[part.nbytes :] = 0
            piece = cast("MappedSlice", self._open)
            self._copies.append(BufferCopy(piece.buffer, target, whole, offset, start))

    def _room(self, byte_length: int) -> tuple[np.ndarray[Any, Any], int]:
        """Return so many bytes of a slice, and their offset in it."""
        if self._open is None or self._used + byte_length > self._open.buffer.size:
            self.submit()
            self._open, self._used = self._next_slice(byte_length), 0
        offset, self._used = self._used, self._used + byte_length
        return self._open.memory[offset : self._used], offset

    def _next_slice(self, byte_length: int) -> MappedSlice:
        if len(self._all) < MOST_SLICES:
            size = max(byte_length, 2 * self._all[-1].size if self._all else 0)
            size = min(SLICE, 1 << (size - 1).bit_length())
            buffer = self._device.create_buffer(label="constants", size=size, usage=UPLOAD, mapped_at_creation=True)
            self._all.append(buffer)
        else:
            index = next(i for i, (_, buffer) in enumerate(self._on_the_way) if buffer.size >= byte_length)
            ticket, buffer = self._on_the_way[index]
            del self._on_the_way[index]
            while ticket.done is None:
                self._queue.wait(ticket, is_shared=True)
            if ticket.done or is_lost(self._device):
                raise wgpu.GPUError(ticket.done or "the device is lost")
        memory = self._queue.engine.mapped_bytes(buffer, buffer.size, writes=True)
        return MappedSlice(buffer, np.frombuffer(memory, np.uint8))

    def submit(self) -> None:
        """Submit all copies so far."""
        if self._open is not None:
            piece, self._open = self._open, None
            trio.from_thread.run_sync(self._submit, piece.buffer)

    def _submit(self, buffer: wgpu.GPUBuffer) -> None:
        copies, self._copies = self._copies, []
        self._queue.engine.unmap(buffer)
        self._queue.run(copies)
        self._on_the_way.append((self._queue.map(buffer, buffer.size, writes=True), buffer))

    def end(self) -> None:
        """Give the slices back; what is not submitted is dropped."""
        self._queue.catch_up()
        for buffer in self._all:
            buffer.destroy()
        self._all, self._copies, self._open = [], [], None
        self._on_the_way.clear()

    def close(self) -> None:
        """Nothing more comes."""
        self._copiers = None
