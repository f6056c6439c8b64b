"""Make the cases of the reductions, arg-reductions and the cumulative sum.

Floats are reduced by numpy and scipy in float64 and rounded once, integers by Python's own and wrapped around. Random
values are small multiples of 1/64, so that their sums, and those of their squares, are exact in float32 too: what
only adds has no error at all, whatever the order.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import scipy
from scipy import special

from spec_tests.operators.oracle import (
    ALL_TYPES,
    EITHER_ZERO,
    FLOAT_TYPES,
    INTEGER_TYPES,
    SHAPES,
    Cases,
    Constant,
    case,
    extremes,
    generator,
    rounded,
    spread,
    unique,
    wrap,
    write,
)

ORACLE = f"floats: numpy {np.__version__} in float64, rounded once; integers: Python's integers, wrapped around"
ORACLE_OF_LOG_SUM_EXP = f"scipy {scipy.__version__}'s logsumexp in float64, rounded once"
ORACLE_OF_ARG = "Python, element by element"
NUMBERS = ("float32", "float16", "int32", "uint32", "int64", "uint64")

Axes = Sequence[int] | None


# --- reductions --------------------------------------------------------------------------------------------------


def log_sum_exp(values: np.ndarray) -> float:
    return float(special.logsumexp(values))


OF_FLOATS: dict[str, Callable[[np.ndarray], float]] = {
    "reduce_l1": lambda x: np.sum(np.abs(x)),
    "reduce_l2": lambda x: np.sqrt(np.sum(x * x)),
    "reduce_log_sum": lambda x: np.log(np.sum(x)),
    "reduce_log_sum_exp": log_sum_exp,
    "reduce_max": np.max,
    "reduce_mean": np.mean,
    "reduce_min": np.min,
    "reduce_product": np.prod,
    "reduce_sum": np.sum,
    "reduce_sum_square": lambda x: np.sum(x * x),
}
OF_INTEGERS: dict[str, Callable[[Iterable[int]], int]] = {
    "reduce_l1": lambda x: sum(abs(n) for n in x),
    "reduce_max": max,
    "reduce_min": min,
    "reduce_product": math.prod,
    "reduce_sum": sum,
    "reduce_sum_square": lambda x: sum(n * n for n in x),
}
INEXACT = {"float32": {"ulp": 2}, "float16": {"ulp": 1}}
"""For one division, root or logarithm after an exact sum."""

TOLERANCES: dict[str, Mapping[str, Mapping[str, Any]]] = {
    "reduce_l2": INEXACT,
    "reduce_log_sum": INEXACT,
    "reduce_log_sum_exp": {"float32": {"ulp": 4}, "float16": {"ulp": 1}},
    "reduce_mean": INEXACT,
    "reduce_product": {"float32": {"ulp": 4}, "float16": {"ulp": 1}},
}


def reduced(operator: str, array: np.ndarray, axes: Axes, *, keep: bool) -> np.ndarray:
    """The oracle: reduce the elements of each output element by themselves."""
    gone = set(range(array.ndim) if axes is None else axes)
    kept = [axis for axis in range(array.ndim) if axis not in gone]
    order = [*kept, *sorted(gone)]
    rows = array.transpose(order).reshape(math.prod(array.shape[axis] for axis in kept), -1)
    shape = [1 if axis in gone else size for axis, size in enumerate(array.shape)]
    shape = shape if keep else [array.shape[axis] for axis in kept]
    data_type = array.dtype.name
    if data_type in INTEGER_TYPES:
        numbers = [wrap(OF_INTEGERS[operator](row), data_type) for row in rows.tolist()]
        return np.array(numbers, data_type).reshape(shape)
    with np.errstate(all="ignore"):
        values = [OF_FLOATS[operator](row) for row in rows.astype(np.float64)]
        return rounded(np.array(values, np.float64), data_type).reshape(shape)


def values_for(operator: str, rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Random values: any for sums, positive sums for the logarithm, few and small ones for products."""
    if operator == "reduce_log_sum":
        return spread(rng, data_type, shape, 0.5, 4)
    if operator == "reduce_log_sum_exp":
        return spread(rng, data_type, shape, 1, 4)
    if operator == "reduce_product" and data_type in FLOAT_TYPES:
        return np.asarray(rng.choice([-2, -1.5, -1, -0.75, 0.5, 1, 1.25, 2], shape)).astype(data_type)
    if operator in {"reduce_max", "reduce_min"} and data_type in INTEGER_TYPES:
        return np.asarray(rng.choice(extremes(data_type), shape))
    return spread(rng, data_type, shape)


