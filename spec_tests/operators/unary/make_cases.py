"""Make the cases of the element-wise unary operators.

Floats are computed in float64 and rounded once, integers by Python's own.
"""

import math
import platform
from collections.abc import Callable, Sequence

import numpy as np

from spec_tests.operators.elementwise import unary_cases
from spec_tests.operators.oracle import ALL_TYPES, FLOAT_TYPES, SIGNED_TYPES, rounded, spread, wrap, write

ORACLE = (
    f"floats: numpy {np.__version__} in float64 (erf: Python {platform.python_version()}'s), rounded once;"
    " integers: Python's integers, wrapped around"
)

HALVES = [-3.5, -2.5, -1.5, -0.5, -0.25, 0.25, 0.5, 1.5, 2.5, 3.5, 0.1, 0.9, 1.1, 1.9, 1023.5, -1024, 2047, 65504]
BIG_HALVES = {"float32": [8388607.5, -8388606.5, 8388608, 16777217], "float16": [1022.5, -1021.5, 511.75]}
ANGLES = [math.pi / 2, -math.pi / 2, math.pi, 3 * math.pi / 2, 2 * math.pi, 0.785, 10, 100, 1000, 12345, 65504]
BIG_ANGLES = {"float32": [71476, 1e6, -1e10, 1e20, 1e38], "float16": [-30000, 44.0, 22.0]}
EXPONENTS = [1e-3, 0.693, 1, -1, 5, 10, 11.0859375, 11.09375, 11.1, -9.7, -16.6, -17.4]
BIG_EXPONENTS = {"float32": [50, 88.72283, 88.72284, 89, -87.33, -103.2, -103.97, -104, -150], "float16": [-10, -25]}
AROUND_ONE = [0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 1.5, 2, 2.71828, 10, 100, 1000, 1e-3, 1e-5, 65504]
ERRORS = [1e-3, 0.1, 0.4, 0.47, 0.5, 0.84, 0.85, 1.2, 1.25, 2, 2.5, 3, 3.5, 3.9, 4, 4.1, 6, 10]
SQUARES = [1, 2, 3, 4, 9, 16, 100, 0.25, 0.01, 1e-5, 12345, 65504]
DIVISORS = [3, 7, 10, 0.1, 1e-4, -3, 65504, 1.5, -0.3, 1e-5]

Oracle = Callable[[np.ndarray], np.ndarray]
OPERATORS: dict[str, tuple[Oracle, list[float], dict[str, list[float]]]] = {
    "ceil": (np.ceil, HALVES, BIG_HALVES),
    "cos": (np.cos, ANGLES, BIG_ANGLES),
    "erf": (np.vectorize(math.erf), ERRORS + [-x for x in ERRORS], {}),
    "exp": (np.exp, EXPONENTS, BIG_EXPONENTS),
    "floor": (np.floor, HALVES, BIG_HALVES),
    "log": (np.log, AROUND_ONE, {"float32": [1e-30, 1e30], "float16": [6e-8]}),
    "reciprocal": (np.reciprocal, DIVISORS, {"float32": [1e-38, 3e38, -2e-39], "float16": [1.6e-5, 1.5e-5]}),
    "round_even": (np.rint, HALVES, BIG_HALVES),
    "sin": (np.sin, ANGLES, BIG_ANGLES),
    "sqrt": (np.sqrt, SQUARES, {"float32": [1e-38, 1e38], "float16": [6e-8]}),
    "tan": (np.tan, ANGLES, BIG_ANGLES),
}
NEAR = {"float32": {"ulp": 2}, "float16": {"ulp": 1}}
EITHER_ZERO = {"float32": {"ulp": 0}, "float16": {"ulp": 0}}
TOLERANCES = dict.fromkeys(("cos", "erf", "exp", "log", "sin", "tan"), NEAR) | dict.fromkeys(
    ("ceil", "floor", "round_even", "sign"), EITHER_ZERO
)


def float_oracle(function: Oracle) -> Oracle:
    """The function in float64, rounded once."""

    def compute(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return rounded(function(array.astype(np.float64)), array.dtype.name)

    return compute


def with_integers(of_floats: Oracle, of_integer: Callable[[int], int]) -> Oracle:
    """The one on floats, the other on every integer, wrapped around."""

    def compute(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind == "f":
            return float_oracle(of_floats)(array)
        numbers = [wrap(of_integer(int(number)), array.dtype.name) for number in array.ravel()]
        return np.array(numbers, array.dtype).reshape(array.shape)

    return compute


def float_sign(values: np.ndarray) -> np.ndarray:
    """1, -1, or else 0: for NaN too."""
    return np.where(values > 0, 1.0, np.where(values < 0, -1.0, 0.0))


MORE_TYPES: dict[str, tuple[Oracle, Sequence[str]]] = {
    "abs": (with_integers(np.abs, abs), SIGNED_TYPES),
    "identity": (np.copy, ALL_TYPES),
    "neg": (with_integers(np.negative, lambda number: -number), SIGNED_TYPES),
    "sign": (with_integers(float_sign, lambda number: (number > 0) - (number < 0)), SIGNED_TYPES),
}


def main() -> None:
    """Write the files of the category."""
    for operator, (function, chosen, of_type) in OPERATORS.items():
        special_values = {
            data_type: rounded(chosen + of_type.get(data_type, []), data_type) for data_type in FLOAT_TYPES
        }
        values = positive if operator in {"log", "sqrt"} else spread
        cases = unary_cases(
            operator,
            float_oracle(function),
            FLOAT_TYPES,
            tolerances=TOLERANCES.get(operator),
            values=values,
            special={"chosen values": special_values},
        )
        write(__file__, operator, ORACLE, cases)
    for operator, (function, data_types) in MORE_TYPES.items():
        cases = unary_cases(operator, function, data_types, tolerances=TOLERANCES.get(operator))
        write(__file__, operator, ORACLE, cases)


def positive(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Mostly positive numbers."""
    return spread(rng, data_type, shape, -0.5, 8)


if __name__ == "__main__":
    main()
