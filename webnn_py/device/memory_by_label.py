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
    """The memory that the buffers and graphs of one label take on a device.

    Attributes:
        label: the label; "" for all that have none.
        live_buffers: buffers that have memory on the device.
        live_graphs: compiled graphs.
        live_bytes: bytes of both. Memory that several hold is counted once: that of a constant buffer with the buffer,
            also when graphs alone hold it, and what graphs share with the first of them.
    """

    label: str
    live_buffers: int
    live_graphs: int
    live_bytes: int


class MemoryByLabel:
    """Books of live buffers, graphs and bytes, with an entry for each label that has any."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def add(self, label: str, *, buffers: int = 0, graphs: int = 0, byte_length: int = 0) -> None:
        """Enter what was made under a label, or, as negative numbers, what was released."""
        old = self._entries.get(label, _NOTHING)
        new = old[0] + buffers, old[1] + graphs, old[2] + byte_length
        if new == _NOTHING:
            self._entries.pop(label, None)
        else:
            self._entries[label] = new

    def add_all(self, entries: Mapping[str, Entry]) -> None:
        """Enter what other books have."""
        for label, (buffers, graphs, byte_length) in entries.items():
            self.add(label, buffers=buffers, graphs=graphs, byte_length=byte_length)

    def entries(self) -> Mapping[str, Entry]:
        """Return a copy, which takes little: nothing is sorted, and no record is made."""
        return dict(self._entries)


def largest_first(entries: Mapping[str, Entry]) -> tuple[LabelledMemory, ...]:
    """Return a record for each label, by bytes, from the most, then by label."""
    records = [LabelledMemory(label, *entry) for label, entry in entries.items()]
    return tuple(sorted(records, key=lambda record: (-record.live_bytes, record.label)))