ROWS: dict[str, list[list[float]]] = {
    "reduce_l1": [[-1e38, 1e38], [-3e38, 3e38]],
    "reduce_l2": [[3e19, 4e19], [-2e38, 1e38], [3e-30, 4e-30], [300, -400]],
    "reduce_log_sum": [[-1, -2], [1, -1], [1, 0], [0, 0], [65504, 65504], [-1, 3]],
    "reduce_log_sum_exp": [[1000, 1000], [-1000, -1000], [100, -100], [60000, -60000], [3e38, 3e38], [-3e38, -1]],
    "reduce_mean": [[3e38, 3e38], [-3e38, 3e38], [65504, 65504], [1, 2]],
    "reduce_product": [[1e30, 1e30], [-1e30, 1e30], [3, -7], [300, 300], [1e-30, 1e-30], [0, -3]],
    "reduce_sum": [[3e38, 3e38], [-3e38, 3e38], [65504, 65504], [-65504, -65504], [2048, 1]],
    "reduce_sum_square": [[1e20, 1], [300, 1], [-2, 3]],
}
"""Pairs of chosen values, which not every data type has."""

FEW = [0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan]


def pairs(operator: str, data_type: str) -> np.ndarray:
    """Pairs to reduce: zeros, infinities and NaN with one another; then those chosen for the operator."""
    chosen = [*itertools.product(FEW, FEW), *ROWS.get(operator, [])]
    with np.errstate(all="ignore"):
        return np.array(chosen, np.float64).astype(data_type)


