"""Make the cases of the convolutions.

torch convolves in float64. Random values are small multiples of 1/64 and 1/4, so that every sum of products is exact in
float32 too, whatever the order; float16 is rounded once.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from spec_tests.operators.oracle import (
    EITHER_ZERO,
    FLOAT_TYPES,
    Cases,
    Options,
    case,
    generator,
    rounded,
    spread,
    write,
)

ORACLE = f"torch {torch.__version__} in float64, rounded once by numpy; padding and layouts by hand"
IMAGE_LAYOUTS = ("nchw", "nhwc")
FILTER_LAYOUTS = {"conv2d": ("oihw", "hwio", "ohwi", "ihwo"), "conv_transpose2d": ("iohw", "hwoi", "ohwi")}


def relaid(array: np.ndarray, old: str, new: str) -> np.ndarray:
    """The array with its axes in another order."""
    return np.ascontiguousarray(array.transpose([old.index(axis) for axis in new]))


def wide(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.float64))


def steps(options: Options) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Padding, strides and dilations."""
    padding, strides, dilations = (options.get(key) for key in ("padding", "strides", "dilations"))
    return tuple(padding or (0, 0, 0, 0)), tuple(strides or (1, 1)), tuple(dilations or (1, 1))


def convolved(images: torch.Tensor, filter_: torch.Tensor, bias: torch.Tensor | None, options: Options) -> torch.Tensor:
    """The oracle of conv2d, for nchw and oihw."""
    (top, bottom, left, right), strides, dilations = steps(options)
    images = functional.pad(images, (left, right, top, bottom))
    return functional.conv2d(images, filter_, bias, strides, 0, dilations, options.get("groups", 1))


def spread_out(
    images: torch.Tensor, filter_: torch.Tensor, bias: torch.Tensor | None, options: Options
) -> torch.Tensor:
    """The oracle of conv_transpose2d, for nchw and iohw: all that the windows cover, then what padding leaves of it."""
    (top, bottom, left, right), strides, dilations = steps(options)
    groups = options.get("groups", 1)
    full = functional.conv_transpose2d(images, filter_, None, strides, 0, 0, groups, dilations)
    appended = options.get("output_padding", (0, 0))
    height, width = options.get("output_sizes") or (
        full.shape[2] - top - bottom + appended[0],
        full.shape[3] - left - right + appended[1],
    )
    more = (0, max(0, left + width - full.shape[3]), 0, max(0, top + height - full.shape[2]))
    cut = functional.pad(full, more)[:, :, top : top + height, left : left + width]
    return cut if bias is None else cut + bias[:, None, None]


ORACLES = {"conv2d": convolved, "conv_transpose2d": spread_out}


def made(
    operator: str,
    name: str,
    images: np.ndarray,
    filter_: np.ndarray,
    options: Options,
    *,
    bias: np.ndarray | None = None,
    constants: str = "",
) -> dict[str, Any]:
    """Return a case of images in nchw and a filter in the first layout, laid out as the options say."""
    with_bias = None if bias is None else wide(bias)
    output = ORACLES[operator](wide(images), wide(filter_), with_bias, options)
    layout = options.get("input_layout", "nchw")
    usual = FILTER_LAYOUTS[operator][0]
    arrays = {
        "input": relaid(images, "nchw", layout),
        "filter": relaid(filter_, usual, options.get("filter_layout", usual)),
    }
    if bias is not None:
        arrays["bias"] = bias
    expected = relaid(rounded(output.numpy(), images.dtype.name), "nchw", layout)
    return case(name, arrays, expected, options=options, tolerance=EITHER_ZERO, constants=constants)


class Collector:
    """Collects the cases of one operator."""

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.cases: Cases = []

    def add(
        self,
        name: str,
        data_type: str,
        image: Sequence[int],
        filter_: Sequence[int],
        options: Options | None = None,
        *,
        bias: bool = False,
        constants: str = "",
    ) -> None:
        """A case of random values in images of one shape (nchw) and a filter of another (in the first layout)."""
        options = options or {}
        rng = generator(self.operator, name, data_type)
        outputs = filter_[0] if self.operator == "conv2d" else filter_[1] * options.get("groups", 1)
        arrays = [spread(rng, data_type, image), quarters(rng, data_type, filter_), spread(rng, data_type, (outputs,))]
        full = f"{data_type}, {name}"
        case_ = made(self.operator, full, *arrays[:2], options, bias=arrays[2] if bias else None, constants=constants)
        self.cases.append(case_)


SIDES = {"conv2d": (5, 4), "conv_transpose2d": (3, 2)}
"""The height and width of images; a transposed convolution makes much of little."""

