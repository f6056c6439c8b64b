"""Cases as data: how they are written in files, and how a result is compared with what is expected.

A file holds the cases of one operator, in the folder of its category; the category's ``make_cases.py`` writes it::

    {"operator": "add", "oracle": "what computed the expectations", "cases": [
    {"name": "…", "inputs": {"a": T, "b": T}, "options": {}, "expected": [T], "tolerance": {"ulp": 1}},
    …]}

``inputs`` has the operands by the method's parameter names, a list where the method takes a sequence. A tensor T is
``{"data_type": "float32", "shape": [2], "data": [0.5, "nan"]}``; with ``"constant": true`` it is drawn as a constant
instead of a graph input. NaN, infinities and -0 are the strings "nan", "inf", "-inf" and "-0".

A tolerance is one of ``{"exact": true}`` (the same bits, any NaN for a NaN), ``{"ulp": n}`` (units in the last place
of the data type, zeros of both signs being one; for integers the difference) and ``{"absolute": x}``. NaN and
infinities must stand where they are expected whatever the tolerance.
"""

import json
import math
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np

HERE = Path(__file__).parent
EXACT = {"exact": True}
INTEGER_TYPES = ("int32", "uint32", "int64", "uint64", "int8", "uint8")
FLOAT_TYPES = ("float32", "float16")


# --- tensors -----------------------------------------------------------------------------------------------------


def decode(tensor: dict[str, Any]) -> np.ndarray:
    """The array that a tensor of a file means."""
    data_type, shape, data = tensor["data_type"], tensor["shape"], tensor["data"]
    if len(data) != math.prod(shape):
        raise ValueError(f"{len(data)} numbers were given for the shape {shape}")
    if data_type in INTEGER_TYPES:
        return np.array(data, data_type).reshape(shape)
    with np.errstate(all="ignore"):
        return np.array([float(number) for number in data], np.float64).astype(data_type).reshape(shape)


def encode(array: np.ndarray, *, constant: bool = False) -> dict[str, Any]:
    """The tensor that means ``array``; the shortest digits that read back to the same bits."""
    array = np.asarray(array)
    data_type = array.dtype.name
    if data_type not in INTEGER_TYPES + FLOAT_TYPES:
        raise TypeError(f"an array of {data_type}; convert it to the operator's data type, rounding once")
    numbers = [_shortest(number) for number in array.ravel()]
    tensor = {"data_type": data_type, "shape": list(array.shape), "data": numbers}
    if _bits(decode(tensor)).tobytes() != _bits(array).tobytes():
        raise AssertionError(f"{numbers} does not read back to {array!r}")
    return tensor | {"constant": True} if constant else tensor


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


def _bits(array: np.ndarray) -> np.ndarray:
    """The bits, with one pattern for every NaN."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    bits = array.view(f"u{array.itemsize}").copy()
    if array.dtype.kind == "f":
        bits[np.isnan(array)] = np.iinfo(bits.dtype).max
    return bits


# --- comparison --------------------------------------------------------------------------------------------------


def ulp_distance(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How many units in the last place lie between two arrays of one data type; both zeros are one."""
    if got.dtype.kind != "f":
        return np.abs(got.astype(object) - expected.astype(object)).astype(np.float64).reshape(got.shape)
    return np.abs(_ordered(got) - _ordered(expected)).astype(np.float64)


def _ordered(array: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats, neighbours for neighbours."""
    bits = array.view(f"i{array.itemsize}").astype(np.int64)
    lowest = -(1 << (8 * array.itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def difference(got: np.ndarray, expected: np.ndarray, tolerance: dict[str, Any]) -> str | None:
    """What is wrong with ``got``, in words; None when it is as expected."""
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


def flushed(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """A result in float32 with what is expected wherever that is subnormal, and the result is zero."""
    if got.dtype != np.float32 or got.shape != expected.shape:
        return got
    return np.where((got == 0) & (np.abs(expected) < np.finfo(np.float32).smallest_normal), expected, got)


def within(got: np.ndarray, expected: np.ndarray, tolerance: dict[str, Any]) -> np.ndarray:
    """Whether each element is as expected."""
    ((metric, allowed),) = tolerance.items()
    same = np.atleast_1d(_bits(got) == _bits(expected)).reshape(got.shape)
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
    return same | near


# --- files -------------------------------------------------------------------------------------------------------


@attrs.frozen(slots=False)
class Case:
    """One case; arrays are decoded when they are first looked at."""

    operator: str
    raw: dict[str, Any]

    @property
    def name(self) -> str:
        return self.raw["name"]

    @property
    def options(self) -> dict[str, Any]:
        return {name: _number(value) for name, value in self.raw.get("options", {}).items()}

    @property
    def tolerance(self) -> dict[str, Any]:
        return self.raw["tolerance"]

    @cached_property
    def expected(self) -> list[np.ndarray]:
        return [decode(tensor) for tensor in self.raw["expected"]]

    @property
    def inputs(self) -> dict[str, Any]:
        """The operands as they are written, by parameter: a tensor, or a list of them."""
        return self.raw["inputs"]


def _number(value: object) -> object:
    """An option's value: the strings of numbers that JSON has not are numbers."""
    return float(value) if isinstance(value, str) and value in {"nan", "inf", "-inf", "-0"} else value


@attrs.frozen
class CaseFile:
    """The cases of one operator."""

    category: str
    operator: str
    oracle: str
    cases: tuple[Case, ...]


@cache  # seven files of tests ask for all of them
def load(path: Path) -> CaseFile:
    """Read one file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    cases = tuple(Case(content["operator"], raw) for raw in content["cases"])
    return CaseFile(path.parent.name, content["operator"], content["oracle"], cases)


def load_all() -> list[CaseFile]:
    """Read every file of every category."""
    return [load(path) for path in sorted(HERE.glob("*/*.json"))]
