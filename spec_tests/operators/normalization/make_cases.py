"""Make the cases of the normalization operators.

torch computes in float64. Means need no rounding, and biases are larger than what they are added to, so that
cancellation does not blow up rounding: results are a few ULP apart at most.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from spec_tests.operators.oracle import FLOAT_TYPES, Cases, Options, case, extremes, generator, rounded, spread, write

ORACLE = f"torch {torch.__version__} in float64, rounded once by numpy"
BATCH = {"float32": {"ulp": 3}, "float16": {"ulp": 1}}
WHOLE = {"float32": {"ulp": 4}, "float16": {"ulp": 1}}
"""Where the mean and the variance are computed, too."""

SUBSETS: Sequence[Sequence[str]] = ((), ("scale",), ("bias",), ("scale", "bias"))
EPSILONS = (0, 1e-3, 0.5, 1e-9)

Arrays = dict[str, np.ndarray]


def wide(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.float64))


def epsilon_of(options: Options, data_type: str) -> float:
    """Epsilon, rounded to the data type."""
    return float(rounded(np.float64(options.get("epsilon", 1e-5)), data_type))


def of_features(rng: np.random.Generator, data_type: str, shape: Sequence[int], names: Sequence[str]) -> Arrays:
    """Those of scale and bias that are named; biases are larger than normalized and scaled elements."""
    arrays = {}
    if "scale" in names:
        arrays["scale"] = spread(rng, data_type, shape, 0.25, 2) * rng.choice([-1, 1], shape).astype(data_type)
    if "bias" in names:
        arrays["bias"] = spread(rng, data_type, shape, 12, 20) * rng.choice([-1, 1], shape).astype(data_type)
    return {name: np.asarray(array, data_type) for name, array in arrays.items()}


def in_thirds(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Multiples of 3/64: the means of 3, 4, 6 or 12 of them need no rounding."""
    return np.asarray(3 * spread(rng, data_type, shape, -1.25, 1.25), data_type)


def made(
    compute: Callable[[Arrays, Options], np.ndarray],
    name: str,
    arrays: Arrays,
    options: Options,
    constants: Sequence[str] = (),
) -> dict[str, Any]:
    """Return one case of an operator, which an oracle computes."""
    data_type = arrays["input"].dtype.name
    tolerance = (BATCH if compute is batch else WHOLE)[data_type]
    name, expected = f"{data_type}, {name}", compute(arrays, options)
    return case(name, arrays, expected, options=options, tolerance=tolerance, constants=constants)


def said_of(names: Sequence[str], options: Options) -> str:
    parts = [f"{name} {value}" for name, value in options.items()]
    return ", ".join([*parts, f"with {' and '.join(names)}" if names else "without scale and bias"])


# --- batch normalization -----------------------------------------------------------------------------------------


def batch(arrays: Arrays, options: Options) -> np.ndarray:
    x, data_type = wide(arrays["input"]), arrays["input"].dtype.name
    axis = options.get("axis", 1)
    rows = x.movedim(axis, 0).unsqueeze(0)
    scale, bias = (wide(arrays[name]) if name in arrays else None for name in ("scale", "bias"))
    mean, variance = wide(arrays["mean"]), wide(arrays["variance"])
    y = functional.batch_norm(rows, mean, variance, scale, bias, eps=epsilon_of(options, data_type))
    return rounded(y.squeeze(0).movedim(0, axis).numpy(), data_type)


def batch_cases() -> Cases:
    cases = []

    def add(*given: Any) -> None:
        cases.append(made(batch, *given))

    def random(data_type: str, shape: Sequence[int], names: Sequence[str], options: Options) -> Arrays:
        rng = generator("batch", data_type, shape, said_of(names, options))
        features = [shape[options.get("axis", 1)]]
        return {
            "input": spread(rng, data_type, shape),
            "mean": spread(rng, data_type, features, -1, 1),
            "variance": spread(rng, data_type, features, 0.5, 4),
            **of_features(rng, data_type, features, names),
        }

    shapes = [(5,), (3, 4), (2, 1, 3), (2, 3, 1, 2), (2, 3, 2, 2), (1, 2, 2, 1, 3)]
    for data_type in FLOAT_TYPES:
        subsets = itertools.cycle(SUBSETS)
        for shape in shapes:
            for axis in range(len(shape)):
                names, options = next(subsets), {"axis": axis}
                arrays = random(data_type, shape, names, options)
                add(f"{list(shape)}, {said_of(names, options)}", arrays, options)
        for names in SUBSETS:
            add(f"[2, 3, 2], {said_of(names, {})}", random(data_type, (2, 3, 2), names, {}), {})
        for index, epsilon in enumerate(EPSILONS):
            names, options = SUBSETS[index], {"epsilon": epsilon}
            add(f"[2, 3, 2], {said_of(names, options)}", random(data_type, (2, 3, 2), names, options), options)
        everything = {"axis": 3, "epsilon": 0.25}
        add("all options", random(data_type, (1, 2, 2, 3), SUBSETS[3], everything), everything)
        add("extreme inputs", of_extremes(data_type), {"axis": 0})
        add("extreme means and variances", with_extremes(data_type), {})
        add("variance 0", variance_0(data_type), {})
        add(f"variance 0, {said_of((), ROUNDED)}", variance_0(data_type), ROUNDED)
    for constants in (["mean", "variance"], ["scale", "bias"], ["input"], ["mean", "variance", "scale", "bias"]):
        arrays = random("float32", (2, 3, 2), SUBSETS[3], {"of constants": len(constants)} | {"axis": 1})
        add(f"constant {', '.join(constants)}", arrays, {}, constants)
    return cases


