"""Make the cases of the matrix products.

torch multiplies in float64. Most random values are small multiples of 1/64, so that every sum of products is exact in
float32 too, whatever the order; the other cases have positive values, so that nothing cancels out.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from spec_tests.operators.oracle import EITHER_ZERO, FLOAT_TYPES, Cases, case, generator, rounded, spread, unique, write

ORACLE = f"torch {torch.__version__} in float64, rounded once by numpy"
INEXACT = {"float32": {"ulp": 4}, "float16": {"ulp": 1}}


def wide(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.float64))


# --- gemm --------------------------------------------------------------------------------------------------------


def gemm_case(
    name: str,
    arrays: dict[str, np.ndarray],
    options: dict[str, Any],
    tolerance: dict[str, Any] = EITHER_ZERO,
    constants: str = "",
) -> dict[str, Any]:
    """One case; the factors are rounded to the data type first."""
    data_type = arrays["a"].dtype.name
    a, b = wide(arrays["a"]), wide(arrays["b"])
    a, b = a.T if options.get("a_transpose") else a, b.T if options.get("b_transpose") else b
    alpha, beta = (float(rounded(np.float64(options.get(factor, 1)), data_type)) for factor in ("alpha", "beta"))
    c = wide(arrays["c"]) if "c" in arrays else torch.zeros((), dtype=torch.float64)
    expected = rounded((alpha * torch.matmul(a, b) + beta * c).numpy(), data_type)
    return case(name, arrays, expected, options=options, tolerance=tolerance, constants=constants)


def gemm_arrays(
    data_type: str, sizes: Sequence[int], of_c: Sequence[int] | None, options: dict[str, Any], low: float = -4
) -> dict[str, np.ndarray]:
    """Random operands of a product of [rows, inner] and [inner, columns]."""
    rows, inner, columns = sizes
    rng = generator("gemm", data_type, sizes, of_c, sorted(options))
    shapes: dict[str, Sequence[int]] = {"a": (rows, inner), "b": (inner, columns)}
    shapes = {key: shape[::-1] if options.get(f"{key}_transpose") else shape for key, shape in shapes.items()}
    shapes |= {} if of_c is None else {"c": of_c}
    return {key: spread(rng, data_type, shape, low, 4) for key, shape in shapes.items()}


def gemm_cases() -> Cases:
    """The cases of gemm."""
    cases = [made for data_type in FLOAT_TYPES for made in gemm_cases_of(data_type)]
    types = itertools.cycle(FLOAT_TYPES)
    sizes = [(1, 1, 1), (1, 5, 1), (5, 1, 1), (1, 1, 5), (5, 1, 5), (1, 5, 3), (3, 5, 1), (7, 3, 5), (2, 40, 2)]
    for size, a, b in itertools.product(sizes, (False, True), (False, True)):
        options = {"a_transpose": a, "b_transpose": b}
        arrays = gemm_arrays(next(types), size, None, options)
        cases.append(gemm_case(f"{list(size)}, transposed: a {a}, b {b}", arrays, options))
    for constants in ("a", "b", "c", "abc"):
        arrays = gemm_arrays("float32", (2, 3, 2), (2,), {})
        cases.append(gemm_case(f"constant {' and '.join(constants)}", arrays, {}, constants=constants))
    return cases


def gemm_cases_of(data_type: str) -> Iterator[dict[str, Any]]:
    """Every option, every shape of c, and extreme values, in one data type."""
    for a, b in itertools.product((False, True), repeat=2):
        options = {"a_transpose": a, "b_transpose": b}
        arrays = gemm_arrays(data_type, (2, 3, 4), (2, 4), options)
        yield gemm_case(f"{data_type}, transposed: a {a}, b {b}", arrays, options)
    for of_c in [(), (1,), (4,), (1, 1), (1, 4), (3, 1), (3, 4)]:
        yield gemm_case(f"{data_type}, c is {list(of_c)}", gemm_arrays(data_type, (3, 2, 4), of_c, {}), {})
        together = {"alpha": 0.5, "beta": -2, "a_transpose": True}
        arrays = gemm_arrays(data_type, (3, 2, 4), of_c, together)
        yield gemm_case(f"{data_type}, c is {list(of_c)}, all options", arrays, together)
    yield gemm_case(f"{data_type}, no options", gemm_arrays(data_type, (2, 3, 2), None, {}), {})
    arrays = gemm_arrays(data_type, (2, 3, 2), (2,), {})
    for factor in [{"alpha": value} for value in (0, -0.0, 1, -1, 2, 0.25)]:
        yield gemm_case(f"{data_type}, {factor}", arrays, factor)
    for factor in [{"beta": value} for value in (0, -0.0, -1, 4, 0.125)]:
        yield gemm_case(f"{data_type}, {factor}", arrays, factor)
    for factors in [{"alpha": 0.1}, {"beta": 0.3}, {"alpha": 1.7, "beta": 0.9}, {"alpha": 1e-3, "beta": 1e-4}]:
        arrays = gemm_arrays(data_type, (2, 3, 2), (2, 2), factors, 0.25)
        yield gemm_case(f"{data_type}, {factors}", arrays, factors, INEXACT[data_type])
    yield gemm_case(f"{data_type}, beta without c", gemm_arrays(data_type, (2, 2, 2), None, {}), {"beta": 3.0})
    chosen = np.array([[1, 2], [np.inf, 1], [-np.inf, 1], [np.nan, 1]], data_type)
    factor_b = np.array([[1, -1, 0], [2, 0.5, 1]], data_type)
    for c in ([[0.0, 1, -1]], [[np.inf, -np.inf, np.nan]]):
        arrays = {"a": chosen, "b": factor_b, "c": np.array(c, data_type)}
        yield gemm_case(f"{data_type}, NaN and infinities, c is {c}", arrays, {})
    big = {"float32": 1e20, "float16": 300}[data_type]
    arrays = {"a": np.array([[big, 1], [-big, 1]], data_type), "b": np.array([[big], [2]], data_type)}
    yield gemm_case(f"{data_type}, beyond the range", arrays, {})


# --- matmul ------------------------------------------------------------------------------------------------------


def matmul_case(name: str, a: np.ndarray, b: np.ndarray, constants: str = "") -> dict[str, Any]:
    expected = rounded(torch.matmul(wide(a), wide(b)).numpy(), a.dtype.name)
    return case(name, {"a": a, "b": b}, expected, tolerance=EITHER_ZERO, constants=constants)


BATCHES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((2,), ()),
    ((), (3,)),
    ((2,), (2,)),
    ((1,), (3,)),
    ((3,), (1,)),
    ((2, 2), ()),
    ((), (2, 2)),
    ((2, 1), (3,)),
    ((3,), (2, 1)),
    ((2, 1), (1, 2)),
    ((2, 2), (2, 2)),
    ((1, 1), (2,)),
    ((2, 1, 2), (2, 1)),
    ((2,), (1, 2, 1)),
    ((1, 2, 1), (2, 1, 2)),
    ((2, 1, 2), (2, 1, 2)),
    ((1, 1, 1), ()),
    ((), (2, 1, 2)),
]


def matmul_cases() -> Cases:
    cases = []
    sizes = itertools.cycle([(2, 3, 2), (1, 2, 3), (3, 1, 2), (2, 2, 1), (1, 3, 1)])

    def random(data_type: str, a: Sequence[int], b: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        rng = generator("matmul", data_type, a, b)
        return spread(rng, data_type, a), spread(rng, data_type, b)

    for data_type in FLOAT_TYPES:
        for of_a, of_b in BATCHES:
            rows, inner, columns = next(sizes)
            a, b = (*of_a, rows, inner), (*of_b, inner, columns)
            cases.append(matmul_case(f"{data_type}, {list(a)} by {list(b)}", *random(data_type, a, b)))
        for shape in [
            (1, 1, 1),
            (1, 7, 1),
            (7, 1, 1),
            (1, 1, 7),
            (5, 1, 5),
            (1, 5, 3),
            (3, 5, 1),
            (2, 40, 2),
            (5, 6, 7),
        ]:
            a, b = shape[:2], shape[1:]
            cases.append(matmul_case(f"{data_type}, {list(a)} by {list(b)}", *random(data_type, a, b)))
        a = np.array([[1, 2], [np.inf, 1], [-np.inf, 1], [np.nan, 1]], data_type)
        b = np.array([[1, -1, 0], [2, 0.5, 1]], data_type)
        cases.append(matmul_case(f"{data_type}, NaN and infinities in a", a, b))
        cases.append(matmul_case(f"{data_type}, NaN and infinities in b", b.T.copy(), a.T.copy()))
        big = {"float32": 1e20, "float16": 300}[data_type]
        a, b = np.array([[big, 1], [-big, 1]], data_type), np.array([[big], [2]], data_type)
        cases.append(matmul_case(f"{data_type}, beyond the range", a, b))
    a, b = np.array([[2048, 1, 1, -2048]], "float16"), np.ones((4, 1), "float16")
    cases.append(matmul_case("float16, rounded once", a, b))
    a, b = np.array([[60000, 60000, -60000]], "float16"), np.ones((3, 1), "float16")
    cases.append(matmul_case("float16, within the range at last", a, b))
    for constants in ("a", "b", "ab"):
        arrays = random("float32", (2, 2, 3), (3, 2))
        cases.append(matmul_case(f"constant {' and '.join(constants)}", *arrays, constants))
    return unique(cases)


def main() -> None:
    """Write the files of the category."""
    write(__file__, "gemm", ORACLE, gemm_cases())
    write(__file__, "matmul", ORACLE, matmul_cases())


if __name__ == "__main__":
    main()
