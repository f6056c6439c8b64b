"""Constants: short ones are written out, all others stand in one file of little-endian bytes."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, BinaryIO, Final

import numpy as np

from webnn_py.core.graph import Constant
from webnn_py.drawn_graphs import elements_of
from webnn_py.web_export.literals import argument

Array = np.ndarray[Any, Any]

ALIGNMENT: Final = 64
"""The alignment of each constant: views of an ArrayBuffer begin at multiples of their elements' size."""

MOST_WRITTEN_OUT: Final = 8
"""Elements of a constant that stands in the module itself."""

LARGEST_FILE: Final = 2**31 - 1
"""Bytes of weights; browsers have no longer ArrayBuffer everywhere."""


class WeightsFile:
    """The file of weights, in the order in which constants are reached; equal bytes are written once."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._arrays: list[tuple[int, Array]] = []
        self.byte_length = 0

    def argument_of(self, constant: Constant) -> str:
        """Return the source of a constant in the module: its elements in brackets, or its byte offset in the file.

        Raises:
            ValueError: its contents are a device's, or the file becomes too long.
        """
        array = elements_of("save_js", constant)
        return _written_out(array, constant.descriptor.data_type) or str(self._place(array))

    def _place(self, array: Array) -> int:
        contents = _bytes(array)
        digest = blake2b(contents, digest_size=32).digest()
        if digest not in self._places:
            begin = -(-self.byte_length // ALIGNMENT) * ALIGNMENT
            self._places[digest] = begin
            self._arrays.append((begin, array))
            self.byte_length = begin + array.nbytes
        if self.byte_length > LARGEST_FILE:
            raise ValueError(
                f"save_js(): the weights take more than {LARGEST_FILE:,} bytes, which browsers do not load as one file"
            )
        return self._places[digest]

    def write(self, file: BinaryIO) -> None:
        """Write the contents of the file."""
        end = 0
        for begin, array in self._arrays:
            file.write(bytes(begin - end))
            file.write(_bytes(array))
            end = begin + array.nbytes


def _written_out(array: Array, data_type: str) -> str | None:
    """Return the elements, if they are few and JavaScript's numbers of the data type are sure to be those bits."""
    if array.size > MOST_WRITTEN_OUT or data_type == "float16":  # not every engine has a Float16Array
        return None
    flat = array.reshape(-1)
    if data_type == "float32":
        if not np.isfinite(flat).all():  # a NaN may have other bits there
            return None
        return f"[{', '.join(map(_shortest, flat))}]"
    numbers = [int(value) for value in flat]
    return f"[{', '.join(f'{number}n' for number in numbers)}]" if data_type.endswith("64") else argument(numbers)


def _shortest(value: np.float32) -> str:
    """Return the fewest digits that are this number when they are read as a double and rounded."""
    short = float(np.format_float_scientific(value, unique=True, trim="-"))
    return argument(short if np.float32(short) == value else float(value))


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
