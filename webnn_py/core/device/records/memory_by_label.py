"""The memory on a device, by the labels of buffers and graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

Entry = tuple[int, int, int]
"""Buffers, graphs, bytes."""

_NOTHING: Final[Entry] = (0, 0, 0)


@attrs.frozen
class LabelledMemory:
    """The memory that the buffers and graphs with one label take on a device.

    Attributes:
        label: the label; "" for buffers and graphs without one.
        live_buffers: the number of buffers with memory on the device.
        live_graphs: the number of compiled graphs.
        live_bytes: the bytes of both. Shared memory is counted once: that of a constant buffer with the buffer, also
            when only graphs still hold it, and memory that graphs share with the first of them.
    """

    label: str
    live_buffers: int
    live_graphs: int
    live_bytes: int


class MemoryByLabel:
    """The counts of live buffers, graphs and bytes, with an entry for each label that has any."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def add(self, label: str, *, buffers: int = 0, graphs: int = 0, byte_length: int = 0) -> None:
        """Count new buffers, graphs and bytes under a label, or, as negative numbers, released ones."""
        old = self._entries.get(label, _NOTHING)
        new = old[0] + buffers, old[1] + graphs, old[2] + byte_length
        if new == _NOTHING:
            self._entries.pop(label, None)
        else:
            self._entries[label] = new

    def entries(self) -> Mapping[str, Entry]:
        """Return a copy; this is cheap, since nothing is sorted and no record is made."""
        return dict(self._entries)


def largest_first(entries: Mapping[str, Entry]) -> tuple[LabelledMemory, ...]:
    """Return a record for each label, by bytes in descending order, then by label."""
    records = [LabelledMemory(label, *entry) for label, entry in entries.items()]
    return tuple(sorted(records, key=lambda record: (-record.live_bytes, record.label)))
