"""Cases as data, in ``webnn_py/testing/device_cases``: a file for each operator, in the folder of its category.

The category's ``make_cases.py`` writes it with :func:`encode`; ``webnn_py.testing.device_cases.files`` has the format.
"""

from typing import Any

import numpy as np

from webnn_py.testing.device_cases.files import FOLDER, Case, CaseFile, load_all
from webnn_py.testing.device_cases.tensors import (
    INTEGER_TYPES,
    bit_patterns,
    decode,
    difference,
    ulp_distance,
    within,
)

__all__ = [
    "EXACT",
    "FLOAT_TYPES",
    "FOLDER",
    "INTEGER_TYPES",
    "Case",
    "CaseFile",
    "decode",
    "difference",
    "encode",
    "flushed",
    "load_all",
    "ulp_distance",
    "within",
]

EXACT = {"exact": True}
FLOAT_TYPES = ("float32", "float16")


def encode(array: np.ndarray, *, constant: bool = False) -> dict[str, Any]:
    """The tensor that means ``array``; the shortest digits that read back to the same bits."""
    array = np.asarray(array)
    data_type = array.dtype.name
    if data_type not in INTEGER_TYPES + FLOAT_TYPES:
        raise TypeError(f"an array of {data_type}; convert it to the operator's data type, rounding once")
    numbers = [_shortest(number) for number in array.ravel()]
    tensor = {"data_type": data_type, "shape": list(array.shape), "data": numbers}
    if bit_patterns(decode(tensor)).tobytes() != bit_patterns(array).tobytes():
        raise AssertionError(f"{numbers} does not read back to {array!r}")
    return tensor | {"constant": True} if constant else tensor


def flushed(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """A result in float32 with what is expected wherever that is subnormal, and the result is zero."""
    if got.dtype != np.float32 or got.shape != expected.shape:
        return got
    return np.where((got == 0) & (np.abs(expected) < np.finfo(np.float32).smallest_normal), expected, got)


def _shortest(number: np.generic) -> int | float | str:
    if number.dtype.kind != "f":
        return int(number)
    if not np.isfinite(number):
        return str(float(number))
    if number == 0:
        return "-0" if np.signbit(number) else 0
    digits = np.format_float_scientific(number, unique=True, trim="-")
    value = float(digits)
    if np.array(value).astype(number.dtype) != number:  # rounded twice
        value = float(number)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
