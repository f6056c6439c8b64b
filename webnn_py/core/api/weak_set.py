"""``OrderedWeakSet``: a context's buffers or graphs."""

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class OrderedWeakSet(Generic[T]):
    """Weak references to objects, in the order in which they were added.

    An object removes itself by calling :meth:`discard` in its ``__del__``. A ``WeakKeyDictionary`` would do that in a
    callback, which trio does not protect: a KeyboardInterrupt raised there would be printed and lost.
    """

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[T]] = {}

    def add(self, item: T) -> None:
        """Add a new object."""
        self._references[id(item)] = weakref.ref(item)

    def discard(self, item: T) -> None:
        """Remove an object, from any thread."""
        self._references.pop(id(item), None)

    def __iter__(self) -> Iterator[T]:
        alive = [reference() for reference in list(self._references.values())]
        return iter([item for item in alive if item is not None])
