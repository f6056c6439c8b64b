"""The cases that all element-wise operators share: every data type, rank, broadcast and extreme value."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spec_tests.operators.cases import EXACT
from spec_tests.operators.oracle import (
    BROADCASTS,
    SHAPES,
    Cases,
    Constant,
    case,
    extreme_pairs,
    extremes,
    generator,
    spread,
)

Tolerances = Mapping[str, Mapping[str, object]]
"""By data type; "exact" where a data type is missing."""

Values = Callable[[np.random.Generator, str, Sequence[int]], np.ndarray]


def binary_cases(
    operator: str,
    compute: Callable[[np.ndarray, np.ndarray], np.ndarray],
    data_types: Sequence[str],
    *,
    tolerances: Tolerances | None = None,
    values: tuple[Values, Values] = (spread, spread),
) -> Cases:
    """Cases of an operator of ``a`` and ``b``.

    Args:
        operator: the method's name.
        compute: the oracle, on arrays of one data type.
        data_types: all that are allowed.
        tolerances: by data type.
        values: what fills a and b.
    """
    cases = []

    def add(name: str, data_type: str, a: np.ndarray, b: np.ndarray, constants: str = "") -> None:
        inputs, said = {"a": a, "b": b}, f"{data_type}, {name}"
        tolerance = (tolerances or {}).get(data_type, EXACT)
        cases.append(case(said, inputs, compute(a, b), tolerance=tolerance, constants=constants))

    def random(data_type: str, a: Sequence[int], b: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        rng = generator(operator, data_type, a, b)
        return values[0](rng, data_type, a), values[1](rng, data_type, b)

    for data_type in data_types:
        for shape in SHAPES:
            add(f"rank {len(shape)}", data_type, *random(data_type, shape, shape))
        add("every extreme value with every other", data_type, *extreme_pairs(data_type))
    for index, (a, b) in enumerate(BROADCASTS):
        data_type = data_types[index % len(data_types)]
        add(f"{list(a)} with {list(b)}", data_type, *random(data_type, a, b))
    for constants in ("a", "b", "ab"):
        add(f"constant {' and '.join(constants)}", data_types[0], *random(data_types[0], (2, 3), (3,)), constants)
    return cases


def unary_cases(
    operator: str,
    compute: Callable[[np.ndarray], np.ndarray],
    data_types: Sequence[str],
    *,
    tolerances: Tolerances | None = None,
    values: Values = spread,
    parameter: str = "input",
    special: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> Cases:
    """Cases of an operator of one operand.

    Args:
        operator: the method's name.
        compute: the oracle.
        data_types: all that are allowed.
        tolerances: by data type.
        values: what fills the operand.
        parameter: the operand's name.
        special: arrays of the operator's own, by what they show and data type.
    """
    cases = []

    def add(name: str, data_type: str, array: np.ndarray, *, constant: bool = False) -> None:
        operand = Constant(array) if constant else array
        tolerance = (tolerances or {}).get(data_type, EXACT)
        cases.append(case(f"{data_type}, {name}", {parameter: operand}, compute(array), tolerance=tolerance))

    for data_type in data_types:
        for shape in SHAPES:
            add(f"rank {len(shape)}", data_type, values(generator(operator, data_type, shape), data_type, shape))
        add("extreme values", data_type, extremes(data_type))
    for name, arrays in (special or {}).items():
        for data_type, array in arrays.items():
            add(name, data_type, array)
    add("a constant", data_types[0], values(generator(operator, "constant"), data_types[0], (2, 3)), constant=True)
    return cases
