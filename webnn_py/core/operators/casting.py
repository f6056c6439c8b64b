"""The spec's "cast" of a number to a data type: how options and scalar constants take their operand's data type.

This is not the operator ``cast``, which wraps integers around and truncates floats; a number saturates and rounds.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from webnn_py.core.descriptors import MLOperandDataType

INTEGER_RANGES: Final[Mapping[MLOperandDataType, tuple[int, int]]] = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
}
"""The lowest and the highest value of each integer data type."""


def cast_number(value: float, data_type: MLOperandDataType) -> int | float:
    """Return the number of ``data_type`` nearest to ``value``, ties to even.

    Args:
        value: an int of any size, which is taken exactly, or a float, which may be NaN or infinite.
        data_type: what the number is for.

    Returns:
        For an integer data type an int: values beyond its range saturate, NaN is 0. For a float data type a float:
        values beyond its range are infinite, and what rounds to zero keeps its sign.
    """
    # spec: cast 1; ConvertToFloat 2
    if data_type == "float32":
        return _nearest_float(value, precision=24, lowest_unit=-149, end=128)
    if data_type == "float16":
        return _nearest_float(value, precision=11, lowest_unit=-24, end=16)
    if isinstance(value, float) and math.isnan(value):
        # spec: ConvertToInt 4
        return 0
    # spec: ConvertToInt 1-2
    lowest, highest = INTEGER_RANGES[data_type]
    # spec: ConvertToInt 3, 5-7
    return round(min(max(value, lowest), highest))


def _nearest_float(value: float, *, precision: int, lowest_unit: int, end: int) -> float:
    """Round to a binary format in one step: large ints would round twice if they passed through binary64.

    Args:
        value: what to round.
        precision: the significant bits of the format.
        lowest_unit: the exponent of the format's lowest positive number.
        end: the exponent of the lowest power of two beyond its range.
    """
    if value == 0 or (isinstance(value, float) and not math.isfinite(value)):
        # spec: ConvertToFloat 1
        return float(value)
    return _rounded(value, precision, lowest_unit, end)


@lru_cache
def _rounded(value: float, precision: int, lowest_unit: int, end: int) -> float:
    """Return a finite number that is not 0: few numbers are options of most operators, and fractions take long."""
    exponent = value.bit_length() if isinstance(value, int) else math.frexp(value)[1]
    # spec: ConvertToFloat 6
    sign = -1.0 if value < 0 else 1.0
    if exponent > end:
        return sign * math.inf
    unit = max(exponent - precision, lowest_unit)
    from fractions import Fraction  # noqa: PLC0415 - slow to import

    # spec: ConvertToFloat 3
    units = round(abs(Fraction(value)) / Fraction(2) ** unit)
    # spec: ConvertToFloat 4-5, 7
    return sign * (math.ldexp(units, unit) if units < 2 ** (end - unit) else math.inf)
