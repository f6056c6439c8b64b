"""What a context's buffers and graphs have in common: ``Living``, the list of them, and ``IsNumbered``."""

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

from webnn_py.device.backend import Storage
from webnn_py.device.device import GraphHandle

T = TypeVar("T")


class IsNumbered:
    """A buffer or a graph, which traces know by the number of what stands behind it on the device."""

    __slots__ = ()

    @property
    def _numbered(self) -> Storage | GraphHandle:
        raise NotImplementedError


class Living(Generic[T]):
    """Things in the order in which they were made, for as long as they live; they are not kept alive.

    They say themselves when they end, by :meth:`discard` in their ``__del__``. A ``WeakKeyDictionary`` would be told by
    a callback, which trio does not protect: a KeyboardInterrupt in there would be printed and lost.
    """

    def __init__(self) -> None:
        self._things: dict[int, weakref.ref[T]] = {}

    def add(self, thing: T) -> None:
        """Enter a thing that has just been made."""
        self._things[id(thing)] = weakref.ref(thing)

    def discard(self, thing: T) -> None:
        """Strike a thing that has ended; from any thread."""
        self._things.pop(id(thing), None)

    def __iter__(self) -> Iterator[T]:
        """Those that live now."""
        alive = [reference() for reference in list(self._things.values())]
        return iter([thing for thing in alive if thing is not None])
