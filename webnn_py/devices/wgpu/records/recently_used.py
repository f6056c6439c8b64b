"""A cache that drops the values that were not used for longest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@attrs.frozen
class Room:
    """The most that a cache keeps.

    Attributes:
        count: so many values.
        byte_length: so many bytes, by what each is said to take.
    """

    count: int
    byte_length: int


class RecentlyUsed(Generic[K, V]):
    """Values by their keys; those not used for longest go when there is no more room. For any threads.

    Attributes:
        byte_length: the bytes that the values are said to take.
        dropped: how many had to go.
    """

    def __init__(self, room: Room) -> None:
        self.byte_length = 0
        self.dropped = 0
        self._room = room
        self._lock = Lock()
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return the value, which counts as used now; None if it is not kept."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: K, value: V, byte_length: int) -> None:
        """Keep a value, of which it is said how many bytes it takes, in the place of another of that key."""
        with self._lock:
            self._remove(key)
            self._values[key] = value, byte_length
            self.byte_length += byte_length
            self._make_room()

    def resize(self, room: Room) -> None:
        """Have more room, or less."""
        with self._lock:
            self._room = room
            self._make_room()

    def clear(self) -> None:
        """Keep nothing of what there is."""
        with self._lock:
            self._values.clear()
            self.byte_length = 0

    def _make_room(self) -> None:
        while len(self._values) > self._room.count or self.byte_length > self._room.byte_length:
            self._remove(next(iter(self._values)))
            self.dropped += 1

    def _remove(self, key: K) -> None:
        _value, byte_length = self._values.pop(key, (None, 0))
        self.byte_length -= byte_length
