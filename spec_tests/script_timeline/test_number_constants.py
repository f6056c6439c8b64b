"""``constant(number, data_type=…)``: the spec's cast of an ``MLNumber``: clamp, round half to even, keep 64 bits."""

import decimal
import fractions
import math

import numpy as np
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from spec_tests.support.cells import cells
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.core.descriptors import DATA_TYPES

INF, NAN = math.inf, math.nan

INTEGERS = {name: (np.iinfo(name).min, np.iinfo(name).max) for name in DATA_TYPES if "int" in name}


async def arrives(context, number, data_type):
    """Return the scalar that a graph has for ``number``."""
    builder = MLGraphBuilder(context)
    operand = builder.constant(number, data_type=data_type)
    assert (operand.data_type, operand.shape) == (data_type, ())
    graph = await builder.build({"y": builder.reshape(operand, [])})
    output = await context.create_buffer(data_type=data_type, shape=[], readable=True)
    context.dispatch(graph, {}, {"y": output})
    return await context.read_buffer(output)


def same_bits(array, expected):
    return array.tobytes() == np.array(expected, array.dtype).tobytes()


ROUNDED = [
    *((0, 0), (7, 7), (7.0, 7), (-0.0, 0), (0.5, 0), (1.5, 2), (2.5, 2), (3.5, 4), (5e-324, 0), (NAN, 0), (-NAN, 0)),
    *((2.4999999999999996, 2), (2.5000000000000004, 3), (0.49999999999999994, 0)),
    *((-0.5, 0), (-1.5, -2), (-2.5, -2), (-1, -1), (-1e-300, 0), (300.7, 301), (3_000_000_000, 3_000_000_000)),
    *((kind(2**53 + 1), 2**53 + 1) for kind in (int, np.int64)),
    *((2**63 - 1, 2**63 - 1), (float(2**63), 2**63), (np.uint64(2**64 - 1), 2**64 - 1)),
    *(
        (sign * number, sign * 2**64)
        for number in (INF, 1e300, 10**400, 2**64, 1.8446744073709552e19)
        for sign in (1, -1)
    ),
]
"""Numbers, and the integers that every integer data type clamps to its range."""


@cells("data_type", INTEGERS)
async def test_an_integer_data_type_rounds_half_to_even_and_clamps(context, data_type):
    low, high = INTEGERS[data_type]
    ends = [low - 1, low, low + 1, high - 1, high, high + 1]
    if np.iinfo(data_type).bits <= 32:
        ends += [low - 0.5, low + 0.5, high - 0.5, high + 0.5]
    for number, expected in (*ROUNDED, *((end, round(end)) for end in ends)):
        assert (await arrives(context, number, data_type)).item() == min(max(expected, low), high), number


FLOAT16 = [
    (0.0, 0.0),
    (-0.0, -0.0),
    (0, 0.0),
    (65504, 65504),
    (65519.99, 65504),
    (65520, INF),
    (-65520, -INF),
    (10**400, INF),
    (-(10**400), -INF),
    (INF, INF),
    (-INF, -INF),
    (2049, 2048),
    (2051, 2052),
    (1.00048828125, 1.0),
    (1.00048828126, 1.0009765625),
    (2.0**-24, 2.0**-24),
    (2.0**-25, 0.0),
    (-(2.0**-25), -0.0),
    (2.0**-25 * 1.0001, 2.0**-24),
    (3 * 2.0**-26, 2.0**-24),
    (5e-324, 0.0),
    (-5e-324, -0.0),
]

