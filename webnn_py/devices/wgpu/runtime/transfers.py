"""Reads: several share a staging buffer, long ones are cut into slices, and threads copy out of mapped memory.

A long read is cut, so that the GPU copies one slice while the host copies the one before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np
import trio
import wgpu

from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.devices.wgpu.engines.engine import Engine, Ticket
from webnn_py.devices.wgpu.runtime.context_queue import BufferCopy

LARGE: Final = 2**24
"""From so many bytes on, a read is copied in a thread of its own."""

SHARE: Final = 3 * 2**20
"""The fewest bytes of a thread's share of a copy: waking it takes as long as copying 1 to 3 MB."""

MOST_TOGETHER: Final = 2**24
"""The most bytes of reads that share a staging buffer: the host copies none before the GPU has copied all."""

LONG_READ: Final = 2**27
"""A read of more bytes than this goes in slices."""

SLICE_READ: Final = 2**25
SLICES_READ: Final = 4
"""The bytes of a slice of such a read, and how many of them have mapped memory at a time."""

PIECE: Final = 2**22
"""The bytes that are copied before other tasks run: some 0.3 ms."""

COPYING_THREADS: Final = min(8, os.cpu_count() or 1)


@attrs.define(eq=False)
class StagedReads:
    """A staging buffer with the bytes of some reads.

    Attributes:
        buffer: the staging buffer.
        byte_length: how much of it is used, a multiple of 4.
        ticket: answered when it is mapped.
        left: the number of reads whose bytes have not been copied out of it.
        is_answered: whether the ticket has been waited for.
    """

    buffer: wgpu.GPUBuffer
    byte_length: int
    ticket: Ticket
    left: int
    is_answered: bool = False


@attrs.define(eq=False)
class PendingRead:
    """Bytes of a buffer that are to be copied to the host.

    Attributes:
        storage: the buffer; it may be released before the copy is submitted.
        source: its memory.
        start: the first byte that is read, a multiple of 4.
        byte_length: the number of bytes.
        offset: their place in the staging buffer.
        staged: the staging buffer; None until the copy is submitted.
        error: the reason why it cannot be submitted; None if it can.
    """

    storage: Storage
    source: wgpu.GPUBuffer
    start: int
    byte_length: int
    offset: int = 0
    staged: StagedReads | None = None
    error: Exception | None = None

    @property
    def whole(self) -> int:
        """The number of bytes that the GPU copies: a multiple of 4."""
        return -(-self.byte_length // 4) * 4

    def fail(self, error: Exception) -> None:
        """Take note of an error, which also reports the failure of a step that was submitted together with the read."""
        self.error = copy(error)
        if self.storage.failure is not None:
            self.storage.failure.mark_reported()


@attrs.frozen(eq=False)
class ReadCopies:
    """The copies of some reads into one staging buffer, as one command."""

    reads: Sequence[PendingRead]
    target: wgpu.GPUBuffer

    def encode(self, engine: Engine, encoder: Any) -> None:
        for read in self.reads:
            BufferCopy(read.source, self.target, read.whole, read.start, read.offset).encode(engine, encoder)


def as_bytes(array: HostArray) -> HostArray:
    """Return the bytes of a contiguous array, in place."""
    return array.reshape(-1).view(np.uint8)


def copy_in_shares(target: Any, source: Any, copiers: ThreadPoolExecutor) -> None:
    """Copy bytes, many of them in shares side by side: in this thread, and in others.

    Args:
        target: an array of bytes.
        source: an array of as many bytes.
        copiers: the threads.
    """
    count = min(COPYING_THREADS, source.nbytes // SHARE)
    if count <= 1:
        np.copyto(target, source)
        return
    edges = [source.nbytes * share // count for share in range(count + 1)]
    own, *others = [slice(*edge) for edge in pairwise(edges)]
    copied = copiers.map(lambda span: np.copyto(target[span], source[span]), others)
    np.copyto(target[own], source[own])
    list(copied)


async def copy_mapped(
    target: HostArray, source: HostArray, copiers: ThreadPoolExecutor, look: Callable[[], None] | None
) -> None:
    """Copy mapped memory, much of it beside other tasks.

    Args:
        target: an array of bytes.
        source: the mapped memory, an array of as many bytes.
        copiers: the threads.
        look: raises when the memory has gone with its device, which other tasks may destroy: then they have their turns
            between pieces only. None where nobody else has the device: much is copied in a thread then.
    """
    if look is None and target.nbytes >= LARGE:
        await trio.to_thread.run_sync(copy_in_shares, target, source, copiers, limiter=trio.CapacityLimiter(1))
        return
    for start in range(0, target.nbytes, PIECE):
        if start:
            await trio.lowlevel.cancel_shielded_checkpoint()
            if look is not None:
                look()
        copy_in_shares(target[start : start + PIECE], source[start : start + PIECE], copiers)
