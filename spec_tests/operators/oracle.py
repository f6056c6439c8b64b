"""Helpers of the categories' ``make_cases.py``: seeds, typical values, and writing the files.

Expectations come from an independent oracle, never from the kernels. A generator is run by hand, from anywhere::

    pip install --editable '.[cases]'
    python spec_tests/operators/<category>/make_cases.py
"""

import json
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from spec_tests.operators.cases import EXACT, FLOAT_TYPES, FOLDER, INTEGER_TYPES, encode

ALL_TYPES = FLOAT_TYPES + INTEGER_TYPES
EITHER_ZERO = {"ulp": 0}

Cases = list[dict[str, Any]]
Options = Mapping[str, Any]

SIGNED_TYPES = ("float32", "float16", "int64", "int32", "int8")

SHAPES: Sequence[tuple[int, ...]] = ((), (5,), (2, 3), (2, 1, 3), (2, 3, 1, 2), (1, 2, 2, 1, 3))
"""One small shape for each rank from 0 to 5, with axes of size 1."""

BROADCASTS: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = (
    ((), (3,)),
    ((2, 3), ()),
    ((1,), (4,)),
    ((4,), (1, 1)),
    ((2, 1), (3,)),
    ((3,), (2, 1)),
    ((2, 1, 3), (4, 1)),
    ((1, 4, 1), (2, 1, 3)),
    ((2, 3, 1, 2), (1, 1, 4, 1)),
    ((2,), (2, 2, 1, 3, 2)),
    ((1, 2, 1, 2, 3), (2, 1, 2, 1, 1)),
)
"""Pairs of shapes that broadcast: to the left, to the right, and both ways at once."""


def generator(*key: object) -> np.random.Generator:
    """Random numbers that depend on ``key`` alone: a case added or left out changes no other case."""
    return np.random.default_rng(zlib.crc32("/".join(map(str, key)).encode()))


def spread(rng: np.random.Generator, data_type: str, shape: Sequence[int], low: float = -4, high: float = 4) -> Any:
    """Random values from ``low`` to ``high``; floats are multiples of 1/64, so that they are short and exact."""
    if data_type in INTEGER_TYPES:
        limits = np.iinfo(data_type)
        low, high = max(int(low), limits.min), min(int(high), limits.max)
        return rng.integers(low, high, shape, data_type, endpoint=True)
    steps = rng.integers(round(low * 64), round(high * 64), shape, endpoint=True)
    return np.asarray(steps / 64).astype(data_type)


