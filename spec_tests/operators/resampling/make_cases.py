"""Make the cases of resample2d; Python's fractions give the exact position of each new element."""

import itertools
import platform
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from spec_tests.operators.oracle import (
    Cases,
    Constant,
    Options,
    case,
    extremes,
    generator,
    rounded,
    spread,
    unique,
    write,
)

ORACLE = f"Python {platform.python_version()}'s fractions, rounded once by numpy {np.__version__}"
DATA_TYPES = ("float32", "float16", "uint8", "int8")
BYTES = ("uint8", "int8")
LINEAR = {"float32": {"ulp": 4}, "float16": {"ulp": 1}}


def place(index: int, size: int, new_size: int) -> Fraction:
    """Return the position of a new element's center among the centers of the old ones."""
    middle = Fraction(2 * index + 1, 2) * Fraction(size, new_size) - Fraction(1, 2)
    return min(max(middle, Fraction(0)), Fraction(size - 1))


def neighbors(where: Fraction) -> list[tuple[int, Fraction]]:
    """Return the old elements around a position, or the one at it, with their weights."""
    below = floor(where)
    weight = where - below
    return [(below, 1 - weight), (below + 1, weight)] if weight else [(below, Fraction(1))]


def new_shape(shape: Sequence[int], options: Options) -> list[int]:
    """The output's shape."""
    sizes, axes = list(shape), options.get("axes", (2, 3))
    for index, axis in enumerate(axes):
        scale = Fraction(float(np.float32(options.get("scales", (1, 1))[index])))
        sizes[axis] = options["sizes"][index] if "sizes" in options else floor(shape[axis] * scale)
    return sizes


