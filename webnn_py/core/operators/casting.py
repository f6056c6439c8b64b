"""The spec's "cast" of a number to a data type: how options and scalar constants take their operand's data type.

This is not the operator ``cast``, which wraps integers around and truncates floats; a number saturates and rounds.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np

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
    if data_type not in INTEGER_RANGES:
        # spec: ConvertToFloat 1
        return _nearest_float(value, data_type) if value else float(value)  # zeros are equal, but for their sign
    if isinstance(value, float) and math.isnan(value):
        # spec: ConvertToInt 4
        return 0
    # spec: ConvertToInt 1-2
    lowest, highest = INTEGER_RANGES[data_type]
    # spec: ConvertToInt 3, 5-7
    return round(min(max(value, lowest), highest))


@lru_cache  # few numbers are options of most operators
def _nearest_float(value: float, data_type: MLOperandDataType) -> float:
    """Round to a float data type in one step, as numpy rounds binary64."""
    # spec: ConvertToFloat 3-7
    number = _with_odd_rest(value) if isinstance(value, int) else value
    with np.errstate(over="ignore", under="ignore"):
        return float(np.dtype(data_type).type(number))


def _with_odd_rest(value: int) -> float:
    """Return 53 bits of an int, the last of which is set if any that is cut off is: they round as the int does."""
    excess = max(value.bit_length() - 53, 0)
    kept = abs(value) >> excess
    if kept << excess != abs(value):
        kept |= 1
    sign = -1 if value < 0 else 1
    try:
        return math.ldexp(sign * kept, excess)
    except OverflowError:
        return sign * math.inf
