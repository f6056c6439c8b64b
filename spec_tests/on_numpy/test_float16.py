"""Float16 computed in float32: narrowing gives numpy's bits, in any memory layout."""

import itertools

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.devices.numpy.routines.float16 import BLOCK, FEW, narrow

ALL = np.arange(2**16, dtype=np.uint16).view(np.float16)

LAYOUTS = {
    "dense": lambda array: array,
    "columns": lambda array: array[:, 1:-1],
    "every other row": lambda array: array[::2],
    "transposed": lambda array: array.T,
}


def between():
    """Float32 numbers that halve the way between float16 ones, and their neighbours; with what float16 has not."""
    finite = np.sort(ALL[np.isfinite(ALL)]).astype(np.float32)
    middle = (finite[1:] + finite[:-1]) / 2
    beyond = np.array([65519, 65520, 65535, 65536, 1e9, np.inf, np.nan, 0, 2**-25, 2**-26, 1e-45], np.float32)
    with np.errstate(under="ignore"):
        beside = [np.nextafter(middle, side) for side in (np.float32(-9e9), np.float32(9e9))]
    return np.concatenate([ALL.astype(np.float32), middle, *beside, beyond, -beyond])


def assert_same(result, expected):
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), is_nan)
    bits = f"u{expected.itemsize}"
    np.testing.assert_array_equal(result.view(bits)[~is_nan], expected.view(bits)[~is_nan])


@pytest.mark.parametrize("sign", ["both", "positive"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_narrowing_rounds_as_numpy_does(sign, layout):
    numbers = between() if sign == "both" else np.abs(between())
    numbers = np.resize(numbers, (len(numbers) // 100, 100))
    assert numbers.size > 2 * BLOCK
    with np.errstate(all="ignore"):  # as the device runs kernels
        expected = numbers.astype(np.float16)
        result = np.empty_like(expected)
        narrow(layout(numbers), layout(result))
    assert_same(np.ascontiguousarray(layout(result)), np.ascontiguousarray(layout(expected)))


@pytest.mark.parametrize("size", [7, 60])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
def test_narrowing_takes_axes_in_any_order(axes, step, size):
    numbers = np.resize(between(), (5, size, 30))[:, :, ::step].transpose(axes)
    with np.errstate(all="ignore"):
        expected = numbers.astype(np.float16)
        result = np.empty(expected.shape, np.float16)
        narrow(numbers, result)
    assert_same(result, np.ascontiguousarray(expected))


@pytest.mark.parametrize("count", [50, 1000])
def test_narrowing_little_rounds_as_numpy_does(count):
    numbers = between()
    with np.errstate(all="ignore"):
        for start in range(0, len(numbers), count):
            part = numbers[start : start + count]
            result = np.empty(part.shape, np.float16)
            narrow(part, result)
            assert_same(result, part.astype(np.float16))


@pytest.mark.parametrize("number", [0, -0.0, 2**-25, 2**-24, -(2**-15), 65519, 65536, -70000, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("count", [1, 100, 5000])
def test_narrowing_rounds_unusual_numbers_among_others(number, count):
    numbers = np.random.default_rng(6).standard_normal(10000).astype(np.float32)
    with np.errstate(under="ignore"):
        numbers[5000 : 5000 + count] = np.nextafter(np.float32(number), np.float32(1))
    numbers[4000 : 4000 + count // 4] = number
    result = np.empty(numbers.shape, np.float16)
    with np.errstate(all="ignore"):
        narrow(numbers, result)
        assert_same(result, numbers.astype(np.float16))


def test_narrowing_rounds_any_bits_as_numpy_does():
    rng = np.random.default_rng(11)
    for _ in range(16):
        numbers = rng.integers(2**32, size=BLOCK, dtype=np.uint32).view(np.float32)
        result = np.empty(BLOCK, np.float16)
        with np.errstate(all="ignore"):
            narrow(numbers, result)
            assert_same(result, numbers.astype(np.float16))


@pytest.mark.parametrize("number", [-3, -0.0])
@pytest.mark.parametrize("others", [1, 2**-20])
def test_narrowing_keeps_the_sign_of_a_number_that_comes_late(number, others):
    numbers = np.full(2 * FEW, others, np.float32)
    numbers[-1] = number
    result = np.empty(numbers.shape, np.float16)
    narrow(numbers, result)
    assert_same(result, numbers.astype(np.float16))


FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "greater": np.greater,
    "greater_or_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_or_equal": np.less_equal,
}


@pytest.mark.parametrize("count", [100, 2**16])
async def test_arithmetic_and_comparisons_of_float16_are_numpys(numpy_context, count):
    a, b = (np.random.default_rng(seed).permutation(ALL)[:count] for seed in (1, 2))
    b[:50] = a[:50]
    builder = MLGraphBuilder(numpy_context)
    x, y = (builder.input(name, data_type="float16", shape=[count]) for name in "xy")
    outputs = {name: getattr(builder, name)(x, y) for name in FUNCTIONS}
    results = await compute(numpy_context, builder, {"x": a, "y": b}, outputs)
    with np.errstate(all="ignore"):
        expected = {name: function(a, b) for name, function in FUNCTIONS.items()}
    for name, array in expected.items():
        np.testing.assert_array_equal(results[name], array, err_msg=name)
