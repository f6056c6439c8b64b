"""Make the cases of the activation functions.

Floats: torch in float64, rounded once; torch has NaN where infinities meet zeros in a formula, so the functions' limits
are given here. Integers: Python's own. Options are rounded to the data type first.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from spec_tests.operators.cases import EXACT
from spec_tests.operators.elementwise import unary_cases
from spec_tests.operators.oracle import (
    ALL_TYPES,
    BROADCASTS,
    EITHER_ZERO,
    FLOAT_TYPES,
    SHAPES,
    SIGNED_TYPES,
    Cases,
    Constant,
    Options,
    case,
    extremes,
    generator,
    rounded,
    spread,
    wrap,
    write,
)

ORACLE = f"torch {torch.__version__} in float64, rounded once by numpy; limits at infinity by hand"
WITH_INTEGERS = f"floats: {ORACLE}; integers: Python's integers"

Function = Callable[..., torch.Tensor]
"""Of a tensor in float64, and of options."""


def of_floats(function: Function, limits: tuple[float, float] | None = None) -> Callable[..., np.ndarray]:
    """The oracle on float arrays: ``function``, with its limits at -Infinity and Infinity where torch has NaN."""
    defaults = getattr(function, "__kwdefaults__", None) or {}

    def compute(array: np.ndarray, **options: Any) -> np.ndarray:
        data_type = array.dtype.name
        x = torch.from_numpy(array.astype(np.float64))
        numbers = {
            name: float(rounded(np.float64(options.get(name, default)), data_type))
            for name, default in defaults.items()
        }
        y = function(x, **numbers)
        if limits is not None:
            for end, limit in zip((-torch.inf, torch.inf), limits, strict=True):
                y = torch.where(x == end, limit, y)
        return rounded(y.numpy(), data_type)

    return compute


def with_options(
    operator: str,
    compute: Callable[..., np.ndarray],
    option_sets: Sequence[Options],
    *,
    data_types: Sequence[str] = FLOAT_TYPES,
    tolerances: Mapping[str, Mapping[str, object]],
    low: float = -4,
    with_extremes: bool = True,
) -> Cases:
    """Every set of options for every data type, on random and on extreme values."""
    cases = []
    for options, data_type in itertools.product(option_sets, data_types):
        said = ", ".join(f"{name} {value}" for name, value in options.items())
        arrays = {"": spread(generator(operator, said, data_type), data_type, (2, 3), low)}
        if with_extremes:
            arrays[", extreme values"] = extremes(data_type)
        for what, array in arrays.items():
            expected = compute(array, **options)
            tolerance = tolerances.get(data_type, EXACT)
            cases.append(
                case(f"{data_type}, {said}{what}", {"input": array}, expected, options=options, tolerance=tolerance)
            )
    return cases


# --- functions of one operand ------------------------------------------------------------------------------------


def elu(x: torch.Tensor, *, alpha: float = 1.0) -> torch.Tensor:
    return torch.where(x > 0, x, alpha * torch.expm1(x))


def hard_sigmoid(x: torch.Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> torch.Tensor:
    return torch.clamp(alpha * x + beta, 0, 1)


def leaky_relu(x: torch.Tensor, *, alpha: float = 0.01) -> torch.Tensor:
    return functional.leaky_relu(x, alpha)


def linear(x: torch.Tensor, *, alpha: float = 1.0, beta: float = 0.0) -> torch.Tensor:
    return alpha * x + beta


def softplus(x: torch.Tensor) -> torch.Tensor:
    return torch.logaddexp(torch.zeros_like(x), x)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * torch.special.erfc(-x / 2**0.5)


AROUND = [1e-3, -1e-3, 0.1, -0.1, 0.7, -0.7, 1.7, -1.7, 2.9, -2.9, 3.1, -3.1, 5.3, -5.3, 8.7, -8.7]
FAR = {
    "float32": [13.9, -13.9, 17.2, -17.2, 50, -50, 87.3, -87.3, 88.8, -88.8, 104, -104],
    "float16": [11, -11, 17, -17],
}
CHOSEN = {data_type: rounded(AROUND + FAR[data_type], data_type) for data_type in FLOAT_TYPES}

PLAIN: dict[str, tuple[Function, tuple[float, float] | None, int]] = {
    "elu": (elu, None, 2),
    "gelu": (gelu, (-0.0, torch.inf), 18),
    "hard_swish": (functional.hardswish, (-0.0, torch.inf), 2),
    "leaky_relu": (leaky_relu, None, 0),
    "linear": (linear, None, 0),
    "sigmoid": (torch.sigmoid, None, 4),
    "softplus": (softplus, (0.0, torch.inf), 2),
    "softsign": (functional.softsign, (-1.0, 1.0), 1),
    "tanh": (torch.tanh, None, 2),
}
"""The function, its limits at infinity, and how many ULP float32 may be off; float16 is rounded once."""

OPTIONS: dict[str, list[Options]] = {
    "elu": [{"alpha": 0.5}, {"alpha": 2}, {"alpha": 0}, {"alpha": -1.5}, {"alpha": 0.1}],
    "leaky_relu": [{"alpha": 0.25}, {"alpha": 1}, {"alpha": 3}, {"alpha": -0.5}, {"alpha": 0.1}],
    "linear": [{"alpha": 2}, {"beta": -1}, {"alpha": 0.5, "beta": 0.25}, {"alpha": -3, "beta": 1.5}],
}


def tolerances_of(ulp: int) -> dict[str, Mapping[str, object]]:
    """Return tolerances: this many ULP for float32; 1 for float16, where the value before rounding is a tie."""
    return {"float32": {"ulp": ulp}, "float16": {"ulp": min(ulp, 1)}}


def plain_cases(operator: str) -> Cases:
    function, limits, ulp = PLAIN[operator]
    compute, tolerances = of_floats(function, limits), tolerances_of(ulp)
    special = {"chosen values": CHOSEN}
    cases = unary_cases(operator, compute, FLOAT_TYPES, tolerances=tolerances, special=special)
    cases += with_options(operator, compute, OPTIONS.get(operator, []), tolerances=tolerances)
    if operator == "leaky_relu":
        cases += with_options(operator, compute, [{"alpha": 0}], tolerances=tolerances, with_extremes=False)
    if operator == "linear":
        apart = [{"alpha": 0}, {"alpha": 0, "beta": 3}]  # times infinity
        cases += with_options(operator, compute, apart, tolerances=tolerances, with_extremes=False)
        inexact = [{"alpha": 0.1, "beta": 0.3}, {"alpha": 1e-3}, {"alpha": 1.7, "beta": 1e-2}]
        cases += with_options(operator, compute, inexact, tolerances=tolerances_of(1), low=0.25, with_extremes=False)
    return cases


def hard_sigmoid_cases() -> Cases:
    """Exact where alpha is short; else where the two terms do not cancel out."""
    operator, compute = "hard_sigmoid", of_floats(hard_sigmoid)
    special = {
        "corners": {t: rounded([-3, -2.5, 0, 2.5, 3, -1e4, 1e4], t) for t in FLOAT_TYPES},
        "on the slope": {t: rounded([-1.7, -1.2, -0.3, 0.3, 1.1, 2.2], t) for t in FLOAT_TYPES},
    }
    cases = unary_cases(
        operator,
        compute,
        FLOAT_TYPES,
        tolerances=tolerances_of(1),
        values=lambda rng, data_type, shape: spread(rng, data_type, shape, -1.5, 4),
        special=special,
    )
    short: list[Options] = [
        {"alpha": 0.25},
        {"beta": 0.25, "alpha": 0.125},
        {"alpha": -0.5, "beta": 0.75},
        {"alpha": 1, "beta": -1},
        {"alpha": 8, "beta": 2},
    ]
    cases += with_options(operator, compute, short, tolerances=tolerances_of(0))
    flat: list[Options] = [{"alpha": 0}, {"alpha": 0, "beta": 2}, {"alpha": 0, "beta": -2}]
    cases += with_options(operator, compute, flat, tolerances=tolerances_of(0), with_extremes=False)
    positive: list[Options] = [{"beta": 0.1}, {"alpha": 0.3, "beta": 0.01}]
    cases += with_options(operator, compute, positive, tolerances=tolerances_of(1), low=0.25, with_extremes=False)
    return cases


def relu_cases() -> Cases:
    def compute(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind == "f":
            return of_floats(torch.relu)(array)
        return np.array([max(0, int(n)) for n in array.ravel()], array.dtype).reshape(array.shape)

    return unary_cases("relu", compute, SIGNED_TYPES, tolerances=dict.fromkeys(FLOAT_TYPES, EITHER_ZERO))


# --- clamp -------------------------------------------------------------------------------------------------------


def nearest_integer(bound: float, data_type: str) -> int:
    """The nearest integer of the data type, halves to the even one."""
    limits = np.iinfo(data_type)
    return round(min(max(bound, int(limits.min)), int(limits.max)))


def clamp(array: np.ndarray, min_value: float | None = None, max_value: float | None = None) -> np.ndarray:
    """NaN bounds nothing."""
    bounds = [None if bound is None or bound != bound else bound for bound in (min_value, max_value)]  # noqa: PLR0124
    data_type = array.dtype.name
    if array.dtype.kind == "f":
        low, high = (None if bound is None else float(rounded(np.float64(bound), data_type)) for bound in bounds)
        if low is None and high is None:
            return array
        return rounded(torch.clamp(torch.from_numpy(array.astype(np.float64)), low, high).numpy(), data_type)
    low, high = (None if bound is None else nearest_integer(bound, data_type) for bound in bounds)
    numbers = [int(n) for n in array.ravel()]
    numbers = numbers if low is None else [max(low, n) for n in numbers]
    numbers = numbers if high is None else [min(high, n) for n in numbers]
    return np.array(numbers, data_type).reshape(array.shape)


CLAMPS: list[Options] = [
    {"min_value": -1},
    {"max_value": 2},
    {"min_value": -1, "max_value": 2},
    {"min_value": 1, "max_value": 1},
    {"min_value": 0.5, "max_value": 2.5},
    {"min_value": -1.5, "max_value": 3.5},
    {"min_value": -1000.25, "max_value": 300.75},
    {"min_value": -np.inf, "max_value": 1},
    {"min_value": 1, "max_value": np.inf},
    {"min_value": np.nan, "max_value": 1},
    {"min_value": 1, "max_value": np.nan},
    {"min_value": -1e300, "max_value": 1e300},
    {"min_value": np.inf},
    {"max_value": -np.inf},
]
WIDE_CLAMPS: dict[str, list[Options]] = {
    "int64": [{"min_value": 2 - 2**63, "max_value": 2**63 - 2}, {"min_value": 2**62 + 1}, {"max_value": 2**70}],
    "uint64": [{"min_value": 1, "max_value": 2**64 - 2}, {"min_value": 2**63 + 1}, {"min_value": -5}],
    "int32": [{"min_value": 2 - 2**31, "max_value": 2**31 - 3}],
    "uint32": [{"min_value": 2**31, "max_value": 2**32 - 2}],
    "int8": [{"min_value": -127.5, "max_value": 126.5}],
    "uint8": [{"min_value": 0.5, "max_value": 254.5}],
    "float32": [{"min_value": 0.1, "max_value": 16777217}],
    "float16": [{"min_value": 0.1, "max_value": 2049}, {"max_value": 65519}, {"max_value": 65520}],
}


def clamp_cases() -> Cases:
    tolerances = dict.fromkeys(FLOAT_TYPES, EITHER_ZERO)
    cases = unary_cases("clamp", clamp, ALL_TYPES, tolerances=tolerances)
    for index, options in enumerate(CLAMPS):
        integers = [ALL_TYPES[2 + (index + offset) % 6] for offset in (0, 2, 5)]
        cases += [
            case(
                f"{data_type}, {', '.join(f'{name} {value}' for name, value in options.items())}",
                {"input": extremes(data_type)},
                clamp(extremes(data_type), **options),
                options=options,
                tolerance=tolerances.get(data_type, EXACT),
            )
            for data_type in (*FLOAT_TYPES, *integers)
        ]
    for data_type, option_sets in WIDE_CLAMPS.items():
        cases += with_options("clamp", clamp, option_sets, data_types=[data_type], tolerances=tolerances)
    return cases


# --- prelu -------------------------------------------------------------------------------------------------------


def prelu(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Integers wrap around."""
    data_type = x.dtype.name
    if x.dtype.kind == "f":
        wide, factor = (torch.from_numpy(array.astype(np.float64)) for array in (x, slope))
        return rounded(torch.where(wide < 0, factor * wide, wide + 0 * factor).numpy(), data_type)
    pairs = np.broadcast(x, slope)
    numbers = [wrap(int(a) if a > 0 else int(a) * int(b), data_type) for a, b in pairs]
    return np.array(numbers, data_type).reshape(pairs.shape)


