"""Messages of scripts, as ``js/conversions.js`` makes them, and their values as Python's, and back."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Self

import attrs
import numpy as np

from webnn_py.core.device.backend import HostArray

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


class MessageError(Exception):
    """A message that the bindings never send."""


def _is_index(value: object) -> bool:
    return type(value) is int and value >= 0


@attrs.frozen
class Message:
    """A call of a script.

    Attributes:
        interface: the interface.
        member: its operation, or "constructor".
        this: the handle of the object that is called; 0 for ``navigator.ml``.
        arguments: the arguments, not yet decoded.
        collected: handles that the script has let go of.
        promise: the number of the promise that the script has made for the answer, below 0; None for no promise of its
            own.
        at: the place in the script; None without a trace.
    """

    interface: str
    member: str
    this: int
    arguments: list[Any]
    collected: list[int]
    promise: int | None
    at: Mapping[str, str] | None

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Return the message in a frame.

        Raises:
            MessageError: it is not a message.
        """
        try:
            given = json.loads(data.decode())
        except (ValueError, RecursionError) as error:
            raise MessageError(f"a message cannot be read: {error}") from None
        match given:
            case {"interface": str() as interface, "call": str() as member, "args": list() as arguments}:
                this, promise, at = given.get("this", 0), given.get("promise"), given.get("at")
                collected = given.get("collected", [])
            case _:
                raise MessageError("a message has no interface, call and args")
        if not (
            _is_index(this)
            and (promise is None or (type(promise) is int and promise < 0))
            and isinstance(collected, list)
            and all(map(_is_index, collected))
            and (at is None or _is_place(at))
        ):
            raise MessageError(f"a message for {interface}.{member} is malformed")
        return cls(interface, member, this, arguments, collected, promise, at)


def _is_place(at: object) -> bool:
    """Return whether ``at`` is what ``js/places.js`` sends."""
    if not isinstance(at, dict) or not all(isinstance(item, str) for item in at.values()):
        return False
    numbers = at.get("line", ""), at.get("settled", "0")
    return "file" in at and all(number.isascii() and number.isdecimal() for number in numbers)


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


def _buffer_source(described: Mapping[str, Any], payload: memoryview | None) -> BufferSource:
    view, byte_length = described["type"], described["byteLength"]
    itemsize = np.dtype(_DTYPES.get(view, np.uint8)).itemsize
    if not _is_index(byte_length) or (payload is not None and payload.nbytes != byte_length) or byte_length % itemsize:
        raise MessageError(
            f"a {view} of {byte_length!r} bytes is described, which does not fit its contents or its type"
        )
    return BufferSource(view, byte_length, payload)


def decode(value: Any, find: Callable[[object], object], payload: memoryview | None) -> Any:
    """Return a value from a script, with handles resolved by ``find``.

    Raises:
        MessageError: the conversions make no such value.
    """
    try:
        return _decoded(value, find, payload)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise MessageError(f"an argument cannot be decoded: {type(error).__name__}") from error


def _decoded(value: Any, find: Callable[[object], object], payload: memoryview | None) -> Any:
    if isinstance(value, list):
        return [_decoded(item, find, payload) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, inner),) = value.items()
    if tag == "ref":
        return find(inner)
    if tag == "buffer":
        return _buffer_source(inner, payload)
    if tag in {"record", "dictionary"}:
        pairs = inner if tag == "record" else inner.items()
        return {name: _decoded(item, find, payload) for name, item in pairs}
    return {"bigint": int, "number": float}[tag](inner)


def data_of(array: HostArray) -> memoryview:
    """Return the bytes of an array, without a copy when it is contiguous."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).data
