"""Quotients, roots and float16 are rounded to the nearest, whatever the adapter does."""

import math

import numpy as np
import pytest

from spec_tests.support.both_devices import computed
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.devices.wgpu.codegen.snippets import SNIPPETS

COUNT = 2**16


def of_bits(rng, *ranges):
    """Arrays of float32 numbers whose bits are drawn from ranges."""
    return [rng.integers(low, high, COUNT, np.uint32).view(np.float32) for low, high in ranges]


def assert_same_bits(got, expected, *operands, name=""):
    """Floats are the same to the bit, except that any NaN is as good as another."""
    bits = f"u{got.itemsize}"
    is_same = (got.view(bits) == expected.view(bits)) | (np.isnan(got) & np.isnan(expected))
    wrong = np.flatnonzero(~is_same)
    where = [tuple(float(array[place]) for array in (*operands, got, expected)) for place in wrong[:3]]
    assert not where, f"{name}: {len(wrong)} wrong; operands, got, expected: {where}"


NUMBERS = {
    "any numbers": [(0, 2**32), (0, 2**32)],
    "quotients that are subnormal": [(0x00800000, 0x10000000), (0x47000000, 0x50000000)],
    "subnormal numbers": [(0, 2**23 + 99), (0x80000000, 0x80000000 + 2**23 + 99)],
    "significands near each other": [(0x3F800000, 0x3F800040), (0x3F7FFFC0, 0x3F800040)],
}


@pytest.fixture(params=[0, 1, -3, 4], ids="off by {}".format)
def off(request, monkeypatch):
    """By how much the guess of a quotient or root is off, besides what the adapter does."""
    for name in ("quotient", "root"):
        text = SNIPPETS[name]
        guess = next(line for line in text.splitlines() if line.startswith("  var times = "))
        monkeypatch.setitem(SNIPPETS, name, text.replace(guess, f"{guess[:-1]} + bitcast<u32>({request.param}i);"))


@pytest.mark.usefixtures("off")
@pytest.mark.parametrize("ranges", NUMBERS.values(), ids=NUMBERS)
async def test_quotients_and_roots_are_rounded_to_the_nearest(ml, rng, ranges):
    a, b = of_bits(rng, *ranges)
    got = await computed(ml, [a, b], lambda b, x, y: (b.div(x, y), b.reciprocal(x), b.sqrt(x)))
    with np.errstate(all="ignore"):
        expected = {"a / b": a / b, "1 / a": np.float32(1) / a, "√a": np.sqrt(a)}
    for (name, wanted), ours in zip(expected.items(), got.values(), strict=True):
        assert_same_bits(ours, wanted, a, b, name=name)


DIVISORS = [10.0, 2 - 2**-23, 2**0.5, -0.1, 3.0, 1 + 2**-23, 1.5 * 2.0**39, 2.0**-40]


async def test_quotients_of_constants_are_rounded_to_the_nearest(ml, rng, monkeypatch):
    """Also where the guess is off by a unit, besides what the adapter does."""
    text = SNIPPETS["quotient_by"]
    guess = "bitcast<u32>(a * inverse)"
    assert text.count(guess) == 1
    anything, plain, near = of_bits(rng, (0, 2**32), (0x3F000000, 0x40800000), (0x3F7FFFE0, 0x3F800020))
    for off, numbers in ((0, DIVISORS), (1, DIVISORS[:2]), (-1, DIVISORS[:2])):
        monkeypatch.setitem(SNIPPETS, "quotient_by", text.replace(guess, f"({guess} + bitcast<u32>({off}i))"))
        divisors = [np.float32(number) for number in numbers]
        with np.errstate(all="ignore"):
            edges = [near * divisor for divisor in divisors]
            beside = [np.nextafter(edge, np.float32(end)) for edge in edges for end in (-1e30, 1e30)]
            x = np.concatenate([anything, plain, *edges, *beside, np.float32([0.0, -0.0])])
            expected = {str(divisor): x / divisor for divisor in divisors}
        got = await computed(ml, [x], lambda b, x: {str(one): b.div(x, b.constant(one)) for one in divisors})  # noqa: B023 - called at once
        for name, wanted in expected.items():
            assert_same_bits(got[name], wanted, x, name=f"by {name}, off by {off}")


HALF_DIVISORS = [2**0.5, 14.0, -3.0, 26.0, 0.1, 2047.0, 1 + 2**-10, 8.0]