def prelu_cases() -> Cases:
    cases = []

    def add(name: str, x: np.ndarray, slope: np.ndarray, constants: Sequence[str] = ()) -> None:
        inputs, expected = {"input": x, "slope": slope}, prelu(x, slope)
        tolerance = EITHER_ZERO if x.dtype.kind == "f" else EXACT
        cases.append(case(f"{x.dtype.name}, {name}", inputs, expected, tolerance=tolerance, constants=constants))

    def random(data_type: str, *shapes: Sequence[int]) -> list[np.ndarray]:
        rng = generator("prelu", data_type, shapes)
        return [spread(rng, data_type, shape) for shape in shapes]

    for data_type in SIGNED_TYPES:
        for shape in SHAPES:
            add(f"rank {len(shape)}", *random(data_type, shape, shape))
        of_all = extremes(data_type)
        slopes = np.array([-2, 0, 1, 3] if of_all.dtype.kind == "i" else [-2, 0.25, 1, 3], data_type)
        add("extreme values with moderate slopes", of_all.reshape(-1, 1), slopes)
        finite = np.array([-3, -2, -1], data_type)
        add("negative numbers with extreme slopes", finite.reshape(-1, 1), of_all)
    for data_type in FLOAT_TYPES:
        signs, unbounded = (np.array(item, data_type) for item in ([-2, 0, 0.5, 3, np.inf], [-np.inf, np.inf, np.nan]))
        add("slopes that are not finite", signs.reshape(-1, 1), unbounded)
        slopes = np.array([0.1, 0.01, -0.3], data_type)
        add("slopes that round", spread(generator("prelu rounds"), data_type, (4, 3)), slopes)
        add("slope 0", spread(generator("prelu", 0), data_type, (2, 3)), np.array([0, -0.0, 0], data_type))
    for index, (a, b) in enumerate(BROADCASTS):
        add(f"{list(a)} with {list(b)}", *random(SIGNED_TYPES[index % 5], a, b))
    for constants in (["input"], ["slope"], ["input", "slope"]):
        add(f"constant {' and '.join(constants)}", *random("float32", (2, 3), (3,)), constants)
    return cases


