"""The spec's ``AllowSharedBufferSource`` in Python: "validate buffer with descriptor", and copies.

``bytes``, ``bytearray``, memoryviews of format B, b or c and ctypes' characters stand for an ``ArrayBuffer`` or
``Uint8Array``: plain bytes, for any data type. Numpy arrays, ``array.array`` and other typed buffers are typed views,
and so are other libraries' arrays that speak ``__dlpack__`` on the CPU, ``__array_interface__`` or ``__array__``:
their data type must be the descriptor's (``uint8`` always will do, ``uint16`` for ``float16`` too). A typed view has
the descriptor's shape or is one-dimensional. What is copied out of it is right whatever its strides and byte order.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import methodcaller
from typing import Any, Final, Protocol, cast

import numpy as np

from webnn_py.core.descriptors import (
    DATA_TYPES,
    FOUR_BITS,
    MLOperandDataType,
    MLOperandDescriptor,
    stored,
)
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import UnknownError
from webnn_py.core.handle import forgotten_await
from webnn_py.core.message_text import kind, listed, words_of


class SupportsDlpack(Protocol):
    """An array that exports by DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


class SupportsArray(Protocol):
    """An array that can make itself numpy's."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class SupportsArrayInterface(Protocol):
    """An array that gives the address of its memory."""

    @property
    def __array_interface__(self) -> Any: ...


ExportsArray = SupportsDlpack | SupportsArray | SupportsArrayInterface
"""An array, numpy's or another library's, for type checkers."""

_DTYPES = {data_type: np.dtype(data_type) for data_type in DATA_TYPES}

LARGE: Final = 2**20
"""The number of bytes from which on the device's own way of copying is used."""

_CPU: Final = 1
"""DLPack's device type of memory that the CPU can read."""

_NO_BUFFERS: Final = (str, int, float, complex, list, tuple, dict, type, type(None))
"""Types that are never accepted as data, whatever a class derived from them offers."""


def host_copy(
    source: object, descriptor: MLOperandDescriptor, copy: Callable[[HostArray], Any] = methodcaller("copy")
) -> Any:
    """Copy a user's bytes, now, into an array of the descriptor's data type and shape.

    Args:
        source: the user's.
        descriptor: what they are to be.
        copy: copies a C-contiguous array, and returns what is returned here; not asked for all small ones.

    Raises:
        TypeError: the source is no buffer, or its data type, shape or byte length do not fit.
        UnknownError: there is no memory for the copy.
    """
    if descriptor.data_type in FOUR_BITS:
        return _packed_copy(source, descriptor)
    data_type, shape = descriptor.data_type, descriptor.shape
    try:
        if type(source) is np.ndarray and source.dtype == _DTYPES[data_type] and source.shape == shape:
            return copy(source) if source.flags.c_contiguous else source.copy()
        array = exported_array(source)
        if array is None:
            array = _of_buffer(source, "data are", "they must be")
        _check(array, descriptor)
        native = array.dtype.newbyteorder("=")
        if array.nbytes >= LARGE and array.dtype == native and array.flags.c_contiguous:
            return copy(array.reshape(-1).view(data_type).reshape(shape))
        contiguous = np.array(array, dtype=native, order="C", copy=True)
        return contiguous.reshape(-1).view(data_type).reshape(shape)
    except MemoryError as error:
        raise UnknownError(f"there is no memory for a copy of {descriptor.byte_length} bytes") from error


def _packed_copy(source: object, descriptor: MLOperandDescriptor) -> HostArray:
    """Copy bytes with two elements in each."""
    try:
        copied: HostArray = host_copy(source, stored(descriptor))
    except TypeError as error:
        raise TypeError(f"{error}: {descriptor} has two elements in a byte") from error.__cause__
    return copied