def nearest(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The nearest elements, the lower of two equally near ones."""
    places = [
        [ceil(place(index, size, new_size) - Fraction(1, 2)) for index in range(new_size)]
        for size, new_size in zip(array.shape, shape, strict=True)
    ]
    return np.ascontiguousarray(array[np.ix_(*places)])


def interpolated(array: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, bool]:
    """The linear interpolation; and whether, for integers, something lies halfway between two of them."""
    output, halfway = np.empty(shape), False
    for index in np.ndindex(*shape):
        rows = [
            neighbors(place(at, size, new_size)) for at, size, new_size in zip(index, array.shape, shape, strict=True)
        ]
        total: Any = 0
        for corner in itertools.product(*rows):
            value = array[tuple(at for at, _ in corner)].item()
            weight = Fraction(1)
            for _, factor in corner:
                weight *= factor
            finite = array.dtype.kind != "f" or np.isfinite(value)
            total = total + (weight * Fraction(value) if finite else float(weight) * value)
        if array.dtype.kind != "f":
            halfway |= (total * 2).denominator == 1 and total.denominator == 2
            total = round(total)
        output[index] = total
    return (rounded(output, array.dtype.name), halfway)


class Collector:
    """Collects the cases, each of them in both modes."""

    def __init__(self) -> None:
        self.cases: Cases = []

    def add(
        self, name: str, array: np.ndarray, options: Options, modes: Sequence[str] = ("", "nearest-neighbor", "linear")
    ) -> None:
        """Compute and keep a case for each mode; the first one is the default."""
        shape = new_shape(array.shape, options)
        data_type = array.dtype.name
        for mode in modes:
            tolerance: Any = {"exact": True}
            if mode == "linear":
                expected, halfway = interpolated(array, shape)
                tolerance = LINEAR.get(data_type, {"ulp": 1} if halfway else {"exact": True})
            else:
                expected = nearest(array, shape)
            given = {**options, "mode": mode} if mode else options
            said = f"{data_type}, {name}" + (f", {mode}" if mode else "")
            self.cases.append(case(said, {"input": array}, expected, options=given, tolerance=tolerance))

    def random(self, name: str, data_type: str, shape: Sequence[int], options: Options, *modes: str) -> None:
        """Cases of random values: floats of one sign, so that nothing cancels out."""
        rng = generator("resample2d", name, data_type)
        array = spread(rng, data_type, shape, *((-128, 255) if data_type in BYTES else (0.5, 4)))
        self.add(name, array, options, modes or ("nearest-neighbor", "linear"))


def resample_cases() -> Cases:
    collected = Collector()
    add = collected.random
    types = itertools.cycle([*DATA_TYPES, "float32"])
    sides = [(1, 3), (2, 4), (2, 5), (3, 2), (3, 6), (3, 7), (4, 2), (5, 3), (6, 2), (5, 1), (4, 4), (7, 4)]
    for old, new in sides:
        add(f"{old} columns to {new}", next(types), (1, 1, 1, old), {"sizes": [1, new]})
        add(f"{old} rows to {new}", next(types), (1, 1, old, 2), {"sizes": [new, 2]})
    for index, axes in enumerate(itertools.permutations(range(4), 2)):
        add(f"axes {list(axes)}", next(types), (2, 2, 2, 3), {"axes": axes, "sizes": [3, 4]})
        scales = [[2, 1.5], [0.5, 2], [1, 3]][index % 3]
        add(f"axes {list(axes)} by {scales}", next(types), (2, 3, 2, 2), {"axes": axes, "scales": scales})
    for data_type in DATA_TYPES:
        add("no options", data_type, (1, 2, 2, 2), {}, "")
        add("no sizes", data_type, (1, 2, 2, 2), {}, "nearest-neighbor", "linear")
        add("two by two to four by four", data_type, (1, 1, 2, 2), {"scales": [2, 2]}, "", "linear")
        add("three by two to five by seven", data_type, (1, 1, 3, 2), {"sizes": [5, 7]}, "", "linear")
        add("four by five to three by two", data_type, (1, 1, 4, 5), {"sizes": [3, 2]}, "", "linear")
        add("four by four to two by two", data_type, (1, 2, 4, 4), {"scales": [0.5, 0.5]}, "", "linear")
        add("two images, the height alone", data_type, (2, 2, 2, 2), {"scales": [3, 1]}, "", "linear")
        add("channels last", data_type, (1, 2, 3, 2), {"axes": [1, 2], "scales": [2, 2]}, "", "linear")
        add("all from one element", data_type, (1, 1, 1, 1), {"sizes": [3, 4]}, "", "linear")
        add("all to one element", data_type, (1, 1, 3, 4), {"sizes": [1, 1]}, "", "linear")
        values = extremes(data_type)[: len(extremes(data_type)) // 2 * 2]
        collected.add("extreme values", values.reshape(1, 1, 2, -1), {"sizes": [3, values.size]}, ("nearest-neighbor",))
    add("scales rounded down", "float32", (1, 1, 3, 3), {"scales": [1.5, 1.9]})
    add("scales of less than one", "float32", (1, 1, 5, 5), {"scales": [0.45, 0.79]})
    add("a scale that binary32 rounds up to a whole size", "float32", (1, 1, 10, 1), {"scales": [0.1, 1]})
    add("a scale that binary32 rounds down", "float32", (1, 1, 10, 1), {"scales": [0.7, 1]})
    add("sizes in place of scales", "float32", (1, 1, 2, 2), {"scales": [5, 0.25], "sizes": [3, 2]})
    add("sizes as they are", "float16", (1, 1, 2, 3), {"sizes": [2, 3]})
    for data_type in ("float32", "float16"):
        chosen = np.array([[np.inf, 1, 2, np.nan], [3, 4, 5, -np.inf]], data_type).reshape(1, 1, 2, 4)
        collected.add("NaN and infinities", chosen, {"sizes": [3, 4]}, ("nearest-neighbor", "linear"))
        collected.add("NaN and infinities, wider", chosen, {"sizes": [2, 8]}, ("nearest-neighbor", "linear"))
    signed = spread(generator("resample2d", "signs"), "float32", (1, 1, 3, 3))
    expected, _ = interpolated(signed, [1, 1, 4, 5])
    options = {"mode": "linear", "sizes": [4, 5]}
    near = {"absolute": 2e-6}
    collected.cases.append(case("values of both signs", {"input": signed}, expected, options=options, tolerance=near))
    expected = nearest(signed, [1, 1, 6, 6])
    options = {"scales": [2, 2]}
    collected.cases.append(case("a constant", {"input": Constant(signed)}, expected, options=options))
    return unique(collected.cases)


def main() -> None:
    """Write the file of the category."""
    write(__file__, "resample2d", ORACLE, resample_cases())


if __name__ == "__main__":
    main()
