"""Bytes of constants in a separate safetensors file, which RustNN reads as well."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.message_text import shown
from webnn_py.webnn_files.text import NAMES, WebnnFileError

Array = np.ndarray[Any, Any]

TYPES: Final[Mapping[str, str]] = {data_type: name.upper() for data_type, name in NAMES.items()}
"""The names of the specification's data types in such a file."""

LONGEST_HEADER: Final = 16 * 2**20
"""Bytes of a header: some 150,000 tensors. Parsed, it takes twenty times as much."""


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write little-endian arrays by name."""
    header: dict[str, Any] = {}
    end = 0
    for name, array in arrays.items():
        data_type = TYPES[array.dtype.newbyteorder("=").name]
        header[name] = {"dtype": data_type, "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            file.write(array.reshape(-1).view(np.uint8).data)


class TensorFile:
    """A file of weights that is open for reading.

    Args:
        file: the file, binary.

    Raises:
        WebnnFileError: it is no safetensors.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise WebnnFileError("the file of weights is no safetensors: its header is longer than the file")
        if length > LONGEST_HEADER:
            raise WebnnFileError(
                f"the file of weights has a header of {length:,} bytes; it may have at most {LONGEST_HEADER:,}"
            )
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise WebnnFileError(f"the file of weights has a header that is no JSON: {error}") from None
        if not isinstance(header, dict):
            raise WebnnFileError("the file of weights has a header that is no object")
        self._entries = header
        self._begin = 8 + length
        self._end = size

    def read(self, name: str, descriptor: MLOperandDescriptor) -> bytes:
        """Return the bytes of a tensor, which must have this data type and shape.

        Raises:
            WebnnFileError: there is none of the name, it is another, or it is outside of the file.
        """
        match self._entries.get(name):
            case {"dtype": data_type, "shape": shape, "data_offsets": [int(first), int(last)]}:
                pass
            case _:
                raise WebnnFileError(f"the file of weights has no tensor {shown(name)}")
        if data_type != TYPES[descriptor.data_type] or shape != list(descriptor.shape):
            raise WebnnFileError(
                f"the weights {shown(name)} are {shown(data_type)} {shown(shape)}; they must be {descriptor}"
            )
        if last - first != descriptor.byte_length or not 0 <= first <= last <= self._end - self._begin:
            raise WebnnFileError(f"the weights {shown(name)} are at {first} to {last}, which is not their length")
        self._file.seek(self._begin + first)
        return self._file.read(last - first)