def whole_numbers(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Small numbers, of which there can be many in a file."""
    return np.asarray(rng.integers(1, 9, shape, endpoint=True)).astype(data_type)


def integer_pairs(data_type: str) -> np.ndarray:
    return np.array(list(itertools.product(extremes(data_type), repeat=2)), data_type)


@attrs.define
class Reduction:
    """Collects the cases of a reduction."""

    operator: str
    cases: Cases = attrs.Factory(list)

    def add(self, name: str, array: np.ndarray, axes: Axes, *, constant: bool = False, **options: bool) -> None:
        """Compute and keep a case."""
        data_type = array.dtype.name
        tolerance = TOLERANCES.get(self.operator, {}).get(data_type, EITHER_ZERO)
        expected = reduced(self.operator, array, axes, keep=options.get("keep_dimensions", False))
        given = options if axes is None else {"axes": axes, **options}
        operand = Constant(array) if constant else array
        self.cases.append(case(name, {"input": operand}, expected, options=given, tolerance=tolerance))

    def random(self, data_type: str, shape: Sequence[int], axes: Axes, **options: bool) -> None:
        """A case of random values."""
        array = values_for(self.operator, generator(self.operator, data_type, shape, axes), data_type, shape)
        said = "all axes" if axes is None else f"axes {list(axes)}"
        kept = ", kept" if options.get("keep_dimensions") else ""
        self.add(f"{data_type}, {list(shape)}, {said}{kept}", array, axes, **options)


def reduction_cases(operator: str, data_types: Sequence[str]) -> Cases:
    collected = Reduction(operator)
    types = itertools.cycle(data_types)
    for shape in SHAPES:
        rank = len(shape)
        choices: list[Axes] = [None, [], *[[axis] for axis in range(rank)]]
        choices += [list(axes) for axes in itertools.combinations(range(rank), 2)]
        choices += [[*range(rank)][::-1]] if rank > 2 else []
        for index, axes in enumerate(choices):
            data_type = next(types)
            collected.random(data_type, shape, axes)
            if index % 2 == 0:
                collected.random(data_type, shape, axes, keep_dimensions=True)
    for data_type in data_types:
        collected.random(data_type, (3, 4), None)
        collected.random(data_type, (2, 3, 4), [1])
        collected.random(data_type, (2, 3), [])
        array = pairs(operator, data_type) if data_type in FLOAT_TYPES else integer_pairs(data_type)
        collected.add(f"{data_type}, chosen pairs", array, [1])
        values = special_values(data_type)
        collected.add(f"{data_type}, extreme values by themselves", values, [])
    if operator == "reduce_l2":
        powers = 2.0 ** np.arange(-125, 128)
        collected.add("float32, pairs of all sizes", np.stack([powers, 0.7 * powers], 1).astype(np.float32), [1])
        many = 1.875 * 2.0 ** np.repeat([[59], [47], [-41], [-85]], 300, axis=1).astype(np.float32)
        collected.add("float32, many large and small ones", many, [1])
    if operator != "reduce_product":
        for shape, axes in [((150,), None), ((2, 70), [1]), ((70, 2), [0]), ((2, 2, 66), [1]), ((3, 20, 3), [0, 2])]:
            data_type = next(types)
            array = whole_numbers(generator(operator, data_type, shape), data_type, shape)
            collected.add(f"{data_type}, many, {list(shape)}, axes {axes}", array, axes)
    array = values_for(operator, generator(operator, "constant"), "float32", (2, 3))
    collected.add("a constant", array, [0], constant=True)
    return unique(collected.cases)


def special_values(data_type: str) -> np.ndarray:
    """Extreme values; floats without those that a device may flush to zero."""
    values = extremes(data_type)
    if data_type in INTEGER_TYPES:
        return values
    limits = np.finfo(data_type)
    return values[~((np.abs(values) < limits.smallest_normal) & (values != 0))]


# --- arg-reductions ----------------------------------------------------------------------------------------------


def first_of(values: Sequence[float], choose: Callable[[Sequence[float]], float]) -> int:
    """Return the index of the first NaN, or else of the first element that ``choose`` chooses."""
    for index, value in enumerate(values):
        if value != value:  # noqa: PLR0124 - NaN
            return index
    return list(values).index(choose(values))


def arg_cases(operator: str, choose: Callable[[Sequence[float]], float]) -> Cases:
    cases: Cases = []

    def add(name: str, array: np.ndarray, axis: int, *, constant: bool = False, **options: Any) -> None:
        rows = np.moveaxis(array, axis, -1)
        found = [first_of(row, choose) for row in rows.reshape(-1, array.shape[axis]).tolist()]
        indices = np.array(found, options.get("output_data_type", "int32")).reshape(rows.shape[:-1])
        if options.get("keep_dimensions"):
            indices = np.expand_dims(indices, axis)
        operand = Constant(array) if constant else array
        cases.append(case(name, {"input": operand}, indices, options={"axis": axis, **options}))

    types = itertools.cycle(ALL_TYPES)
    for shape in [(5,), (2, 3), (2, 1, 3), (2, 3, 1, 2), (1, 2, 2, 1, 3)]:
        for axis in range(len(shape)):
            for options in ({}, {"keep_dimensions": True}, {"output_data_type": "int64"}):
                data_type = next(types)
                array = spread(generator(operator, data_type, shape, axis), data_type, shape, -2, 2)
                said = "".join(f", {key} {value}" for key, value in options.items())
                add(f"{data_type}, {list(shape)}, axis {axis}{said}", array, axis, **options)
    for data_type in ALL_TYPES:
        array = spread(generator(operator, data_type, "many"), data_type, (4, 4), -99, 99)
        add(f"{data_type}, down", array, 0)
        add(f"{data_type}, across", array, 1)
        values = extremes(data_type)
        add(f"{data_type}, extreme values", values[~np.isnan(values)], 0)
        add(f"{data_type}, all are equal", np.full((2, 3), 7, data_type), 1)
        add(f"{data_type}, the last ones", np.array([[1, 2, 3, 3], [3, 2, 1, 1]], data_type), 1)
        pair = np.sort(np.array([values[~np.isnan(values)][-1], 1], data_type))
        add(f"{data_type}, two values", np.array([pair, pair[::-1]]), 1)
    for data_type in ("int64", "uint64"):
        array = np.array([[2**53, 2**53 + 1, 2**53], [2**53 + 1, 2**53, 2**53 + 1]], data_type)
        add(f"{data_type}, more digits than a float has", array, 1)
    for data_type in FLOAT_TYPES:
        chosen = [
            [1, math.nan, 3, math.nan],
            [math.inf, -math.inf, math.nan, 0],
            [math.inf, 1, -math.inf, math.inf],
            [-0.0, 0.0, -0.0, 0.0],
            [0.0, -0.0, 0.0, -0.0],
            [math.nan] * 4,
            [-math.inf] * 4,
        ]
        array = np.array(chosen).astype(data_type)
        add(f"{data_type}, NaN, infinities and zeros", array, 1)
        add(f"{data_type}, NaN, infinities and zeros, down", np.ascontiguousarray(array.T), 0)
    for data_type in ("float32", "uint8"):
        array = spread(generator(operator, data_type, "side by side"), data_type, (3, 66), 0, 3)
        add(f"{data_type}, many side by side", array, 0)
        add(f"{data_type}, a long one", spread(generator(operator, "long"), data_type, (1, 300), 0, 99), 1)
    array = spread(generator(operator, "NaN side by side"), "float32", (3, 66), 0, 3)
    array[1, 5] = array[2, 7] = array[0, 7] = np.nan
    add("float32, many side by side with NaN", array, 0)
    add("a constant", array[:, :4].copy(), 0, constant=True)
    return cases


# --- cumulative sum ----------------------------------------------------------------------------------------------


def running(array: np.ndarray, axis: int, *, exclusive: bool = False, reversed: bool = False) -> np.ndarray:
    """The oracle of the cumulative sum: each element by itself."""
    rows = np.moveaxis(array, axis, -1)
    size, data_type = array.shape[axis], array.dtype.name
    sums = np.empty(rows.shape, array.dtype)
    for index in np.ndindex(*rows.shape[:-1]):
        row = rows[index]
        for place in range(size):
            begin, end = (place, size) if reversed else (0, place + 1)
            begin, end = (begin + (exclusive and reversed), end - (exclusive and not reversed))
            summed = row[begin:end]
            with np.errstate(all="ignore"):
                if data_type in INTEGER_TYPES:
                    sums[(*index, place)] = wrap(sum(summed.tolist()), data_type)
                else:
                    sums[(*index, place)] = rounded(np.sum(summed.astype(np.float64)), data_type)
    return np.ascontiguousarray(np.moveaxis(sums, -1, axis))


EVERY_WAY = [{}, {"exclusive": True}, {"reversed": True}, {"exclusive": True, "reversed": True}]


def cumulative_case(
    name: str, array: np.ndarray, axis: int, *, constant: bool = False, **options: bool
) -> dict[str, Any]:
    """One case."""
    said = "".join(f", {key}" for key, value in options.items() if value)
    inputs = {"input": Constant(array) if constant else array}
    expected = running(array, axis, **options)
    return case(f"{name}{said}", inputs, expected, options={"axis": axis, **options}, tolerance=EITHER_ZERO)


def cumulative_cases() -> Cases:
    cases: Cases = []
    types, ways = itertools.cycle(NUMBERS), itertools.cycle([*EVERY_WAY, EVERY_WAY[3]])
    for shape in [(5,), (2, 3), (2, 1, 3), (2, 3, 1, 2), (1, 2, 2, 1, 3)]:
        for axis in [axis for axis in range(len(shape)) for _ in "ab"]:
            data_type = next(types)
            array = spread(generator("cumulative_sum", data_type, shape, axis), data_type, shape)
            cases.append(cumulative_case(f"{data_type}, {list(shape)}, axis {axis}", array, axis, **next(ways)))
    for data_type, way in itertools.product(NUMBERS, EVERY_WAY):
        array = spread(generator("cumulative_sum", data_type), data_type, (3, 4))
        cases.append(cumulative_case(f"{data_type}, down", array, 0, **way))
        cases.append(cumulative_case(f"{data_type}, across", array, 1, **way))
        if data_type in INTEGER_TYPES:
            array = np.repeat(extremes(data_type), 2)
            cases.append(cumulative_case(f"{data_type}, extreme values", array, 0, **way))
        else:
            chosen = [[1, np.inf, 2, -np.inf, 3], [1, np.nan, 2, 3, 4], [-np.inf, 1, 2, 3, np.nan]]
            array = np.array(chosen, data_type)
            cases.append(cumulative_case(f"{data_type}, NaN and infinities", array, 1, **way))
    for data_type, big in {"float32": 3e38, "float16": 60000}.items():
        array = np.array([[big, big, 1], [-big, -big, -1]], data_type)
        cases.append(cumulative_case(f"{data_type}, beyond the range", array, 1))
    for data_type in ("float32", "float16", "int32"):
        array = spread(generator("cumulative_sum", data_type, "long"), data_type, (66,))
        cases.append(cumulative_case(f"{data_type}, a long one", array, 0))
        array = spread(generator("cumulative_sum", data_type, "side by side"), data_type, (3, 66))
        cases.append(cumulative_case(f"{data_type}, many side by side", array, 0, reversed=True))
        cases.append(cumulative_case(f"{data_type}, many side by side", array, 0, exclusive=True))
    cases.append(cumulative_case("a constant", array[:, :3].copy(), 1, constant=True))
    return unique(cases)


def main() -> None:
    """Write the files of the category."""
    for operator in OF_FLOATS:
        data_types = FLOAT_TYPES
        if operator in OF_INTEGERS:
            data_types = ALL_TYPES if operator in {"reduce_max", "reduce_min"} else NUMBERS
        oracle = ORACLE_OF_LOG_SUM_EXP if operator == "reduce_log_sum_exp" else ORACLE
        write(__file__, operator, oracle, reduction_cases(operator, data_types))
    write(__file__, "arg_min", ORACLE_OF_ARG, arg_cases("arg_min", min))
    write(__file__, "arg_max", ORACLE_OF_ARG, arg_cases("arg_max", max))
    write(__file__, "cumulative_sum", ORACLE, cumulative_cases())


if __name__ == "__main__":
    main()