# --- softmax -----------------------------------------------------------------------------------------------------


def softmax_cases() -> Cases:
    cases = []
    tolerances = tolerances_of(4)

    def add(name: str, array: np.ndarray, axis: int, *, constant: bool = False) -> None:
        wide = torch.softmax(torch.from_numpy(array.astype(np.float64)), axis)
        data_type = array.dtype.name
        expected = rounded(wide.numpy(), data_type)
        operand = Constant(array) if constant else array
        tolerance = tolerances[data_type]
        said = f"{data_type}, {name}, axis {axis}"
        cases.append(case(said, {"input": operand}, expected, options={"axis": axis}, tolerance=tolerance))

    rows = {
        "large numbers": [[1000, 1001, 1002], [-1000, -1001, -999], [65504, 65504, 65504]],
        "far apart": [[0, -1000, 60], [90, -90, 0], [-200, -50, -90]],
        "rows far apart": [[-95, -96, -97], [60, 61, 62], [0.5, 0.25, -0.5]],
        "exponentials beyond float32": [[89, 90, 91], [60, 61, 62], [1, 2, 3]],
        "infinities below": [[-np.inf, 0, 1], [1, 2, -np.inf], [-np.inf, -np.inf, 3]],
        "infinities above": [[np.inf, 0, 1], [1, np.inf, np.inf], [-np.inf, np.inf, 3]],
        "nothing but -Infinity": [[-np.inf, -np.inf, -np.inf], [1, 2, 3], [4, 5, 6]],
        "NaN": [[np.nan, 0, 1], [1, 2, 3], [1, np.nan, np.nan]],
        "equal": [[0, 0, -0.0], [3, 3, 3], [-7, -7, -7]],
    }
    for data_type in FLOAT_TYPES:
        for shape in [*SHAPES[1:], (2, 1), (1,), (3, 4)]:
            array = spread(generator("softmax", data_type, shape), data_type, shape)
            for axis in range(len(shape)):
                add(f"{list(shape)}", array, axis)
        for name, values in rows.items():
            for axis in (0, 1):
                array = np.array(values, data_type)
                add(name, array if axis else array.T, axis)
        array = spread(generator("softmax", data_type, "long"), data_type, (50,), -9, 9)
        add("a long axis", array, 0)
    add("a constant", spread(generator("softmax constant"), "float32", (2, 3)), 1, constant=True)
    return cases


def main() -> None:
    """Write the files of the category."""
    for operator in PLAIN:
        write(__file__, operator, ORACLE, plain_cases(operator))
    write(__file__, "hard_sigmoid", ORACLE, hard_sigmoid_cases())
    write(__file__, "softmax", f"torch {torch.__version__} in float64, rounded once by numpy", softmax_cases())
    write(__file__, "clamp", WITH_INTEGERS, clamp_cases())
    write(__file__, "prelu", WITH_INTEGERS, prelu_cases())
    write(__file__, "relu", WITH_INTEGERS, relu_cases())


if __name__ == "__main__":
    main()