async def test_quotients_of_float16_constants_are_rounded_to_the_nearest(ml):
    """Also quotients half-way between subnormal numbers."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    divisors = [np.float16(number) for number in HALF_DIVISORS]
    results = await computed(ml, [x], lambda b, x: tuple(b.div(x, b.constant(divisor)) for divisor in divisors))
    for divisor, got in zip(divisors, results.values(), strict=True):
        with np.errstate(all="ignore"):
            assert_same_bits(got, x / divisor, x, name=f"by {divisor}")


@pytest.mark.parametrize("data_type", ["float32", "float16"])
async def test_zero_times_infinity_is_nan_though_compilers_take_it_for_zero(ml, data_type):
    def draw(b, x):
        zero = b.constant(0, data_type=data_type)
        return {"0 · x": b.mul(zero, x), "x · 0": b.mul(x, zero), "line": b.linear(x, alpha=0, beta=0)}

    for name, got in (await computed(ml, [np.array([np.inf, -np.inf, np.nan, -3], data_type)], draw)).items():
        assert np.isnan(got).tolist() == [True, True, True, False], name
        assert got[3] == 0, name


@pytest.mark.parametrize("zero", [0.0, -0.0])
async def test_zero_times_a_number_has_the_sign_of_the_product(ml, zero):
    def draw(b, x):
        constant = b.constant(zero, data_type="float32")
        return b.mul(constant, x), b.mul(x, constant), b.mul(constant, b.neg(b.neg(x)))

    data = np.float32([3, -3, 0.0, -0.0])
    for got in (await computed(ml, [data], draw)).values():
        assert np.signbit(got).tolist() == np.signbit(np.float32(zero) * data).tolist()


async def test_a_prelu_without_slope_is_nan_for_negative_infinity_alone(ml):
    x = np.float32([np.inf, -np.inf, -3])
    got = await computed(ml, [x], lambda b, x: b.prelu(x, b.constant(0, data_type="float32")))
    np.testing.assert_array_equal(got, np.float32([np.inf, np.nan, 0]))


def near_halves(rng):
    """Return all float16, the numbers midway between two of them, their neighbours, and others."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        ties = halves + np.abs(np.spacing(halves.astype(np.float16)).astype(np.float32)) / 2
        ties = np.where(np.isfinite(ties), ties, 65520).astype(np.float32)
        beside = [np.nextafter(ties, np.float32(end)) for end in (-1e30, 1e30)]
    (anything,) = of_bits(rng, (0x80000000 + 0x32000000, 0x80000000 + 0x48000000))
    return np.concatenate(
        [halves, ties, *beside, anything, np.float32([1e30, -1e30, 65519.996, 65520, np.inf, -np.inf])]
    )


@pytest.mark.parametrize("lacking", [{}, {"shader_f16": False}], ids=["with shader-f16", "packed in words"])
async def test_float16_is_rounded_to_the_nearest(ml, rng, change_features, lacking):
    change_features(**lacking)
    x = near_halves(rng)
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    assert_same_bits(await computed(ml, [x], lambda b, x: b.cast(x, "float16")), expected, x)


async def test_float16_between_operators_is_rounded_to_the_nearest(ml, rng):
    x = near_halves(rng)
    got = -await computed(ml, [x], lambda b, x: b.neg(b.cast(b.cast(x, "float16"), "float32")))
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    assert_same_bits(got, expected, x)


async def test_erf_of_every_float16_is_the_nearest_or_the_one_beside_it(ml):
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    got = await computed(ml, [x], lambda b, x: b.erf(x))
    with np.errstate(all="ignore"):
        expected = np.array([math.erf(value) for value in x.tolist()]).astype(np.float16)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
    steps = np.abs(got.view(np.int16).astype(int) - expected.view(np.int16))[~np.isnan(x)]
    assert steps.max() <= 1, f"{steps.max()} steps off at {x[~np.isnan(x)][steps.argmax()]}"
    assert np.count_nonzero(steps) < 100


@pytest.mark.parametrize("data_type", ["int32", "uint32"])
async def test_integers_become_the_nearest_floats(ml, rng, data_type):
    x = rng.integers(0, 2**32, COUNT, np.uint32).view(data_type)
    x[:8] = np.uint32([0, 1, 2**24 + 1, 2**25 + 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 129]).view(data_type)
    got = await computed(ml, [x], lambda b, x: b.cast(x, "float32"))
    np.testing.assert_array_equal(got, x.astype(np.float32))


WIDENED = {
    "int32": [6, 5, 4, 0, -1, -5, -6, -7, 2**31 - 1, -(2**31)],
    "uint32": [6, 5, 4, 0, 1, 2**31 - 1, 2**31, 2**32 - 6, 2**32 - 1, 7],
    "int8": [6, 5, 4, 0, -1, -5, -6, -7, 127, -128],
    "uint8": [6, 5, 4, 0, 1, 127, 128, 250, 255, 7],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("wide", ["int64", "uint64"])
@pytest.mark.parametrize("data_type", WIDENED)
async def test_integers_made_wider_compare_as_what_they_are(ml, data_type, wide):
    context = await ml.create_context(backend="wgpu")
    if wide not in context.op_support_limits()["input"]["data_types"]:
        pytest.skip(f"this adapter has no {wide}")
    data = np.array(WIDENED[data_type], data_type)
    builder = MLGraphBuilder(context)
    narrow = builder.input("x", data_type=data_type, shape=data.shape)

    def x():
        """A cast of its own for what reads it, in whose kernel it then is."""
        return builder.cast(narrow, wide)

    outputs, expected = {}, {}
    for number in (5, 0, -6, 2**31 - 1, 2**31, -(2**31)):
        if number < 0 and wide == "uint64":
            continue
        for method in ("equal", "greater", "greater_or_equal", "lesser", "lesser_or_equal"):
            compare = getattr(np, method.replace("lesser", "less").replace("_or", ""))
            for swapped in (False, True):
                operands = [x(), builder.constant(number, data_type=wide)]
                arrays = [data.astype(wide), np.array(number, wide)]
                name = f"{method} {number} {'swapped' if swapped else ''}"
                outputs[name] = getattr(builder, method)(*operands[:: -1 if swapped else 1])
                expected[name] = compare(*arrays[:: -1 if swapped else 1])
    if wide == "int64":
        outputs["abs"], expected["abs"] = builder.abs(x()), np.abs(data.astype(wide))
        outputs["float"], expected["float"] = builder.cast(builder.abs(x()), "float32"), np.abs(data.astype(wide))
        place = builder.arg_max(x(), axis=0, output_data_type="int64")
        outputs["place"] = builder.lesser(place, builder.constant(9, data_type="int64"))
        expected["place"] = data.argmax() < 9
    computed = await compute(context, builder, {"x": data}, outputs)
    for name, wanted in expected.items():
        np.testing.assert_array_equal(computed[name], wanted.astype(computed[name].dtype), name)
