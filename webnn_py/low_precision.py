"""The numbers of bfloat16 and float8, of the proposal "low-precision", on arrays of float32 and of bits.

A number of bfloat16 has float32's sign and exponent, and 7 bits of its mantissa. float8 is E4M3 of the Open Compute
Project, ONNX's ``FLOAT8E4M3FN``: 4 bits of exponent with bias 7, 3 of mantissa, no infinity, and NaN where all 7 bits
are set.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from webnn_py.descriptors import BFLOAT16, FLOAT8, MLOperandDataType

Array = npt.NDArray[Any]

LARGEST_FLOAT8: Final = 448.0

_FORMATS: Final = {BFLOAT16: (8, -133), FLOAT8: (4, -9)}
"""The significant bits of a format, and the exponent of its lowest positive number."""

_EXACT: Final = 2**53
"""Integers up to here are numbers of float64."""


def _float8_values() -> Array:
    exponents, mantissas = np.divmod(np.arange(128, dtype=np.int32), 8)
    magnitudes = np.ldexp(np.where(exponents == 0, mantissas, mantissas + 8), np.maximum(exponents, 1) - 10)
    magnitudes[-1] = np.nan
    values = np.concatenate([magnitudes, -magnitudes]).astype(np.float32)
    values.flags.writeable = False
    return values


_FLOAT8_VALUES: Final = _float8_values()


def rounded(x: Array, data_type: MLOperandDataType) -> Array:
    """Return numbers of any of the eight data types, rounded once to the nearest of a format, ties to even.

    Beyond the range bfloat16 is infinite, and float8 is the largest number of that sign, also where it was infinite.
    NaN stays NaN.

    Returns:
        An array of float32, which holds all numbers of both formats.
    """
    precision, lowest_unit = _FORMATS[data_type]
    with np.errstate(all="ignore"):
        wide = x if x.dtype == np.float32 else _widened(x)
        if data_type == FLOAT8:
            wide = wide.clip(-LARGEST_FLOAT8, LARGEST_FLOAT8)
        _, exponents = np.frexp(wide)
        units = np.maximum(exponents - precision, lowest_unit)
        near: Array = np.ldexp(np.rint(np.ldexp(wide, -units)), units)
        return near.astype(np.float32, copy=False)


def _widened(x: Array) -> Array:
    """Return numbers as floats that lie on the same side of each number with few bits, and of each middle of two."""
    if x.dtype.kind == "f":
        return x.astype(np.float32)
    if x.dtype.itemsize == 8:  # bytes: more bits than float64 has
        low = np.bitwise_and(x, x.dtype.type(0xFFF))
        between = x - low + np.where(low != 0, 0x800, 0).astype(x.dtype)
        is_exact = x <= _EXACT if x.dtype.kind == "u" else (x <= _EXACT) & (x >= -_EXACT)
        x = np.where(is_exact, x, between)
    return x.astype(np.float64)


def of_bits(bits: Array, data_type: MLOperandDataType) -> Array:
    """Return the numbers of bits, as float32.

    Args:
        bits: of an unsigned type of as many bits as an element.
        data_type: what they mean.
    """
    if data_type == FLOAT8:
        values: Array = _FLOAT8_VALUES[bits]
        return values
    wide = bits.astype(np.uint32)
    return np.left_shift(wide, np.uint32(16), out=wide).view(np.float32)


def numbers_of(held: Array, data_type: MLOperandDataType) -> Array:
    """Return the numbers of an array that holds bits as devices do, in the data type of as many bits."""
    return of_bits(held.view(np.uint16 if data_type == BFLOAT16 else np.uint8), data_type)


def to_bits(numbers: Array, data_type: MLOperandDataType) -> Array:
    """Return the bits of float32 numbers that the format has; a NaN keeps its sign."""
    if data_type == FLOAT8:
        codes = np.searchsorted(_FLOAT8_VALUES[:127], np.abs(numbers)).astype(np.uint8)  # NaN comes last, at 0x7F
        return codes | np.signbit(numbers).astype(np.uint8) << np.uint8(7)
    bits = (numbers.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    is_nan = np.isnan(numbers).astype(np.uint16)
    return bits | is_nan << np.uint16(6)  # no payload that was cut off makes it an infinity
