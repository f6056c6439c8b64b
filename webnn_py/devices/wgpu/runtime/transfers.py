"""Large copies out of mapped memory, by several threads; how long reads are cut into slices.

A long read is cut, so that the GPU copies one slice while the host copies the one before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

import numpy as np
import trio

from webnn_py.core.device.backend import HostArray

LARGE: Final = 2**24
"""From so many bytes on, a read is copied in a thread of its own."""

SHARE: Final = 3 * 2**20
"""The fewest bytes of a thread's share of a copy: waking it takes as long as copying 1 to 3 MB."""

LONG_READ: Final = 2**27
"""A read of more bytes than this goes in slices."""

SLICE_READ: Final = 2**25
SLICES_READ: Final = 4
"""The bytes of a slice of such a read, and how many of them have mapped memory at a time."""

PIECE: Final = 2**22
"""The bytes that are copied before other tasks run: some 0.3 ms."""

COPYING_THREADS: Final = min(8, os.cpu_count() or 1)


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