FLOAT32 = [
    (0.0, 0.0),
    (-0.0, -0.0),
    (0.1, np.float32(0.1)),
    (3.4028235677973366e38, INF),
    (3.402823567797336e38, np.finfo(np.float32).max),
    (2**128 - 2**103, INF),
    (2**128 - 2**103 - 1, np.finfo(np.float32).max),
    (10**39, INF),
    (-(10**39), -INF),
    (1e300, INF),
    (INF, INF),
    (-INF, -INF),
    (2**24 + 1, 2**24),
    (2**24 + 3, 2**24 + 4),
    (2**60 + 2**36, 2**60),
    (2**60 + 2**36 + 1, 2**60 + 2**37),
    (2.0**-149, 2.0**-149),
    (2.0**-150, 0.0),
    (-(2.0**-150), -0.0),
    (2.0**-150 * 1.0000001, 2.0**-149),
]


@cells(
    ("data_type", "number", "expected"),
    [("float16", *pair) for pair in FLOAT16] + [("float32", *pair) for pair in FLOAT32],
)
async def test_a_float_data_type_rounds_once_to_the_nearest(context, data_type, number, expected):
    arrived = await arrives(context, number, data_type)
    assert same_bits(arrived, expected), f"{number!r} arrived as {arrived!r}"


@cells("data_type", ["float16", "float32"])
async def test_nan_stays_nan_in_a_float_data_type(context, data_type):
    assert np.isnan(await arrives(context, NAN, data_type))


@cells("data_type", DATA_TYPES)
@cells(
    "number",
    [np.int8(5), np.uint64(5), np.float16(5), np.float32(5), np.float64(5), fractions.Fraction(5)],
    ids=lambda number: type(number).__name__,
)
async def test_any_real_number_is_a_number(context, data_type, number):
    assert (await arrives(context, number, data_type)).item() == 5


async def test_a_fraction_beyond_every_float_saturates(context):
    assert (await arrives(context, fractions.Fraction(10**400), "float32")).item() == INF
    assert (await arrives(context, fractions.Fraction(-(10**400)), "int8")).item() == -128


@cells(
    "number", [10**400, -(10**400), fractions.Fraction(10**400), INF, -INF, NAN], ids=lambda n: f"{type(n).__name__}"
)
async def test_a_number_that_must_be_finite_is_refused_when_it_is_not(context, number):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[2])
    with pytest.raises(TypeError, match=r"^elu\(\): alpha is .*; it must be finite"):
        builder.elu(x, alpha=number)
    assert builder.clamp(x, max_value=number).shape == (2,)


@cells("data_type", ["float32", "int8"])
@cells(
    "value",
    [True, False, np.True_, "1", b"1", None, 1j, [1], (1,), {}, decimal.Decimal(1), object()],
    ids=lambda value: type(value).__name__,
)
async def test_other_values_than_numbers_are_refused(context, data_type, value):
    builder = MLGraphBuilder(context)
    with pytest.raises(TypeError, match=r"^constant\(\): the value is .*; it must be a number"):
        builder.constant(value, data_type=data_type)
    assert builder.constant(1, data_type=data_type)


@settings(derandomize=True, max_examples=2 * settings().max_examples)
@given(st.floats() | st.integers() | st.integers(-(2**70), 2**70), st.sampled_from(sorted(INTEGERS)))
def test_any_number_becomes_the_nearest_integer_of_the_data_type(options, number, data_type):
    async def arrive():
        async with open_ml() as ml:
            return await arrives(await ml.create_context(**options), number, data_type)

    low, high = INTEGERS[data_type]
    expected = 0 if number != number else round(min(max(number, low), high))  # noqa: PLR0124 - NaN
    assert trio.run(arrive).item() == expected


@settings(derandomize=True, max_examples=2 * settings().max_examples)
@given(st.floats(), st.sampled_from(["float16", "float32"]))
def test_any_float_becomes_the_nearest_float_of_the_data_type(options, number, data_type):
    async def arrive():
        async with open_ml() as ml:
            return await arrives(await ml.create_context(**options), number, data_type)

    with np.errstate(all="ignore"):
        expected = np.array(np.float64(number).astype(data_type))
    arrived = trio.run(arrive)
    assert same_bits(arrived, expected) or (np.isnan(arrived) and np.isnan(expected))