SETTINGS: dict[str, dict[str, Any]] = {
    "padding": {"padding": [1, 1, 1, 1]},
    "padding on one side": {"padding": [1, 0, 0, 2]},
    "strides": {"strides": [2, 3]},
    "dilations": {"dilations": [2, 1]},
    "padding, strides and dilations": {"padding": [1, 2, 2, 1], "strides": [2, 1], "dilations": [1, 2]},
}
TRANSPOSED_SETTINGS: dict[str, dict[str, Any]] = {
    "output padding": {"strides": [3, 2], "output_padding": [2, 1]},
    "output padding of the height": {"strides": [2, 2], "output_padding": [1, 0]},
    "output padding and padding": {"strides": [2, 2], "padding": [1, 1, 0, 1], "output_padding": [1, 1]},
    "the least output sizes": {"strides": [2, 3], "output_sizes": [5, 8]},
    "the greatest output sizes": {"strides": [2, 3], "output_sizes": [6, 10]},
    "output sizes and padding": {"strides": [2, 2], "padding": [1, 1, 1, 0], "output_sizes": [4, 5]},
    "output sizes in place of output padding": {"strides": [2, 2], "output_padding": [0, 1], "output_sizes": [5, 6]},
    "strides longer than the window": {"strides": [4, 5]},
}
"""For images of 2 rows and 3 columns, and a window of 3 rows and 2 columns."""


