"""Make the cases of cast and of quantization.

Integers are Python's; floats are compared with them exactly, or computed in float64 and rounded once. onnxruntime
computes what it can of quantization, too, and must agree.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnxruntime

from spec_tests.operators.cases import INTEGER_TYPES
from spec_tests.operators.oracle import (
    ALL_TYPES,
    EITHER_ZERO,
    FLOAT_TYPES,
    SHAPES,
    Cases,
    Constant,
    by_onnxruntime,
    case,
    extremes,
    generator,
    rounded,
    spread,
    wrap,
    write,
)

OF_CAST = "Python's integers and fractions; float to float: numpy " + np.__version__
OF_QUANTIZATION = (
    f"numpy {np.__version__} in float64, rounded once; with 8-bit integers and float32 also"
    f" onnxruntime {onnxruntime.__version__}, which agrees"
)
QUANTIZED = ("uint8", "int8", "uint32", "int32")


# --- cast --------------------------------------------------------------------------------------------------------


def cast(array: np.ndarray, target: str) -> np.ndarray:
    source = array.dtype.name
    if source in FLOAT_TYPES and target in FLOAT_TYPES:
        return rounded(array, target)
    numbers = [number.item() for number in array.ravel()]
    if target in INTEGER_TYPES:
        convert = saturated if source in FLOAT_TYPES else wrap
        return np.array([convert(number, target) for number in numbers], target).reshape(array.shape)
    return np.array([nearest(number, target) for number in numbers], target).reshape(array.shape)


def saturated(number: float, target: str) -> int:
    """Truncated toward zero; NaN is 0."""
    limits = np.iinfo(target)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return int(limits.max if number > 0 else limits.min)
    return min(max(math.trunc(number), int(limits.min)), int(limits.max))


def nearest(number: int, target: str) -> np.floating:
    """Return the nearest float, ties to even, by exact fractions."""
    near = rounded(np.float64(number), target)[()]
    if not np.isfinite(near):
        return near
    dtype = near.dtype.type
    with np.errstate(over="ignore"):
        around = [near, np.nextafter(near, dtype(-np.inf)), np.nextafter(near, dtype(np.inf))]
    finite = [candidate for candidate in around if np.isfinite(candidate)]

    def distance(candidate: np.floating) -> tuple[Fraction, int]:
        bits = np.asarray(candidate).view(f"u{candidate.itemsize}").item()
        return abs(Fraction(float(candidate)) - number), bits % 2

    return min(finite, key=distance)


FRACTIONS = [0.5, 0.9, 1.5, 2.5, -0.5, -0.9, -1.5, 126.5, 127.5, 128, 255.9, 256, -127.9, -128.9, -129, 2048, 65504]
CAST_VALUES: dict[str, list[float]] = {
    "float32": [
        *FRACTIONS,
        *(65519.996, 65520, 2049, 2051, 1e-8, 2.9802322e-8, 3e-8, 6.1e-5, 1 / 3, -1e-3),
        *(2147483520, 2147483648, -2147483648, -2147483904, 4294967040, 4294967296, 16777216, 1e10, -1e10),
        *(9223371487098961920, 9223372036854775808, -9223372036854775808, 18446742974197923840, 1e20, -1e20),
    ],
    "float16": [*FRACTIONS, 1 / 3, -1e-3, -65504, 1e-7],
}
CAST_INTEGERS = [100, 127, 128, 200, 255, 256, 257, -100, -128, -129, -200, -255, 2047, 2049, 2051, 4099, 32767, -32769]
WIDE_INTEGERS = [
    *(65504, 65519, 65520, 65535, 65536, -65519, -65520, 100000, 16777217, 16777219, -16777217, 33554434, 33554438),
    *(2**31 + 128, 2**32 - 128, 2**32 - 129, 2**32, -(2**31) - 1, 2**53 + 1, 2**62 + 2**38, 2**62 + 2**38 + 1),
    *(2**63 - 2**38, 2**63 - 2**38 - 1, 2**64 - 2**39, 2**64 - 2**39 - 1, 2**63 + 12345, -(2**62) - 2**38 - 1),
]


def cast_values(data_type: str) -> np.ndarray:
    """Extremes, and what rounds or does not fit into other data types."""
    if data_type in FLOAT_TYPES:
        return np.concatenate([extremes(data_type), rounded(CAST_VALUES[data_type], data_type)])
    limits = np.iinfo(data_type)
    fitting = [number for number in CAST_INTEGERS + WIDE_INTEGERS if limits.min <= number <= limits.max]
    return np.concatenate([extremes(data_type), np.array(fitting, data_type)])


def cast_cases() -> Cases:
    cases = []

    def add(name: str, array: np.ndarray, target: str, *, constant: bool = False) -> None:
        said = f"{array.dtype.name} to {target}{name}"
        operand = Constant(array) if constant else array
        cases.append(case(said, {"input": operand}, cast(array, target), options={"data_type": target}))

    for source, target in itertools.product(ALL_TYPES, repeat=2):
        add("", cast_values(source), target)
    targets = itertools.cycle(ALL_TYPES)
    for source, shape in itertools.product(("float32", "float16", "int32", "uint8"), SHAPES):
        array = spread(generator("cast", source, shape), source, shape, -9, 9)
        add(f", rank {len(shape)}", array, next(targets))
        add(f", rank {len(shape)}", array, next(targets))
        next(targets)
    array = spread(generator("cast constant"), "float32", (2, 3))
    add(", a constant", array, "int8", constant=True)
    return cases


# --- quantization ------------------------------------------------------------------------------------------------


def in_blocks(parameter: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Each element repeated as a block, until the shape is reached."""
    for axis, size in enumerate(shape):
        parameter = np.repeat(parameter, size // parameter.shape[axis], axis)
    return parameter


def quantize(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    target = zero_point.dtype.name
    with np.errstate(all="ignore"):
        steps = np.rint(x.astype(np.float64) / in_blocks(scale, x.shape).astype(np.float64))
        numbers = steps + in_blocks(zero_point, x.shape).astype(np.float64)
    expected = np.array([saturated(float(number), target) for number in numbers.ravel()], target).reshape(x.shape)
    checked_by_onnxruntime("QuantizeLinear", x, scale, zero_point, expected)
    return expected


def dequantize(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        steps = x.astype(np.float64) - in_blocks(zero_point, x.shape).astype(np.float64)
        expected = rounded(steps * in_blocks(scale, x.shape).astype(np.float64), scale.dtype.name)
    checked_by_onnxruntime("DequantizeLinear", x, scale, zero_point, expected)
    return expected


def checked_by_onnxruntime(
    operator: str, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, expected: np.ndarray
) -> None:
    """Compare with onnxruntime where it has one scale, or one for each index or block of one axis."""
    parted = [axis for axis, size in enumerate(scale.shape) if size > 1]
    with np.errstate(all="ignore"):
        ordinary = bool((np.abs(x.astype(np.float64)) < 1e6).all()) and bool((scale > 0).all())
    if zero_point.itemsize > 1 or scale.dtype != np.float32 or len(parted) > 1 or not ordinary:
        return
    attributes: dict[str, int] = {}
    if not parted:
        scale, zero_point = scale.reshape(()), zero_point.reshape(())
    else:
        axis = parted[0]
        attributes["axis"] = axis
        if scale.shape[axis] == x.shape[axis]:
            scale, zero_point = scale.reshape(-1), zero_point.reshape(-1)
        else:
            attributes["block_size"] = x.shape[axis] // scale.shape[axis]
            whole = (*x.shape[:axis], scale.shape[axis], *x.shape[axis + 1 :])
            scale, zero_point = (np.broadcast_to(p, whole).copy() for p in (scale, zero_point))
    arrays = {"x": x, "scale": scale, "zero_point": zero_point}
    (got,) = by_onnxruntime(operator, arrays, **attributes)
    if not np.array_equal(got, expected, equal_nan=True):
        raise AssertionError(f"{operator}: onnxruntime says {got.tolist()}, not {expected.tolist()}")


BLOCKS: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = (
    ((6,), (6,)),
    ((6,), (3,)),
    ((6,), (2,)),
    ((2, 6), (1, 1)),
    ((2, 6), (2, 1)),
    ((2, 6), (1, 6)),
    ((2, 6), (1, 2)),
    ((2, 6), (2, 3)),
    ((4, 6), (2, 2)),
    ((2, 4, 3), (2, 2, 1)),
    ((2, 4, 3), (1, 4, 3)),
    ((1, 3, 2, 4), (1, 3, 1, 1)),
    ((2, 2, 4, 2), (1, 2, 2, 1)),
    ((2, 2, 2, 2, 3), (1, 2, 1, 2, 3)),
    ((1, 2, 4, 1, 2), (1, 2, 2, 1, 1)),
    ((4, 2, 1, 1, 4, 1, 2, 1), (2, 1, 1, 1, 2, 1, 2, 1)),
)
"""Shapes of inputs and scales: one for all, for each index, for blocks along one and several axes."""

SHORT_SCALES = [0.25, 0.5, 1, 2, 0.125]
ZERO_POINTS = {"uint8": [0, 3, 128, 255], "int8": [0, -3, 127, -128], "uint32": [0, 5, 1000], "int32": [0, -7, 1000]}


def parameters(rng: np.random.Generator, float_type: str, integer_type: str, shape: Sequence[int]) -> list[np.ndarray]:
    """A scale and a zero point."""
    return [
        np.asarray(rng.choice(SHORT_SCALES, shape), float_type),
        np.asarray(rng.choice(ZERO_POINTS[integer_type], shape), integer_type),
    ]


def quantization_case(
    operator: str, name: str, arrays: Sequence[np.ndarray], constants: Sequence[str] = ()
) -> dict[str, Any]:
    """One case; the arrays are the input, the scale and the zero point."""
    given = dict(zip(("input", "scale", "zero_point"), arrays, strict=True))
    expected = (quantize if operator == "quantize_linear" else dequantize)(*arrays)
    said = f"{given['scale'].dtype.name} and {given['zero_point'].dtype.name}, {name}"
    return case(said, given, expected, tolerance=EITHER_ZERO, constants=constants)


def random(
    operator: str, types: tuple[str, str], shape: Sequence[int], of_scale: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An input, a scale and a zero point; the types are a float and an integer one."""
    rng = generator(operator, *types, shape, of_scale)
    scale, zero_point = parameters(rng, *types, of_scale)
    return spread(rng, types[operator != "quantize_linear"], shape, -25, 25), scale, zero_point


def quantization_cases(operator: str) -> Cases:
    """Cases of either operator: every pair of data types in all ranks and blocks, and values of their own."""
    cases = []
    pairs = list(itertools.product(FLOAT_TYPES, QUANTIZED))
    for types in pairs:
        shapes = SHAPES if types[1] in {"uint8", "int8"} else (SHAPES[0], SHAPES[2])
        for shape in shapes:
            arrays = random(operator, types, shape, (1,) * len(shape))
            cases.append(quantization_case(operator, f"rank {len(shape)}", arrays))
        for scale, *arrays in of_extremes(*types, quantizes=operator == "quantize_linear"):
            cases.append(quantization_case(operator, f"extreme values, scale {scale}", arrays))
    for index, (shape, of_scale) in enumerate(BLOCKS):
        for types in (pairs[index % 2], pairs[2 + index % 6]):
            arrays = random(operator, types, shape, of_scale)
            cases.append(quantization_case(operator, f"{list(shape)} in blocks of {list(of_scale)}", arrays))
    own_values = quantized_values if operator == "quantize_linear" else dequantized_values
    cases += [quantization_case(operator, name, arrays) for types in pairs for name, *arrays in own_values(*types)]
    for constants in (["scale"], ["zero_point"], ["scale", "zero_point"], ["input", "scale", "zero_point"]):
        arrays = random(operator, ("float32", "uint8"), (2, 3), (1, 3))
        cases.append(quantization_case(operator, f"constant {' and '.join(constants)}", arrays, constants))
    return cases


def of_extremes(float_type: str, integer_type: str, *, quantizes: bool) -> list[tuple[Any, ...]]:
    """Extreme inputs with a moderate, a negative and a zero scale."""
    x = extremes(float_type if quantizes else integer_type)
    zero_point = np.array([ZERO_POINTS[integer_type][1]], integer_type)
    return [(scale, x, np.array([scale], float_type), zero_point) for scale in (0.5, -2, 0)]


def quantized_values(float_type: str, integer_type: str) -> list[tuple[Any, ...]]:
    """Ties, quotients that round, and zero points that float32 has not."""
    one, two = np.array([1], float_type), np.array([2], integer_type)
    ties = np.array([-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, 3.5, 0.49, 0.51], float_type)
    tenth = np.array([0.1], float_type)
    quotients = np.array([-7.3, -1.2, -0.8, 0.3, 1.25, 5.8, 20.2, 99.7], float_type)
    values: list[tuple[Any, ...]] = [
        ("ties", ties, one, two),
        ("quotients that round", rounded(quotients * tenth, float_type), tenth, two),
    ]
    if integer_type.endswith("32"):
        odd = np.array([2**24 + 1, 2**30 + 1], integer_type)
        values.append(("large zero points", np.array([0, 1, -3, 40], float_type), np.tile(one, 2), odd))
    return values


def dequantized_values(float_type: str, integer_type: str) -> list[tuple[Any, ...]]:
    """Products that round, numbers and zero points at the limits, and close to each other."""
    limits = np.iinfo(integer_type)
    x = spread(generator("dequantize", integer_type), integer_type, (6,), -100, 100)
    tenth = np.array([0.1], float_type)
    both = np.array([limits.min, limits.max], integer_type)
    rare = np.array([np.inf, np.nan, -0.0, 1e-3], float_type)
    values: list[tuple[Any, ...]] = [
        ("products that round", x, tenth, np.array([2], integer_type)),
        ("limits less limits", np.tile(both, 2), np.tile(tenth, 2), both),
        ("extreme scales", x[:4], rare, np.array([x[0], 1, 2, 3], integer_type)),
    ]
    if integer_type.endswith("32"):
        near = np.array([2**24 + 1, 2**24 + 3, 2**24 - 5, 2**30 + 1, 2**30 - 3, 2**30 + 7], integer_type)
        values.append(("close large numbers", near, np.tile(tenth, 2), np.array([2**24, 2**30], integer_type)))
    return values


def main() -> None:
    """Write the files of the category."""
    write(__file__, "cast", OF_CAST, cast_cases())
    for operator in ("quantize_linear", "dequantize_linear"):
        write(__file__, operator, OF_QUANTIZATION, quantization_cases(operator))


if __name__ == "__main__":
    main()
