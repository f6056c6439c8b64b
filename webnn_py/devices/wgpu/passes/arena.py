"""The memory of a graph's intermediates: one GPU buffer, the arena, as far as adapter and kernels allow.

A kernel that writes a block into the arena binds the blocks that it reads for writing, too
(:func:`~webnn_py.devices.wgpu.records.kernel.writable`). One that cannot, since it reads a block twice, writes
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import attrs

from webnn_py.devices.arena import Interval, lay_out
from webnn_py.devices.wgpu.records.buffer import Buffer, padded
from webnn_py.devices.wgpu.records.kernel import Kernel, reads_twice

ALIGNMENT: Final = 256
"""Where a binding may begin on every adapter: at a multiple of so many bytes."""


class DeviceMemory(Protocol):
    """A buffer on the device.

    Attributes:
        size: its bytes.
    """

    @property
    def size(self) -> int: ...

    def destroy(self) -> None:
        """Give the memory back."""


Allocate = Callable[[int, str], DeviceMemory]
"""(bytes, label) → a new buffer."""


@attrs.frozen
class BufferRange:
    """A part of a buffer, or all of it, in bytes."""

    buffer: DeviceMemory
    offset: int
    byte_length: int

    @classmethod
    def whole(cls, buffer: DeviceMemory) -> BufferRange:
        """Return all of a buffer."""
        return cls(buffer, 0, buffer.size)


def place_blocks(kernels: Sequence[Kernel], largest: int, allocate: Allocate) -> dict[Buffer, BufferRange]:
    """Give blocks memory that no other block has which is needed at the same time.

    Args:
        kernels: in the order in which they run.
        largest: no buffer may have more bytes than this; where one is not enough, there are several arenas.
        allocate: makes them.
    """
    intervals = _intervals(kernels)
    apart = {
        buffer for kernel in kernels if reads_twice(kernel.reads) for buffer in kernel.writes if buffer.kind == "block"
    }
    places = _place_apart({buffer: intervals.pop(buffer) for buffer in list(intervals) if buffer in apart}, allocate)
    while intervals:
        fitting = {
            buffer: offset
            for buffer, offset in lay_out(intervals, ALIGNMENT).offsets.items()
            if offset == 0 or offset + intervals[buffer].byte_length <= largest
        }
        end = max(offset + intervals[buffer].byte_length for buffer, offset in fitting.items())
        arena = allocate(end, "intermediates")
        places |= {
            buffer: BufferRange(arena, offset, intervals.pop(buffer).byte_length) for buffer, offset in fitting.items()
        }
    return places


def _intervals(kernels: Sequence[Kernel]) -> dict[Buffer, Interval]:
    """Return the steps in which each block is needed, and the bytes that it takes."""
    spans: dict[Buffer, tuple[int, int]] = {}
    for step, kernel in enumerate(kernels):
        for buffer in (*kernel.reads, *kernel.writes):
            if buffer.kind == "block":
                spans[buffer] = spans.get(buffer, (step, step))[0], step
    return {buffer: Interval(*span, padded(buffer.byte_length)) for buffer, span in spans.items()}


def _place_apart(intervals: Mapping[Buffer, Interval], allocate: Allocate) -> dict[Buffer, BufferRange]:
    """Give each block a buffer that it shares with blocks needed at other times, the largest first."""
    places: dict[Buffer, BufferRange] = {}
    shared: list[tuple[DeviceMemory, list[Interval]]] = []
    for buffer, interval in sorted(intervals.items(), key=lambda item: -item[1].byte_length):
        found = next((item for item in shared if not any(map(interval.overlaps, item[1]))), None)
        if found is None:
            found = (allocate(interval.byte_length, "intermediate apart"), [])
            shared.append(found)
        found[1].append(interval)
        places[buffer] = BufferRange(found[0], 0, interval.byte_length)
    return places