def quarters(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Random multiples of 1/4 from -2 to 2, which keep products short."""
    return np.asarray(rng.integers(-8, 8, shape, endpoint=True) / 4).astype(data_type)


GROUPS = {
    "conv2d": [(1, (3, 2)), (2, (4, 2)), (2, (2, 1)), (4, (4, 1)), (4, (8, 1)), (3, (3, 1))],
    "conv_transpose2d": [(1, (2, 3)), (2, (4, 2)), (2, (2, 1)), (4, (4, 1)), (4, (4, 2)), (3, (3, 1))],
}
"""Groups, and the first two sizes of the filter; as many groups as channels are a depthwise convolution."""


def both(operator: str) -> Cases:
    """The cases that are the same for both convolutions."""
    collected = Collector(operator)
    types = itertools.cycle(FLOAT_TYPES)
    for data_type in FLOAT_TYPES:
        small_cases(collected, data_type)
        layout_cases(collected, data_type, types)
        settings_cases(collected, data_type)
    random_cases(collected)
    for constants in ("input", "filter", "bias", "filter bias", "input filter bias"):
        collected.add(f"constant {constants}", "float32", (1, 2, 3, 3), (2, 2, 2, 2), bias=True, constants=constants)
    for data_type in FLOAT_TYPES:
        extreme_cases(collected, data_type)
    return collected.cases


def small_cases(collected: Collector, data_type: str) -> None:
    """Few options and few elements."""
    add = collected.add
    sides = SIDES[collected.operator]
    add("no options", data_type, (1, 2, 3, 4), (2, 2, 2, 2))
    add("a bias", data_type, (1, 2, 3, 3), (2, 2, 2, 2), bias=True)
    add("a filter of one element", data_type, (2, 3, 2, 2), (3, 3, 1, 1), bias=True)
    add("a filter of one element, nhwc", data_type, (2, 3, 2, 2), (3, 3, 1, 1), {"input_layout": "nhwc"}, bias=True)
    add("a filter of one element, strides", data_type, (1, 2, *sides), (2, 2, 1, 1), {"strides": [2, 2]})
    options = {"input_layout": "nhwc", "strides": [2, 3]}
    add("a filter of one element, strides, nhwc", data_type, (1, 2, *sides), (2, 2, 1, 1), options)
    if collected.operator == "conv2d":
        add("a filter of one element, padding", data_type, (1, 2, 2, 2), (2, 2, 1, 1), {"padding": [0, 1, 1, 0]})
    add("a window as large as the image", data_type, (1, 2, 3, 4), (2, 2, 3, 4))
    add("an image of one element", data_type, (1, 2, 1, 1), (2, 2, 1, 1), bias=True)
    add("a row", data_type, (1, 1, 1, 9), (1, 1, 1, 4), {"strides": [1, 2]})
    add("a column", data_type, (1, 1, 9, 1), (1, 1, 4, 1), {"strides": [2, 1]})
    add("three images", data_type, (3, 1, 3, 2), (1, 1, 2, 2))


def layout_cases(collected: Collector, data_type: str, types: Iterator[str]) -> None:
    """Every layout with every other; with groups, every other one is of this data type."""
    for images, filters in itertools.product(IMAGE_LAYOUTS, FILTER_LAYOUTS[collected.operator]):
        options = {"input_layout": images, "filter_layout": filters}
        collected.add(f"{images} and {filters}", data_type, (2, 2, 3, 2), (2, 2, 2, 1), options, bias=True)
        for groups, sizes in GROUPS[collected.operator][1:]:
            channels = sizes[1] * groups if collected.operator == "conv2d" else sizes[0]
            name = f"{groups} groups of a filter {list(sizes)}, {images} and {filters}"
            if next(types) == data_type:
                grouped = {**options, "groups": groups}
                collected.add(name, data_type, (1, channels, 2, 2), (*sizes, 2, 1), grouped)


def settings_cases(collected: Collector, data_type: str) -> None:
    """Each option by itself, and together."""
    for layout, (name, options) in itertools.product(IMAGE_LAYOUTS, SETTINGS.items()):
        shape = (1, 2, *SIDES[collected.operator])
        given = {"input_layout": layout, **options}
        collected.add(f"{name}, {layout}", data_type, shape, (2, 2, 3, 2), given)


def random_cases(collected: Collector) -> None:
    """All options together at random."""
    layouts = itertools.cycle(itertools.product(IMAGE_LAYOUTS, FILTER_LAYOUTS[collected.operator]))
    for index in range(36 if collected.operator == "conv2d" else 24):
        images, filters = next(layouts)
        settings = random_settings(collected.operator, index)
        if settings is not None:
            shapes, options = settings
            options |= {"input_layout": images, "filter_layout": filters}
            collected.add(f"random settings {index}", FLOAT_TYPES[index % 2], *shapes, options, bias=index % 4 < 2)


def extreme_cases(collected: Collector, data_type: str) -> None:
    """NaN, infinities, and sums beyond the range."""

    def add(name: str, images: np.ndarray, filter_: np.ndarray, options: Options | None = None, **more: Any) -> None:
        name = f"{data_type}, {name}"
        collected.cases.append(made(collected.operator, name, images, filter_, options or {}, **more))

    images = np.arange(1, 26, dtype=data_type).reshape(1, 1, 5, 5)
    images[0, 0, 0, 0], images[0, 0, 0, 4], images[0, 0, 4, 0] = np.inf, np.nan, -np.inf
    filter_ = np.array([[1, -2], [0.5, 1]], data_type).reshape(1, 1, 2, 2)
    for layout in IMAGE_LAYOUTS:
        add(f"NaN and infinities in the images, {layout}", images, filter_, {"input_layout": layout})
    filter_ = np.array([[[np.inf, np.nan], [-np.inf, 1]], [[1, 1], [1, 1]]], data_type)
    filter_ = filter_[:, np.newaxis] if collected.operator == "conv2d" else filter_[np.newaxis]
    add("NaN and infinities in the filter", np.array([[[[1, -1], [2, 3]]]], data_type), filter_)
    big = {"float32": 3e38, "float16": 60000}[data_type]
    add("beyond the range", np.array([[[[big]]], [[[-big]]]], data_type), np.array([[[[2]]]], data_type))
    row = np.array([[[[2, 1]]]], data_type)
    add("an infinite bias", row, row, bias=np.array([np.inf], data_type))


def random_settings(operator: str, index: int) -> tuple[list[list[int]], dict[str, Any]] | None:
    """Shapes of images and a filter, and options that go with them; None where nothing would be left."""
    rng = generator(operator, "random settings", index)
    transposed = operator == "conv_transpose2d"
    groups, sizes = GROUPS[operator][index % len(GROUPS[operator])]
    channels = sizes[0] if transposed else sizes[1] * groups
    window = rng.integers(1, 4, 2)
    sides = rng.integers(1, 4, 2) if transposed else rng.integers(3, 6, 2)
    strides, dilations = rng.integers(1, 4, 2), rng.integers(1, 3, 2)
    padding = rng.integers(0, 2, (2, 2)) if transposed else rng.integers(0, [[window[0]] * 2, [window[1]] * 2])
    reach = (window - 1) * dilations + 1
    left = (sides - 1) * strides + reach - padding.sum(1) if transposed else sides + padding.sum(1) - reach + 1
    options = {
        "padding": padding.ravel().tolist(),
        "strides": strides.tolist(),
        "dilations": dilations.tolist(),
        "groups": groups,
    }
    appended = rng.integers(0, strides)
    if transposed and index % 3 == 1:
        options["output_padding"] = appended.tolist()
    if transposed and index % 3 == 2:
        options["output_sizes"] = (left + appended).tolist()
    shapes = [[1 + index % 2, channels, *sides.tolist()], [*sizes, *window.tolist()]]
    return (shapes, options) if left.min() >= 1 else None


def conv_cases() -> Cases:
    """The cases of conv2d."""
    collected = Collector("conv2d")
    for layout in IMAGE_LAYOUTS:
        name = f"windows in the padding alone, {layout}"
        options = {"padding": [3, 0, 0, 3], "input_layout": layout}
        collected.add(name, "float32", (1, 1, 2, 2), (1, 1, 2, 2), options, bias=True)
    return both("conv2d") + collected.cases


def transposed_cases() -> Cases:
    """The cases of conv_transpose2d."""
    collected = Collector("conv_transpose2d")
    choices = itertools.product(FLOAT_TYPES, IMAGE_LAYOUTS, TRANSPOSED_SETTINGS.items())
    for data_type, layout, (name, options) in choices:
        given = {"input_layout": layout, **options}
        collected.add(f"{name}, {layout}", data_type, (1, 1, 2, 3), (1, 1, 3, 2), given, bias=True)
    return both("conv_transpose2d") + collected.cases


def main() -> None:
    """Write the files of the category."""
    write(__file__, "conv2d", ORACLE, conv_cases())
    write(__file__, "conv_transpose2d", ORACLE, transposed_cases())


if __name__ == "__main__":
    main()