def check_target(target: object, descriptor: MLOperandDescriptor) -> HostArray:
    """Look at a user's buffer as an array of the descriptor's shape, to be written in place.

    Raises:
        TypeError: it cannot be written, is not contiguous, or does not fit.
    """
    descriptor = stored(descriptor)
    is_array = issubclass(type(target), np.ndarray | np.generic)
    array = np.asarray(target) if is_array else _of_buffer(target, "out is", "it must be")
    if issubclass(type(target), np.generic) or not array.flags.writeable:
        raise TypeError("out is read-only; it must be writable")
    if not array.flags.c_contiguous:
        raise TypeError("out is not contiguous; it must be C-contiguous")
    if not array.dtype.isnative:
        raise TypeError(f"out has the byte order of {array.dtype.str}; it must be the machine's own")
    _check(array, descriptor)
    return array.reshape(-1).view(descriptor.data_type).reshape(descriptor.shape)


def exported_array(source: object) -> np.ndarray[Any, Any] | None:
    """Return the array that a numpy array is, or that another library's array offers; None for all else.

    Memory is not copied where the library can lend it.

    Raises:
        TypeError: the library refuses, or the memory is not the CPU's.
    """
    if issubclass(type(source), np.ndarray | np.generic):
        return np.asarray(source)
    if issubclass(type(source), _NO_BUFFERS):
        return None
    try:
        return _of_protocol(source)
    except MemoryError:
        raise
    except Exception as error:
        raise TypeError(f"data are {kind(source)}, which does not export them: {words_of(error)}") from error


def _of_protocol(source: Any) -> np.ndarray[Any, Any] | None:
    device = source.__dlpack_device__() if hasattr(source, "__dlpack__") else None
    if device is not None and device[0] == _CPU:
        return np.from_dlpack(source)
    if hasattr(source, "__array_interface__") or hasattr(source, "__array__"):
        return np.asarray(source)
    if device is not None:
        raise BufferError(f"they are on a device of DLPack's type {int(device[0])}; copy them to the CPU first")
    return None


def _of_buffer(source: object, what: str, must: str) -> np.ndarray[Any, Any]:
    """View what has the buffer protocol as an array."""
    if issubclass(type(source), _NO_BUFFERS):
        raise TypeError(
            f"{what} {kind(source)}; {must} a numpy array, offer the buffer protocol, or be exported by another library"
            f"{forgotten_await(source)}"
        )
    try:
        view = memoryview(cast("bytes", source))
        array = np.asarray(view)
    except MemoryError:
        raise
    except Exception as error:
        raise TypeError(f"{what} {kind(source)}, which cannot be used as a buffer: {words_of(error)}") from error
    code = (view.format or "B").lstrip("<>=@!")
    plain = code == "c" or (code == "b" and type(source) is memoryview)
    return array.view(np.uint8) if plain else array


def _check(array: np.ndarray[Any, Any], descriptor: MLOperandDescriptor) -> None:
    name = array.dtype.newbyteorder("=").name if array.dtype.kind in "iuf" else array.dtype.name
    generic = name == "uint8" or (name == "uint16" and descriptor.data_type == "float16")
    # spec: validate buffer with descriptor 2
    if name != descriptor.data_type and not generic:
        raise TypeError(f"data are {name}; they must be {descriptor.data_type}, or bytes (uint8)")
    # spec: validate buffer with descriptor 1
    if array.nbytes != descriptor.byte_length:
        raise TypeError(
            f"data of {array.nbytes} bytes given for {descriptor}; they must be exactly {descriptor.byte_length} bytes"
        )
    if array.ndim != 1 and array.shape != descriptor.shape:
        raise TypeError(f"data have the shape {listed(array.shape)}; it must be {listed(descriptor.shape)}, or flat")


def data_type_of(array: np.ndarray[Any, Any]) -> MLOperandDataType:
    """Return the name of an array's data type, of either byte order; ``TypeError`` where there is none."""
    name = _native_name(array.dtype)
    if name not in DATA_TYPES:
        raise TypeError(f"constant(): the array's data type is {name}; it must be one of {', '.join(DATA_TYPES)}")
    return name


@lru_cache(64)
def _native_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a data type, which numpy puts together each time."""
    return dtype.newbyteorder("=").name
