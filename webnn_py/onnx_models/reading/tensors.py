"""Tensors of a model: their data are as long as their shapes say, and become arrays."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from webnn_py.onnx_models.conversion.context import StaticValue
from webnn_py.onnx_models.problems import InvalidModelError, worded

PACKED_BITS: Final = {
    "FLOAT4E2M1": 4,
    "FLOAT6E2M3": 6,
    "FLOAT6E3M2": 6,
    "INT2": 2,
    "INT4": 4,
    "UINT2": 2,
    "UINT4": 4,
}
"""The element types of which several share a byte."""

PLAIN: Final[Mapping[int, np.dtype[Any]]] = {
    helper.np_dtype_to_tensor_dtype(np.dtype(code)): np.dtype(f"<{code}")
    for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
}
"""The element types whose raw data are numpy's elements; most tensors are of these."""

OWN_FIELDS: Final[Mapping[int, str]] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT32: "int32_data",
    TensorProto.INT64: "int64_data",
}
"""The fields of those element types whose elements have a field of their type."""

FEW: Final = 32
"""The most elements of a field that are copied one by one."""

MOST_DIMENSIONS: Final = 64
"""As numpy has it; operands have fewer, which the builder checks."""


def element_count(tensor: TensorProto) -> int:
    """Return the number of elements of a tensor.

    Raises:
        InvalidModelError: it is no shape.
    """
    sizes = tensor.dims[:]
    if len(sizes) > MOST_DIMENSIONS:
        raise InvalidModelError(f"{_named(tensor)} has {len(sizes)} dimensions; at most {MOST_DIMENSIONS} can be")
    if min(sizes, default=0) < 0:
        raise InvalidModelError(f"{_named(tensor)} has the shape {sizes}; it must be at least 0 everywhere")
    return math.prod(sizes)


def data_length(tensor: TensorProto) -> int:
    """Return the number of bytes of a tensor's elements as raw data.

    Raises:
        InvalidModelError: its shape or element type is none, or elements of the type have no raw data.
    """
    return -(-element_count(tensor) * _bits(tensor) // 8)


def check_tensor(tensor: TensorProto) -> bytes | None:
    """Refuse a tensor whose data are not as long as its shape says.

    Returns:
        Its raw data, if it has some: protobuf copies them each time that they are asked for.

    Raises:
        InvalidModelError: they are not, or there are data in another file or in a segment.
    """
    if tensor.HasField("segment"):
        raise InvalidModelError(f"{_named(tensor)} is one segment of several; that is not supported")
    count = element_count(tensor)
    raw = tensor.raw_data if tensor.HasField("raw_data") else None
    dtype = PLAIN.get(tensor.data_type)
    if raw is not None:
        needed = data_length(tensor) if dtype is None else count * dtype.itemsize
        given, unit = len(raw), "bytes"
    else:
        needed, unit = _stored_count(tensor, count) if dtype is None else count, "elements"
        given = len(getattr(tensor, helper.tensor_dtype_to_field(tensor.data_type)))
    if given != needed:
        raise InvalidModelError(
            f"{_named(tensor)} has {given:,} {unit} of data; its shape {list(tensor.dims)} needs {needed:,}"
        )
    return raw


def tensor_array(tensor: TensorProto, raw: bytes | None = None) -> StaticValue:
    """Return the values of a tensor that has been checked.

    Args:
        tensor: the tensor.
        raw: its raw data, if they were read already.

    Raises:
        InvalidModelError: its strings are not UTF-8.
    """
    try:
        dtype = PLAIN.get(tensor.data_type)
        if dtype is not None and tensor.HasField("raw_data"):
            return np.frombuffer(tensor.raw_data if raw is None else raw, dtype).reshape(tensor.dims[:])
        field = OWN_FIELDS.get(tensor.data_type)
        if field is not None:
            stored = getattr(tensor, field)
            # Protobuf's array takes less time for each element, and more in all.
            return np.array(stored[:] if len(stored) <= FEW else stored, dtype).reshape(tensor.dims[:])
        return numpy_helper.to_array(tensor)
    except (TypeError, ValueError) as error:
        raise InvalidModelError(f"{_named(tensor)} cannot be read: {error}") from error


def _named(tensor: TensorProto) -> str:
    return f"tensor {worded(tensor.name)}" if tensor.name else "a tensor without a name"


def _type_name(tensor: TensorProto) -> str:
    try:
        name = str(TensorProto.DataType.Name(tensor.data_type))
    except ValueError:
        name = f"number {tensor.data_type}"
    if tensor.data_type == TensorProto.UNDEFINED or name.startswith("number"):
        raise InvalidModelError(f"{_named(tensor)} has the element type {name}, which does not exist")
    return name


def _bits(tensor: TensorProto) -> int:
    name = _type_name(tensor)
    if tensor.data_type == TensorProto.STRING:
        raise InvalidModelError(f"{_named(tensor)} has strings as raw data; they must stand in string_data")
    return PACKED_BITS.get(name) or np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize * 8


def _stored_count(tensor: TensorProto, count: int) -> int:
    """Return the number of items in a tensor's typed field: a complex element is two, and small ones share bytes."""
    name = _type_name(tensor)
    if name in ("COMPLEX64", "COMPLEX128"):
        return 2 * count
    bits = PACKED_BITS.get(name, 8)
    return count if bits in (6, 8) else -(-count * bits // 8)