def of_extremes(data_type: str) -> Arrays:
    """One feature with all of the extreme values."""
    x = extremes(data_type).reshape(1, -1)
    return {"input": x, "mean": np.array([1], data_type), "variance": np.array([4], data_type)}


def with_extremes(data_type: str) -> Arrays:
    """NaN, infinities and negative variances, in features of their own."""
    mean = np.array([np.nan, np.inf, -np.inf, 0, 0, 0, 1], data_type)
    variance = np.array([1, 1, 1, np.nan, np.inf, -1, 4], data_type)
    x = spread(generator("batch", "extremes"), data_type, (2, 7))
    return {"input": x, "mean": mean, "variance": variance}


def variance_0(data_type: str) -> Arrays:
    """Epsilon alone is divided by."""
    x = np.array([[1, 2, 3], [1.5, 0, -3]], data_type)
    return {"input": x, "mean": x[0], "variance": np.zeros(3, data_type)}


ROUNDED = {"epsilon": 9e-8}
"""An epsilon that is far from its nearest float16."""


def small(data_type: str, shape: Sequence[int]) -> np.ndarray:
    """Numbers with a variance that does not hide a small epsilon."""
    return np.array([1, -1, 3, -3], data_type).reshape(shape) / np.asarray(4096, data_type)


# --- with the mean and the variance of the input itself ----------------------------------------------------------


def normalized(arrays: Arrays, options: Options, reduced: Sequence[int], of_features: Sequence[int]) -> np.ndarray:
    """Normalize over the axes ``reduced``; scale and bias lie along the axes ``of_features``, in that order."""
    x, data_type = wide(arrays["input"]), arrays["input"].dtype.name
    others = [axis for axis in range(x.ndim) if axis not in reduced]
    rows = x.permute([*others, *reduced]).reshape([*(x.shape[axis] for axis in others), -1])
    variance, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
    whole = [1 if axis in reduced else size for axis, size in enumerate(x.shape)]
    y = (x - mean.reshape(whole)) / torch.sqrt(variance.reshape(whole) + epsilon_of(options, data_type))
    other_axes = [axis for axis in range(x.ndim) if axis not in of_features]
    order = [*other_axes, *of_features]
    y = y.permute(order)
    y = y * wide(arrays["scale"]) if "scale" in arrays else y
    y = y + wide(arrays["bias"]) if "bias" in arrays else y
    return rounded(y.permute([order.index(axis) for axis in range(x.ndim)]).numpy(), data_type)


# --- instance normalization --------------------------------------------------------------------------------------


def instance(arrays: Arrays, options: Options) -> np.ndarray:
    last = options.get("layout") == "nhwc"
    return normalized(arrays, options, [1, 2] if last else [2, 3], [3 if last else 1])


def instance_cases() -> Cases:
    cases = []

    def add(*given: Any) -> None:
        cases.append(made(instance, *given))

    def random(data_type: str, shape: Sequence[int], names: Sequence[str], options: Options) -> Arrays:
        rng = generator("instance", data_type, shape, said_of(names, options))
        channels = [shape[3 if options.get("layout") == "nhwc" else 1]]
        return {"input": in_thirds(rng, data_type, shape), **of_features(rng, data_type, channels, names)}

    shapes = [(1, 1, 2, 2), (2, 3, 2, 2), (1, 2, 1, 4), (2, 1, 3, 2), (1, 3, 4, 1), (2, 2, 1, 1)]
    for data_type, layout in itertools.product(FLOAT_TYPES, ("nchw", "nhwc")):
        subsets = itertools.cycle(SUBSETS)
        for shape in shapes:
            for names in (next(subsets), next(subsets), next(subsets))[data_type == "float16" :]:
                options = {"layout": layout}
                in_order = [shape[axis] for axis in ((0, 2, 3, 1) if layout == "nhwc" else range(4))]
                arrays = random(data_type, in_order, names, options)
                add(f"{in_order}, {said_of(names, options)}", arrays, options)
        for index, epsilon in enumerate(EPSILONS):
            names, options = SUBSETS[index], {"layout": layout, "epsilon": epsilon}
            arrays = random(data_type, (1, 2, 3, 2), names, options)
            add(f"[1, 2, 3, 2], {said_of(names, options)}", arrays, options)
    for data_type in FLOAT_TYPES:
        for names in SUBSETS:
            add(f"[1, 2, 2, 2], {said_of(names, {})}", random(data_type, (1, 2, 2, 2), names, {}), {})
        x = spread(generator("instance", "extremes"), data_type, (1, 5, 2, 2))
        x[0, 0, 0, 0], x[0, 1, 1, 1], x[0, 2, 0, 1], x[0, 3] = np.nan, np.inf, -np.inf, 7
        add("NaN, infinities, and equal elements", {"input": x}, {})
        far = np.array([1000, 1001, 1002, 1005], data_type).reshape(1, 1, 2, 2)
        add("far from 0", {"input": far}, {})
        add(f"small numbers, {said_of((), ROUNDED)}", {"input": small(data_type, (1, 1, 2, 2))}, ROUNDED)
    for constants in (["scale"], ["scale", "bias"], ["input"]):
        arrays = random("float32", (1, 2, 2, 2), SUBSETS[3], {"of constants": len(constants)})
        add(f"constant {', '.join(constants)}", arrays, {}, constants)
    return cases


