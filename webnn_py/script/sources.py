"""Users' bytes: the spec's ``AllowSharedBufferSource`` in Python, "validate buffer with descriptor", and copies.

``bytes``, ``bytearray``, memoryviews of format B, b or c and ctypes' characters stand for an ``ArrayBuffer`` or
``Uint8Array``: plain bytes, for any data type. Numpy arrays, ``array.array`` and other typed buffers are typed views:
their data type must be the descriptor's (``uint8`` always will do, ``uint16`` for ``float16`` too). A typed view has
the descriptor's shape or is one-dimensional. What is copied out of it is right whatever its strides and byte order.
"""

from typing import Any

import numpy as np

from webnn_py.descriptors import DATA_TYPES, MLOperandDescriptor
from webnn_py.device.backend import HostArray

_DTYPES = {data_type: np.dtype(data_type) for data_type in DATA_TYPES}


def host_copy(source: object, descriptor: MLOperandDescriptor) -> HostArray:
    """Copy a user's bytes, now, into an array of the descriptor's data type and shape.

    Raises:
        TypeError: the source is no buffer, or its data type, shape or byte length do not fit.
    """
    data_type, shape = descriptor.data_type, descriptor.shape
    if type(source) is np.ndarray and source.dtype == _DTYPES[data_type] and source.shape == shape:
        return source.copy()
    array = _as_array(source)
    _check(array, descriptor)
    native = array.dtype.newbyteorder("=")
    contiguous = np.array(array, dtype=native, order="C", copy=True)
    return contiguous.reshape(-1).view(data_type).reshape(shape)


def check_target(target: object, descriptor: MLOperandDescriptor) -> HostArray:
    """Look at a user's buffer as an array of the descriptor's shape, to be written in place.

    Raises:
        TypeError: it cannot be written, is not contiguous, or does not fit.
    """
    array = _as_array(target)
    if isinstance(target, np.generic) or not array.flags.writeable:
        raise TypeError("out is read-only; it must be writable")
    if not array.flags.c_contiguous:
        raise TypeError("out is not contiguous; it must be C-contiguous")
    if not array.dtype.isnative:
        raise TypeError(f"out has the byte order of {array.dtype.str}; it must be the machine's own")
    _check(array, descriptor)
    return array.reshape(-1).view(descriptor.data_type).reshape(descriptor.shape)


def _as_array(source: object) -> np.ndarray[Any, Any]:
    """View anything with the buffer protocol as an array."""
    if isinstance(source, (np.ndarray, np.generic)):
        return np.asarray(source)
    if isinstance(source, (str, int, float, complex, list, tuple, dict)) or source is None:
        raise TypeError(f"data are {type(source).__name__}; they must be a numpy array or offer the buffer protocol")
    try:
        view = memoryview(source)  # type: ignore[arg-type]  # what it accepts is what is asked here
    except (TypeError, ValueError) as error:
        raise TypeError(f"data are {type(source).__name__}: {error}") from None
    try:
        array = np.asarray(view)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise TypeError(f"data of the format {view.format!r} cannot be used: {error}") from None
    code = view.format.lstrip("<>=@!")
    plain = code == "c" or (code == "b" and isinstance(source, memoryview))
    return array.view(np.uint8) if plain else array


def _check(array: np.ndarray[Any, Any], descriptor: MLOperandDescriptor) -> None:
    name = array.dtype.newbyteorder("=").name if array.dtype.kind in "iuf" else array.dtype.name
    generic = name == "uint8" or (name == "uint16" and descriptor.data_type == "float16")
    if name != descriptor.data_type and not generic:
        raise TypeError(f"data are {name}; they must be {descriptor.data_type}, or bytes (uint8)")
    if array.nbytes != descriptor.byte_length:
        raise TypeError(
            f"data of {array.nbytes} bytes given for {descriptor}; they must be exactly {descriptor.byte_length} bytes"
        )
    if array.ndim != 1 and array.shape != descriptor.shape:
        raise TypeError(f"data have the shape {list(array.shape)}; it must be {list(descriptor.shape)}, or flat")
