"""Values that cross the border: what the conversions in ``js/conversions.js`` send, as Python's, and back."""

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from webnn_py.device.backend import HostArray

_DTYPES: dict[str, Any] = {
    "ArrayBuffer": np.uint8,
    "Float32Array": np.float32,
    "Float16Array": np.float16,
    "Uint16Array": np.uint16,
    "Int32Array": np.int32,
    "Uint32Array": np.uint32,
    "BigInt64Array": np.int64,
    "BigUint64Array": np.uint64,
    "Int8Array": np.int8,
    "Uint8Array": np.uint8,
}
"""The views that "validate buffer with descriptor" knows; any other is refused for every data type."""


@attrs.frozen
class BufferSource:
    """An ``AllowSharedBufferSource``: its bytes, when they are to be read, and what kind of view it is."""

    view: str
    byte_length: int
    payload: memoryview | None

    def is_of(self, data_type: str) -> bool:
        """Return whether it is a view of the data type's own numbers."""
        return getattr(_DTYPES.get(self.view), "__name__", "") == data_type

    def array(self, *, any_view: bool = False) -> HostArray:
        """Return the bytes as a flat array of the view's type, or an array of the same length to be checked only.

        Raises:
            TypeError: no data type has such a view.
        """
        dtype = np.uint8 if any_view else _DTYPES.get(self.view)
        if dtype is None:
            raise TypeError(f"data are a {self.view}; they must be an ArrayBuffer, or the data type's view")
        if self.payload is None:
            return np.empty(self.byte_length // np.dtype(dtype).itemsize, dtype)
        return np.frombuffer(self.payload, dtype)


def decode(value: Any, find: Callable[[int], object], payload: memoryview | None) -> Any:
    """Return a value from a script, with handles resolved by ``find``."""
    if isinstance(value, list):
        return [decode(item, find, payload) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, inner),) = value.items()
    if tag == "ref":
        return find(inner)
    if tag == "buffer":
        return BufferSource(inner["type"], inner["byteLength"], payload)
    if tag in {"record", "dictionary"}:
        pairs = inner if tag == "record" else inner.items()
        return {name: decode(item, find, payload) for name, item in pairs}
    return {"bigint": int, "number": float}[tag](inner)


def data_of(array: HostArray) -> memoryview:
    """Return the bytes of an array, without a copy when it is contiguous."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).data
