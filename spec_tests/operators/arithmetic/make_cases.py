"""Make the cases of the element-wise binary operators.

Floats are computed by numpy in float64, which rounds once to float32 or float16 as IEEE 754 wants it (53 bits are more
than twice 24 and 2); integers by Python's own, reduced to the data type's range.
"""

from collections.abc import Callable

import numpy as np

from spec_tests.operators.elementwise import binary_cases
from spec_tests.operators.oracle import ALL_TYPES, rounded, wrap, write

ORACLE = f"floats: numpy {np.__version__} in float64, rounded once; integers: Python's integers, wrapped around"


def divide(a: int, b: int) -> int:
    """Truncated toward zero; 0 for a division by zero."""
    quotient = abs(a) // abs(b) if b else 0
    return -quotient if (a < 0) != (b < 0) else quotient


def power(a: int, b: int, modulus: int) -> int:
    """a to the power b; for a negative b the truncated fraction."""
    if b >= 0:
        return pow(a, b, modulus)
    if a in {1, -1}:
        return a if b % 2 else 1
    return 0


OPERATORS: dict[str, tuple[Callable, Callable]] = {
    "add": (np.add, lambda a, b, _: a + b),
    "sub": (np.subtract, lambda a, b, _: a - b),
    "mul": (np.multiply, lambda a, b, _: a * b),
    "div": (np.divide, lambda a, b, _: divide(a, b)),
    "max": (np.maximum, lambda a, b, _: max(a, b)),
    "min": (np.minimum, lambda a, b, _: min(a, b)),
    "pow": (np.power, power),
}

TOLERANCES = {
    "max": {"float32": {"ulp": 0}, "float16": {"ulp": 0}},  # of two zeros either
    "min": {"float32": {"ulp": 0}, "float16": {"ulp": 0}},
    "pow": {"float32": {"ulp": 2}, "float16": {"ulp": 1}},
}


def oracle(operator: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    of_floats, of_integers = OPERATORS[operator]

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        data_type = a.dtype.name
        if a.dtype.kind == "f":
            with np.errstate(all="ignore"):
                return rounded(of_floats(a.astype(np.float64), b.astype(np.float64)), data_type)
        modulus = 2 ** np.iinfo(data_type).bits
        a, b = np.broadcast_arrays(a, b)
        numbers = [
            wrap(of_integers(int(x), int(y), modulus), data_type) for x, y in zip(a.ravel(), b.ravel(), strict=True)
        ]
        return np.array(numbers, data_type).reshape(a.shape)

    return compute


def main() -> None:
    """Write the files of the category."""
    for operator in OPERATORS:
        cases = binary_cases(operator, oracle(operator), ALL_TYPES, tolerances=TOLERANCES.get(operator))
        write(__file__, operator, ORACLE, cases)


if __name__ == "__main__":
    main()