def extremes(data_type: str) -> np.ndarray:
    """The values of a data type that go wrong first: limits, zeros, ones, NaN, infinities, subnormals."""
    if data_type in INTEGER_TYPES:
        limits = np.iinfo(data_type)
        candidates = [limits.min, limits.min + 1, -2, -1, 0, 1, 2, 3, limits.max // 2, limits.max - 1, limits.max]
        return np.array(sorted({n for n in candidates if limits.min <= n <= limits.max}), data_type)
    limits = np.finfo(data_type)
    positive = [
        0.0,
        limits.smallest_subnormal,
        limits.smallest_normal,
        limits.eps,
        0.5,
        1,
        1.5,
        2,
        3,
        limits.max,
        np.inf,
    ]
    values = [float(value) for value in positive]
    return np.array([*values, *(-value for value in values), np.nan], data_type)


def extreme_pairs(data_type: str) -> tuple[np.ndarray, np.ndarray]:
    """Every extreme value with every other, as a column and a row that broadcast."""
    values = extremes(data_type)
    return values.reshape(-1, 1), values.reshape(1, -1)


def rounded(values: Any, data_type: str) -> np.ndarray:
    """Wide floats rounded once to a float data type: to infinity beyond its range."""
    with np.errstate(all="ignore"):
        return np.asarray(np.asarray(values).astype(data_type))


@attrs.frozen
class Constant:
    """An operand that is drawn as a constant."""

    array: np.ndarray


Operand = np.ndarray | Constant | Sequence[np.ndarray | Constant]


def case(
    name: str,
    inputs: Mapping[str, Operand],
    expected: np.ndarray | list[np.ndarray],
    *,
    options: Mapping[str, object] | None = None,
    tolerance: Mapping[str, object] = EXACT,
    constants: Sequence[str] = (),
) -> dict[str, Any]:
    """One case.

    Args:
        name: the behaviour, in a few words; unique within the operator.
        inputs: the operands by the method's parameter names.
        expected: the output, or the list of outputs, in the output's data type.
        options: all other arguments, by the method's parameter names; lists, numbers, strings and flags.
        tolerance: {"exact": True}, {"ulp": n} or {"absolute": x}.
        constants: the names of operands that are drawn as constants.
    """
    outputs = expected if isinstance(expected, list) else [expected]
    return {
        "name": name,
        "inputs": {
            parameter: _encode(operand, constant=parameter in constants) for parameter, operand in inputs.items()
        },
        "options": {option: _plain(value) for option, value in (options or {}).items()},
        "expected": [encode(output) for output in outputs],
        "tolerance": dict(tolerance),
    }


def _encode(operand: Operand, *, constant: bool = False) -> dict[str, Any] | list[dict[str, Any]]:
    if isinstance(operand, Constant):
        return encode(operand.array, constant=True)
    if isinstance(operand, (list, tuple)):
        return [_encode(item) for item in operand]
    return encode(operand, constant=constant)


def _plain(value: Any) -> Any:
    """An option's value in JSON; numbers that JSON has not are strings."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and (not np.isfinite(value) or (value == 0 and np.signbit(value))):
        return "-0" if value == 0 else str(value)
    return value


def unique(cases: Cases) -> Cases:
    """Return the cases without those whose names are there already."""
    return list({case["name"]: case for case in cases}.values())


def wrap(number: int, data_type: str) -> int:
    """Return the two's complement of a number in a data type."""
    limits = np.iinfo(data_type)
    return (number - int(limits.min)) % 2**limits.bits + int(limits.min)


def by_onnxruntime(
    operator: str, arrays: Mapping[str, np.ndarray], outputs: Sequence[str] = ("y",), **attributes: Any
) -> list[np.ndarray]:
    """Return what onnxruntime's operator computes of inputs in this order; "" is no input."""
    import onnxruntime  # noqa: PLC0415 - most oracles are others
    from onnx import helper  # noqa: PLC0415 - most oracles are others

    from spec_tests.support.onnx_programs import make_model  # noqa: PLC0415 - most oracles are others

    given = {name: array for name, array in arrays.items() if name}
    model = make_model([helper.make_node(operator, list(arrays), outputs, **attributes)], given, outputs, opset=21)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"]).run(None, given)


def write(make_cases: str, operator: str, oracle: str, cases: Iterable[dict[str, Any]]) -> None:
    """Write the file of one operator, one case a line.

    Args:
        make_cases: ``__file__`` of the generator, whose folder is named after the category.
        operator: the method's name.
        oracle: one line that says what computed the expectations, with its version.
        cases: what :func:`case` made.
    """
    cases = list(cases)
    names = [case["name"] for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{operator}: two cases have one name: {sorted(twice)}")
    lines = ",\n".join(json.dumps(case, allow_nan=False, separators=(",", ":")) for case in cases)
    head = f'{{"operator": {json.dumps(operator)}, "oracle": {json.dumps(oracle)}, "cases": [\n'
    path = FOLDER / Path(make_cases).parent.name / f"{operator}.json"
    path.write_text(f"{head}{lines}\n]}}\n", encoding="utf-8")
    sys.stdout.write(f"{path.parent.name}/{path.name}: {len(cases)} cases, {path.stat().st_size / 1000:.0f} kB\n")
