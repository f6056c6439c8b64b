"""Make the cases of the pooling operators: window by window, by their definitions.

Random values are small multiples of 1/64, so that their sums, and those of their squares, are exact in float32 too.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spec_tests.operators.oracle import (
    ALL_TYPES,
    EITHER_ZERO,
    FLOAT_TYPES,
    Cases,
    Constant,
    Options,
    case,
    extremes,
    generator,
    rounded,
    spread,
    write,
)

ORACLE = f"Python, window by window; sums by numpy {np.__version__} in float64, rounded once"
INEXACT = {"float32": {"ulp": 2}, "float16": {"ulp": 1}}
"""For one division or root after an exact sum."""

LAYOUTS = ("nchw", "nhwc")

Combine = Callable[[np.ndarray], Any]


def greatest(elements: np.ndarray) -> Any:
    """NaN if there is one; the lowest value of the data type if there is nothing."""
    if elements.dtype.kind == "f":
        return np.nan if np.isnan(elements).any() else max(elements.ravel().tolist(), default=-math.inf)
    return max(elements.ravel().tolist(), default=int(np.iinfo(elements.dtype).min))


def mean(elements: np.ndarray) -> float:
    return float(np.sum(elements.astype(np.float64))) / max(1, elements.size)


def norm(elements: np.ndarray) -> float:
    return math.sqrt(float(np.sum(elements.astype(np.float64) ** 2)))


OPERATORS: dict[str, Combine] = {"average_pool2d": mean, "l2_pool2d": norm, "max_pool2d": greatest}


def pooled(combine: Combine, images: np.ndarray, options: Options) -> np.ndarray:
    """The oracle, for nchw."""
    sides = images.shape[2:]
    window = options.get("window_dimensions", sides)
    padding = options.get("padding", (0, 0, 0, 0))
    strides, dilations = options.get("strides", (1, 1)), options.get("dilations", (1, 1))
    rounding = math.ceil if options.get("output_shape_rounding") == "ceil" else math.floor
    sizes = options.get("output_sizes") or [
        rounding((sides[i] + padding[2 * i] + padding[2 * i + 1] - (window[i] - 1) * dilations[i] - 1) / strides[i] + 1)
        for i in range(2)
    ]
    output = np.empty((*images.shape[:2], *sizes), images.dtype if images.dtype.kind != "f" else np.float64)
    for index in np.ndindex(output.shape):
        places = [
            [
                place
                for element in range(window[i])
                if 0 <= (place := index[2 + i] * strides[i] - padding[2 * i] + element * dilations[i]) < sides[i]
            ]
            for i in range(2)
        ]
        with np.errstate(all="ignore"):
            output[index] = combine(images[index[:2]][np.ix_(*places)])
    return rounded(output, images.dtype.name)


class Collector:
    """Collects the cases of one operator."""

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.cases: Cases = []

    def add(self, name: str, images: np.ndarray, options: Options | None = None, *, constant: bool = False) -> None:
        """Return a case of images in nchw, laid out as the options say."""
        options = options or {}
        data_type = images.dtype.name
        expected = pooled(OPERATORS[self.operator], images, options)
        if options.get("layout") == "nhwc":
            images, expected = (np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in (images, expected))
        exact = self.operator == "max_pool2d"
        tolerance = EITHER_ZERO if exact else INEXACT[data_type]
        operand = Constant(images) if constant else images
        self.cases.append(
            case(f"{data_type}, {name}", {"input": operand}, expected, options=options, tolerance=tolerance)
        )

    def random(self, name: str, data_type: str, shape: Sequence[int], options: Options | None = None) -> None:
        """A case of random values."""
        low, high = (-4, 4) if self.operator != "max_pool2d" else (-99, 99)
        images = spread(generator(self.operator, name, data_type), data_type, shape, low, high)
        self.add(name, images, options)


SETTINGS: dict[str, dict[str, Any]] = {
    "a window": {"window_dimensions": [2, 3]},
    "a window of one element": {"window_dimensions": [1, 1]},
    "a row": {"window_dimensions": [1, 3]},
    "a column": {"window_dimensions": [4, 1]},
    "strides": {"window_dimensions": [2, 2], "strides": [2, 3]},
    "strides longer than the window": {"window_dimensions": [1, 2], "strides": [3, 3]},
    "dilations": {"window_dimensions": [2, 2], "dilations": [2, 3]},
    "padding": {"window_dimensions": [3, 3], "padding": [1, 1, 1, 1]},
    "padding on one side": {"window_dimensions": [2, 3], "padding": [1, 0, 0, 2]},
    "padding of a whole window": {"window_dimensions": [2, 2], "padding": [2, 0, 0, 3]},
    "padding and the window of the image": {"padding": [1, 2, 0, 1]},
    "strides and the window of the image": {"strides": [2, 2]},
    "padding and dilations": {"window_dimensions": [2, 2], "padding": [1, 2, 2, 1], "dilations": [3, 2]},
    "rounded down": {"window_dimensions": [2, 2], "strides": [2, 3], "output_shape_rounding": "floor"},
    "rounded up": {"window_dimensions": [2, 2], "strides": [2, 3], "output_shape_rounding": "ceil"},
    "rounded up, padding": {
        "window_dimensions": [3, 2],
        "padding": [1, 0, 1, 1],
        "strides": [3, 4],
        "output_shape_rounding": "ceil",
    },
    "rounded up, a last window in the padding alone": {
        "window_dimensions": [1, 1],
        "padding": [0, 2, 0, 1],
        "strides": [3, 3],
        "output_shape_rounding": "ceil",
    },
    "rounded up, a last window beyond the padding": {
        "window_dimensions": [1, 1],
        "strides": [3, 4],
        "output_shape_rounding": "ceil",
    },
    "output sizes rounded down": {"window_dimensions": [2, 2], "strides": [2, 3], "output_sizes": [2, 1]},
    "output sizes rounded up": {"window_dimensions": [2, 2], "strides": [2, 3], "output_sizes": [3, 2]},
    "output sizes against the rounding": {
        "window_dimensions": [2, 2],
        "strides": [2, 3],
        "output_shape_rounding": "ceil",
        "output_sizes": [2, 1],
    },
    "all options": {
        "window_dimensions": [2, 2],
        "padding": [1, 1, 1, 0],
        "strides": [2, 1],
        "dilations": [2, 2],
        "output_shape_rounding": "ceil",
    },
}
"""For images of 5 rows and 4 columns."""


def special_values(operator: str, data_type: str) -> np.ndarray:
    """Extreme values; floats without those that a device may flush to zero, and whose squares are out of range."""
    values = extremes(data_type)
    if data_type not in FLOAT_TYPES:
        return values
    with np.errstate(all="ignore"):
        squares = values.astype(np.float32) ** 2
    smallest = np.finfo(np.float32 if operator == "l2_pool2d" else data_type).smallest_normal
    sizes = squares if operator == "l2_pool2d" else np.abs(values)
    kept = (values == 0) | ~(sizes < smallest)
    return values[kept & (~np.isfinite(values) | np.isfinite(squares))] if operator == "l2_pool2d" else values[kept]


def pool_cases(operator: str, data_types: Sequence[str]) -> Cases:
    collected = Collector(operator)
    types = itertools.cycle(data_types)
    for layout, (name, options) in itertools.product(LAYOUTS, SETTINGS.items()):
        collected.random(f"{name}, {layout}", next(types), (1, 2, 5, 4), {"layout": layout, **options})
    for data_type in data_types:
        collected.random("no options", data_type, (1, 2, 3, 3))
        for layout in LAYOUTS:
            options = {"window_dimensions": [2, 2], "padding": [1, 0, 0, 1], "layout": layout}
            collected.random(f"a padded window, {layout}", data_type, (2, 2, 3, 3), options)
            collected.random(f"channels in fours, {layout}", data_type, (2, 8, 3, 3), options)
        collected.random("an image of one element", data_type, (2, 3, 1, 1))
        image = special_values(operator, data_type).reshape(1, 1, 1, -1)
        collected.add("extreme values by themselves", image, {"window_dimensions": [1, 1]})
        if operator == "max_pool2d":
            collected.add("extreme values", image, {"window_dimensions": [1, 2], "padding": [0, 0, 1, 1]})
    random_cases(collected, types)
    chosen_cases(collected)
    return collected.cases


def random_cases(collected: Collector, types: Iterator[str]) -> None:
    """All options together at random."""
    for index in range(16):
        rng = generator(collected.operator, "random settings", index)
        window = [int(n) for n in rng.integers(1, 4, 2)]
        options = {
            "window_dimensions": window,
            "padding": [int(rng.integers(0, size + 1)) for size in window for _ in "be"],
            "strides": [int(n) for n in rng.integers(1, 4, 2)],
            "dilations": [int(n) for n in rng.integers(1, 3, 2)],
            "layout": LAYOUTS[index % 2],
            "output_shape_rounding": ("floor", "ceil")[index // 2 % 2],
        }
        collected.random(f"random settings {index}", next(types), (1 + index % 3, 2, 5, 6), options)


def chosen_cases(collected: Collector) -> None:
    """NaN, infinities, values beyond the range, and a constant."""
    for data_type in FLOAT_TYPES:
        images = np.arange(1, 26, dtype=data_type).reshape(1, 1, 5, 5)
        images[0, 0, 0, 0], images[0, 0, 0, 4], images[0, 0, 4, 0] = np.inf, np.nan, -np.inf
        for layout in LAYOUTS:
            options = {"window_dimensions": [2, 2], "padding": [1, 0, 0, 1], "layout": layout}
            collected.add(f"NaN and infinities, {layout}", images, options)
        collected.add("infinities of both signs", np.array([np.inf, 1, -np.inf], data_type).reshape(1, 1, 1, 3))
        collected.add("negative values in padding", -images[:, :, 1:3, 1:4], {"padding": [1, 1, 1, 1]})
    large = np.array([60000, 60000, 60000, 60000], "float16").reshape(1, 1, 2, 2)
    if collected.operator == "average_pool2d":
        collected.add("a sum beyond the range", large)
    if collected.operator == "l2_pool2d":
        collected.add("squares beyond the range", np.array([300, -400], "float16").reshape(1, 1, 1, 2))
        collected.add("a norm beyond the range", large)
    if collected.operator == "max_pool2d":
        for data_type in ("int64", "uint64"):
            images = np.array([2**53, 2**53 + 1, 2**53 + 2, 2**53 + 1], data_type).reshape(1, 1, 1, 4)
            collected.add("more digits than a float has", images, {"window_dimensions": [1, 2]})
    collected.add("a constant", large.astype(np.float32) / 1024, {"window_dimensions": [1, 2]}, constant=True)


def main() -> None:
    """Write the files of the category."""
    for operator in OPERATORS:
        data_types = ALL_TYPES if operator == "max_pool2d" else FLOAT_TYPES
        write(__file__, operator, ORACLE, pool_cases(operator, data_types))


if __name__ == "__main__":
    main()
