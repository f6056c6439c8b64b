"""What constants and graphs contain: keys that equal bytes have, and data that are the same for equal graphs."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, final
from weakref import ref

import numpy as np

from webnn_py.core.graph import Constant, Graph, Value
from webnn_py.core.operators.declaration import of_operands

_SAMPLED: Final = 64
"""Of so many bytes at either end, and of so many between, is the hash of a key."""


@final
class ContentKey:
    """Recognizes arrays of the same bytes, by samples of them, and where these agree by all bytes.

    It does not keep the array. Keys are compared by the arrays that are still there, or by a digest, which is computed
    when it is first needed; without either, a key equals none but itself.

    Args:
        array: contiguous; its bytes never change.
        digest: that of its bytes, if it is known.
    """

    __slots__ = ("_digest", "_hash", "_places")

    def __init__(self, array: np.ndarray[Any, Any], digest: bytes | None = None) -> None:
        data = array.reshape(-1).view(np.uint8)
        ends, between = data[:_SAMPLED].tobytes() + data[-_SAMPLED:].tobytes(), data[:: data.size // _SAMPLED | 1]
        self._hash = hash((data.size, ends, between.tobytes()))
        self._places = [_Place(array)]  # one list of all keys that were found to be equal
        self._digest = digest

    def _bytes(self) -> np.ndarray[Any, Any] | None:
        """Return the bytes of an array that is still there; None if there is none."""
        return next((data for place in self._places if (data := place.bytes()) is not None), None)

    @property
    def digest(self) -> bytes:
        """The digest: of 32 bytes, by BLAKE2b.

        Raises:
            ReferenceError: it is not known, and the array is gone.
        """
        if self._digest is None:
            data = self._bytes()
            if data is None:
                raise ReferenceError("the array of a key is gone")
            self._digest = blake2b(data.data, digest_size=32).digest()
        return self._digest

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not ContentKey:
            return self is other
        if self._hash != other._hash:
            return False
        if self._places is other._places:
            return True
        if not self._has_bytes_of(other):
            return False
        self._places += other._places
        other._places = self._places
        return True

    def _has_bytes_of(self, other: ContentKey) -> bool:
        if self._digest is None or other._digest is None:
            ours, others = self._bytes(), other._bytes()
            # A comparison takes a thirtieth of two digests. Arrays that only look alike get digests, for later ones.
            if ours is not None and others is not None and np.array_equal(ours, others):
                return True
        try:
            return self.digest == other.digest
        except ReferenceError:
            return False

    def __repr__(self) -> str:
        return repr(self.digest)


class _Place:
    """The place of an array's bytes in the memory of an array that all views of it keep."""

    __slots__ = ("_offset", "_owner", "_size")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        owner = array
        while isinstance(owner.base, np.ndarray) and owner.base.flags.forc:
            owner = owner.base
        self._owner = ref(owner)
        self._offset = array.ctypes.data - owner.ctypes.data
        self._size = array.nbytes

    def bytes(self) -> np.ndarray[Any, Any] | None:
        """Return the bytes, if they are still there."""
        owner = self._owner()
        return None if owner is None else np.ndarray(self._size, np.uint8, owner, self._offset)


def contents(graph: Graph) -> list[object]:
    """Return data whose text is the same for graphs that compute the same and were drawn in the same order.

    A constant is the digest of its bytes, or the identity of the device's storage.
    """
    numbers: dict[Value, int] = {}
    parts: list[object] = []
    for value in (*graph.inputs.values(), *graph.constants):
        numbers[value] = len(numbers)
        data = value.data if isinstance(value, Constant) else None
        parts.append((value.descriptor, ContentKey(data).digest if isinstance(data, np.ndarray) else id(data)))
    for node in graph.nodes:
        options = [(name, contents(one) if isinstance(one, Graph) else one) for name, one in node.options.items()]
        parts.append((node.operator.name, of_operands(node.operands, numbers.__getitem__), options))
        numbers |= {result: len(numbers) + index for index, result in enumerate(node.results)}
    return [*parts, [*graph.inputs], [(name, numbers[value]) for name, value in graph.outputs.items()]]
