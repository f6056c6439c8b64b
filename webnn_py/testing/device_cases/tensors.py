"""Tensors and results of cases: how they are written, and how what was computed is compared with what is expected."""

import json
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

INTEGER_TYPES: Final = ("int32", "uint32", "int64", "uint64", "int8", "uint8")


def decode(tensor: dict[str, Any]) -> Array:
    """Return the array that a tensor of a file means."""
    data_type, shape, data = tensor["data_type"], tensor["shape"], tensor["data"]
    if len(data) != math.prod(shape):
        raise ValueError(f"{len(data)} numbers were given for the shape {shape}")
    if data_type in INTEGER_TYPES:
        return np.array(data, data_type).reshape(shape)
    with np.errstate(all="ignore"):
        return np.array([float(number) for number in data], np.float64).astype(data_type).reshape(shape)


def bit_patterns(array: Array) -> Array:
    """Return the bits, with one pattern for every NaN."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    bits = array.view(f"u{array.itemsize}").copy()
    if array.dtype.kind == "f":
        bits[np.isnan(array)] = np.iinfo(bits.dtype).max
    return bits


def ulp_distance(got: Array, expected: Array) -> Array:
    """Return the distance of two arrays of one data type in units in the last place; both zeros are one."""
    if got.dtype.kind != "f":
        return np.asarray(np.abs(got.astype(object) - expected.astype(object)), np.float64).reshape(got.shape)
    return np.asarray(np.abs(_ordered(got) - _ordered(expected)), np.float64)


def _ordered(array: Array) -> Array:
    """Integers in the order of the floats, neighbours for neighbours."""
    bits = array.view(f"i{array.itemsize}").astype(np.int64)
    lowest = -(1 << (8 * array.itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def difference(got: Array, expected: Array, tolerance: dict[str, Any]) -> str | None:
    """Return in words how ``got`` differs; None when it is as expected."""
    if got.dtype != expected.dtype:
        return f"the data type is {got.dtype}, expected {expected.dtype}"
    if got.shape != expected.shape:
        return f"the shape is {list(got.shape)}, expected {list(expected.shape)}"
    wrong = ~within(got, expected, tolerance)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    a, b = got[index], expected[index]
    away = ulp_distance(np.asarray(a), np.asarray(b))
    off = "" if got.dtype.kind == "f" and not np.isfinite([a, b]).all() else f", off by {away:g} ULP"
    rest = f"{int(wrong.sum())} of {wrong.size} wrong"
    return f"{list(index)} is {a!s}, expected {b!s}{off} (allowed: {json.dumps(tolerance)}; {rest})"


def within(got: Array, expected: Array, tolerance: dict[str, Any]) -> Array:
    """Return whether each element is as expected."""
    ((metric, allowed),) = tolerance.items()
    same = np.atleast_1d(bit_patterns(got) == bit_patterns(expected)).reshape(got.shape)
    if metric == "exact":
        return same
    with np.errstate(all="ignore"):
        if metric == "ulp":
            near = ulp_distance(got, expected) <= allowed
        elif metric == "absolute":
            near = np.abs(got.astype(np.float64) - expected.astype(np.float64)) <= allowed
        else:
            raise ValueError(f"an unknown tolerance: {tolerance}")
    if got.dtype.kind == "f":
        near &= np.isfinite(got) & np.isfinite(expected)
    return np.asarray(same | near)
