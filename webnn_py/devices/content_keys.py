"""What constants and graphs contain: keys that equal bytes have, and data that are the same for equal graphs."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, final

import numpy as np

from webnn_py.core.graph import Constant, Graph, Value
from webnn_py.core.operators.declaration import of_operands

_SAMPLED: Final = 64
"""Of so many bytes at either end, and of so many between, is the hash of a key."""


@final
class ContentKey:
    """Recognizes arrays of the same bytes, by comparing them or by a digest that is computed once two look alike.

    Args:
        array: contiguous; its bytes never change.
        digest: that of its bytes, if it is known.
    """

    __slots__ = ("_array", "_digest", "_hash")

    def __init__(self, array: np.ndarray[Any, Any], digest: bytes | None = None) -> None:
        data = array.reshape(-1).view(np.uint8)
        ends, between = data[:_SAMPLED].tobytes() + data[-_SAMPLED:].tobytes(), data[:: data.size // _SAMPLED | 1]
        self._hash = hash((data.size, ends, between.tobytes()))
        self._array = data if digest is None else None
        self._digest = digest

    @property
    def digest(self) -> bytes:
        """The digest: of 32 bytes, by BLAKE2b."""
        if self._digest is None:
            data = self._array
            assert data is not None  # noqa: S101 - one of the two is always there
            self._digest = blake2b(data.data, digest_size=32).digest()
            self._array = None
        return self._digest

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not ContentKey:
            return self is other
        if self._hash != other._hash:
            return False
        ours, others = self._array, other._array
        # A comparison takes a thirtieth of two digests. Arrays that only look alike get digests, for all later ones.
        if ours is not None and others is not None and np.array_equal(ours, others):
            return True
        return self.digest == other.digest

    def __repr__(self) -> str:
        return repr(self.digest)


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