# --- layer normalization -----------------------------------------------------------------------------------------


def layer(arrays: Arrays, options: Options) -> np.ndarray:
    axes = options.get("axes", list(range(1, arrays["input"].ndim)))
    return normalized(arrays, options, axes, axes)


CHOSEN_AXES: list[tuple[Sequence[int], list[int]]] = [
    ((4,), [0]),
    ((4,), []),
    ((3, 4), [0]),
    ((3, 4), [1]),
    ((3, 4), [0, 1]),
    ((3, 4), [1, 0]),
    ((3, 4), []),
    ((2, 3, 4), [2]),
    ((2, 3, 4), [0, 2]),
    ((2, 3, 4), [2, 0]),
    ((2, 3, 4), [1]),
    ((2, 3, 4), [2, 0, 1]),
    ((2, 3, 1, 4), [1, 3]),
    ((2, 3, 1, 4), [3, 2, 1]),
    ((2, 3, 2, 2), [2, 0, 3]),
    ((1, 2, 3, 1, 2), [4, 1]),
    ((2, 1, 2, 1, 2), [0, 1, 2, 3, 4]),
    ((2, 1, 2, 2, 2), [4, 2, 0]),
]
"""Shapes and axes to reduce, in every order."""


def layer_arrays(data_type: str, shape: Sequence[int], names: Sequence[str], options: Options) -> Arrays:
    rng = generator("layer", data_type, shape, said_of(names, options))
    axes = options.get("axes", range(1, len(shape)))
    reduced = [shape[axis] for axis in axes]
    return {"input": in_thirds(rng, data_type, shape), **of_features(rng, data_type, reduced, names)}


def layer_cases() -> Cases:
    cases = []

    def random(data_type: str, shape: Sequence[int], names: Sequence[str], options: Options) -> None:
        arrays = layer_arrays(data_type, shape, names, options)
        cases.append(made(layer, f"{list(shape)}, {said_of(names, options)}", arrays, options))

    shapes = [(), (5,), (3, 4), (2, 1, 3), (2, 2, 1, 3), (1, 2, 2, 1, 3), (2, 2, 1, 2, 2, 2)]
    for data_type in FLOAT_TYPES:
        for index, shape in enumerate(shapes):
            for names in (SUBSETS[0], SUBSETS[1 + index % 2], SUBSETS[3]):
                random(data_type, shape, names, {})
        for index, (shape, axes) in enumerate(CHOSEN_AXES):
            for names in (SUBSETS[3], SUBSETS[index % 3])[data_type == "float16" :]:
                random(data_type, shape, names, {"axes": axes})
        for names, epsilon in zip(SUBSETS, EPSILONS, strict=True):
            random(data_type, (2, 4), names, {"epsilon": epsilon})
        random(data_type, (2, 3, 2), SUBSETS[3], {"axes": [2, 1], "epsilon": 0.25})
        cases += extreme_layers(data_type)
    for constants in (["scale"], ["scale", "bias"], ["input"]):
        arrays = layer_arrays("float32", (2, 3), SUBSETS[3], {"of constants": len(constants)})
        cases.append(made(layer, f"constant {', '.join(constants)}", arrays, {}, constants))
    return cases


def extreme_layers(data_type: str) -> Cases:
    x = spread(generator("layer", "extremes"), data_type, (5, 4))
    x[0, 0], x[1, 1], x[2, 3], x[3] = np.nan, np.inf, -np.inf, 7
    far = np.array([[1000, 1001, 1002, 1005], [-500, -501, -499, -500]], data_type)
    arrays: dict[str, tuple[np.ndarray, Options]] = {
        "NaN, infinities, and equal elements": (x, {}),
        "far from 0": (far, {}),
        "one element each": (far.reshape(8, 1), {}),
        f"small numbers, {said_of((), ROUNDED)}": (small(data_type, (1, 4)), ROUNDED),
    }
    return [made(layer, name, {"input": array}, options) for name, (array, options) in arrays.items()]


def main() -> None:
    """Write the files of the category."""
    write(__file__, "batch_normalization", ORACLE, batch_cases())
    write(__file__, "instance_normalization", ORACLE, instance_cases())
    write(__file__, "layer_normalization", ORACLE, layer_cases())


if __name__ == "__main__":
    main()
