"""ONNX's messages as the bytes that protocol buffers are, without objects to copy and to serialize.

A message is its fields one behind the other, each its number with the kind of what follows: an integer, or bytes behind
their length. What has been said once is kept, as names, shapes and lengths are the same from model to model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import (
    GraphProto,
    ModelProto,
    OperatorSetIdProto,
    StringStringEntryProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)

INTEGER: Final = 0
BYTES: Final = 2
"""The kinds of what follows a field's number."""

BITS: Final = 2**64 - 1

Pieces = Sequence[bytes]
"""What a message is when it is joined: all of a model is only once, as fresh memory is slow."""


def _varint(value: int) -> bytes:
    """An integer, of which a negative one is 64 bits: seven in each byte, the lowest first, all but the last marked."""
    left = value & BITS
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


@lru_cache(1024)
def number(field: int, value: int) -> bytes:
    """A field that is an integer."""
    return _varint(field << 3 | INTEGER) + _varint(value)


@lru_cache(1024)
def start(field: int, length: int) -> bytes:
    """What stands before the bytes of a field that is text, bytes or a message."""
    return _varint(field << 3 | BYTES) + _varint(length)


def message(field: int, content: bytes) -> bytes:
    """A field that is a message, or bytes."""
    return start(field, len(content)) + content


@lru_cache(8192)
def text(field: int, value: str) -> bytes:
    """A field that is text."""
    return message(field, value.encode())


# --- tensors ---------------------------------------------------------------------------------------------------------


@lru_cache(1024)
def _kind(element_type: int, shape: tuple[int, ...]) -> bytes:
    dimensions = [number(TensorProto.DIMS_FIELD_NUMBER, size) for size in shape]
    return b"".join(dimensions) + number(TensorProto.DATA_TYPE_FIELD_NUMBER, element_type)


def described(name: str, element_type: int, shape: tuple[int, ...]) -> bytes:
    """A TensorProto that says everything but what its elements are."""
    return _kind(element_type, shape) + text(TensorProto.NAME_FIELD_NUMBER, name)


def elements(array: NDArray[Any]) -> bytes:
    """The bytes of an array in the order that ONNX has."""
    # Asked first: another data type takes long to make.
    is_in_order = sys.byteorder == "little" and array.dtype.isnative
    return (array if is_in_order else array.astype(array.dtype.newbyteorder("<"))).tobytes()


def tensor(name: str, element_type: int, array: NDArray[Any]) -> Pieces:
    """A TensorProto of an array."""
    contents = elements(array)
    head = described(name, element_type, array.shape) + start(TensorProto.RAW_DATA_FIELD_NUMBER, len(contents))
    return head, contents


def tensor_beside(name: str, element_type: int, array: NDArray[np.generic]) -> Pieces:
    """A TensorProto of an array whose bytes lie elsewhere, under its name."""
    parts = [described(name, element_type, array.shape)]
    for key, value in (("location", name), ("offset", "0"), ("length", str(array.nbytes))):
        entry = text(StringStringEntryProto.KEY_FIELD_NUMBER, key) + text(
            StringStringEntryProto.VALUE_FIELD_NUMBER, value
        )
        parts.append(message(TensorProto.EXTERNAL_DATA_FIELD_NUMBER, entry))
    parts.append(number(TensorProto.DATA_LOCATION_FIELD_NUMBER, TensorProto.EXTERNAL))
    return parts


# --- models ----------------------------------------------------------------------------------------------------------


@lru_cache(1024)
def value_info(name: str, element_type: int, shape: tuple[int, ...]) -> bytes:
    """A ValueInfoProto, an input or output of a model."""
    dimension = TensorShapeProto.Dimension.DIM_VALUE_FIELD_NUMBER
    sizes = [message(TensorShapeProto.DIM_FIELD_NUMBER, number(dimension, size)) for size in shape]
    kind = number(TypeProto.Tensor.ELEM_TYPE_FIELD_NUMBER, element_type)
    kind += message(TypeProto.Tensor.SHAPE_FIELD_NUMBER, b"".join(sizes))
    of_tensor = message(TypeProto.TENSOR_TYPE_FIELD_NUMBER, kind)
    return text(ValueInfoProto.NAME_FIELD_NUMBER, name) + message(ValueInfoProto.TYPE_FIELD_NUMBER, of_tensor)


@lru_cache(16)
def opset(domain: str, version: int) -> bytes:
    """An OperatorSetIdProto."""
    # ONNX's own is said as well, though it is "".
    of_domain = text(OperatorSetIdProto.DOMAIN_FIELD_NUMBER, domain)
    return of_domain + number(OperatorSetIdProto.VERSION_FIELD_NUMBER, version)


def graph(
    name: str,
    nodes: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    initializers: Iterable[Pieces] = (),
) -> Pieces:
    """A GraphProto of messages that are written."""
    parts: list[bytes] = []
    for content in nodes:
        parts += start(GraphProto.NODE_FIELD_NUMBER, len(content)), content
    parts.append(text(GraphProto.NAME_FIELD_NUMBER, name))
    for pieces in initializers:
        parts += start(GraphProto.INITIALIZER_FIELD_NUMBER, sum(map(len, pieces))), *pieces
    parts += [message(GraphProto.INPUT_FIELD_NUMBER, content) for content in inputs]
    parts += [message(GraphProto.OUTPUT_FIELD_NUMBER, content) for content in outputs]
    return parts


def model(ir_version: int, producer: tuple[str, str], of_graph: Pieces, opsets: Iterable[bytes]) -> bytes:
    """A ModelProto of a graph; the producer is its name and version."""
    name, version = producer
    parts = [
        number(ModelProto.IR_VERSION_FIELD_NUMBER, ir_version),
        text(ModelProto.PRODUCER_NAME_FIELD_NUMBER, name),
        text(ModelProto.PRODUCER_VERSION_FIELD_NUMBER, version),
        start(ModelProto.GRAPH_FIELD_NUMBER, sum(map(len, of_graph))),
        *of_graph,
    ]
    parts += [message(ModelProto.OPSET_IMPORT_FIELD_NUMBER, item) for item in opsets]
    return b"".join(parts)
