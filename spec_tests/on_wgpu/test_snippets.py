"""Quotients, roots and float16 are rounded to the nearest, whatever the adapter does."""

import math

import attrs
import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.device.on_wgpu import backend
from webnn_py.device.on_wgpu.backend import features_of
from webnn_py.device.on_wgpu.codegen.snippets import SNIPPETS

COUNT = 2**16


def of_bits(rng, *ranges):
    """Arrays of float32 numbers whose bits are drawn from ranges."""
    return [rng.integers(low, high, COUNT, np.uint32).view(np.float32) for low, high in ranges]


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
    context = await ml.create_context(backend="wgpu")
    a, b = of_bits(rng, *ranges)
    builder = MLGraphBuilder(context)
    x, y = (builder.input(name, data_type="float32", shape=[COUNT]) for name in "ab")
    drawn = {"a / b": builder.div(x, y), "1 / a": builder.reciprocal(x), "√a": builder.sqrt(x)}
    computed = await compute(context, builder, {"a": a, "b": b}, drawn)
    with np.errstate(all="ignore"):
        expected = {"a / b": a / b, "1 / a": np.float32(1) / a, "√a": np.sqrt(a)}
    for name, wanted in expected.items():
        got = computed[name]
        wrong = np.flatnonzero(~((got.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))))
        where = [(float(a[i]), float(b[i]), float(got[i]), float(wanted[i])) for i in wrong[:3]]
        assert not where, f"{name}: {len(wrong)} wrong; a, b, got, expected: {where}"


DIVISORS = [10.0, 2 - 2**-23, 2**0.5, -0.1, 3.0, 1 + 2**-23, 1.5 * 2.0**39, 2.0**-40]


async def test_quotients_of_constants_are_rounded_to_the_nearest(ml, rng, monkeypatch):
    """Also where the guess is off by a unit, besides what the adapter does."""
    text = SNIPPETS["quotient_by"]
    guess = "bitcast<u32>(a * inverse)"
    assert text.count(guess) == 1
    context = await ml.create_context(backend="wgpu")
    anything, plain, near = of_bits(rng, (0, 2**32), (0x3F000000, 0x40800000), (0x3F7FFFE0, 0x3F800020))
    for off, numbers in ((0, DIVISORS), (1, DIVISORS[:2]), (-1, DIVISORS[:2])):
        monkeypatch.setitem(SNIPPETS, "quotient_by", text.replace(guess, f"({guess} + bitcast<u32>({off}i))"))
        divisors = [np.float32(number) for number in numbers]
        with np.errstate(all="ignore"):
            edges = [near * divisor for divisor in divisors]
            beside = [np.nextafter(edge, np.float32(end)) for edge in edges for end in (-1e30, 1e30)]
            x = np.concatenate([anything, plain, *edges, *beside, np.float32([0.0, -0.0])])
            expected = {str(divisor): x / divisor for divisor in divisors}
        builder = MLGraphBuilder(context)
        operand = builder.input("x", data_type="float32", shape=x.shape)
        drawn = {str(divisor): builder.div(operand, builder.constant(divisor)) for divisor in divisors}
        for name, got in (await compute(context, builder, {"x": x}, drawn)).items():
            is_same = (got.view(np.uint32) == expected[name].view(np.uint32)) | (
                np.isnan(got) & np.isnan(expected[name])
            )
            where = [(float(x[i]), float(got[i]), float(expected[name][i])) for i in np.flatnonzero(~is_same)[:3]]
            wrong = np.count_nonzero(~is_same)
            assert not where, f"by {name}, off by {off}: {wrong} wrong; x, got, expected: {where}"


HALF_DIVISORS = [2**0.5, 14.0, -3.0, 26.0, 0.1, 2047.0, 1 + 2**-10, 8.0]


async def test_quotients_of_float16_constants_are_rounded_to_the_nearest(ml):
    """Of all numbers, also where they lie half-way between subnormal ones."""
    context = await ml.create_context(backend="wgpu")
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type="float16", shape=x.shape)
    divisors = [np.float16(number) for number in HALF_DIVISORS]
    drawn = {str(divisor): builder.div(operand, builder.constant(divisor)) for divisor in divisors}
    for divisor, (name, got) in zip(divisors, (await compute(context, builder, {"x": x}, drawn)).items(), strict=True):
        with np.errstate(all="ignore"):
            expected = x / divisor
        is_same = (got.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(got) & np.isnan(expected))
        where = [(float(x[i]), float(got[i]), float(expected[i])) for i in np.flatnonzero(~is_same)[:3]]
        assert not where, f"by {name}: {np.count_nonzero(~is_same)} wrong; x, got, expected: {where}"


@pytest.mark.parametrize("data_type", ["float32", "float16"])
async def test_zero_times_infinity_is_nan_though_compilers_take_it_for_zero(ml, data_type):
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type=data_type, shape=[4])
    zero = builder.constant(0, data_type=data_type)
    drawn = {"0 · x": builder.mul(zero, x), "x · 0": builder.mul(x, zero), "line": builder.linear(x, alpha=0, beta=0)}
    data = np.array([np.inf, -np.inf, np.nan, -3], data_type)
    for name, got in (await compute(context, builder, {"x": data}, drawn)).items():
        assert np.isnan(got).tolist() == [True, True, True, False], name
        assert got[3] == 0, name


@pytest.mark.parametrize("zero", [0.0, -0.0])
async def test_zero_times_a_number_has_the_sign_of_the_product(ml, zero):
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[4])
    constant = builder.constant(zero, data_type="float32")
    drawn = {"0 · x": builder.mul(constant, x), "x · 0": builder.mul(x, constant)}
    drawn["0 · chain"] = builder.mul(constant, builder.neg(builder.neg(x)))
    data = np.float32([3, -3, 0.0, -0.0])
    for name, got in (await compute(context, builder, {"x": data}, drawn)).items():
        assert np.signbit(got).tolist() == np.signbit(np.float32(zero) * data).tolist(), name


async def test_a_prelu_without_slope_is_nan_for_negative_infinity_alone(ml):
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[3])
    drawn = {"y": builder.prelu(x, builder.constant(0, data_type="float32"))}
    got = await compute(context, builder, {"x": np.float32([np.inf, -np.inf, -3])}, drawn)
    np.testing.assert_array_equal(got["y"], np.float32([np.inf, np.nan, 0]))


def near_halves(rng):
    """All float16, what lies midway between two of them and beside that, and others."""
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
async def test_float16_is_rounded_to_the_nearest(ml, rng, monkeypatch, lacking):
    monkeypatch.setattr(backend, "features_of", lambda device: attrs.evolve(features_of(device), **lacking))
    context = await ml.create_context(backend="wgpu")
    x = near_halves(rng)
    builder = MLGraphBuilder(context)
    y = builder.cast(builder.input("x", data_type="float32", shape=x.shape), "float16")
    got = (await compute(context, builder, {"x": x}, {"y": y}))["y"]
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    wrong = np.flatnonzero(~((got.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(got) & np.isnan(expected))))
    where = [(float(x[i]), float(got[i]), float(expected[i])) for i in wrong[:3]]
    assert not where, f"{len(wrong)} wrong; x, got, expected: {where}"


async def test_float16_between_operators_is_rounded_to_the_nearest(ml, rng):
    context = await ml.create_context(backend="wgpu")
    x = near_halves(rng)
    builder = MLGraphBuilder(context)
    half = builder.cast(builder.input("x", data_type="float32", shape=x.shape), "float16")
    got = -(await compute(context, builder, {"x": x}, {"y": builder.neg(builder.cast(half, "float32"))}))["y"]
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    wrong = np.flatnonzero(~((got.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(got) & np.isnan(expected))))
    where = [(float(x[i]), float(got[i]), float(expected[i])) for i in wrong[:3]]
    assert not where, f"{len(wrong)} wrong; x, got, expected: {where}"


async def test_erf_of_every_float16_is_the_nearest_or_the_one_beside_it(ml):
    context = await ml.create_context(backend="wgpu")
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    builder = MLGraphBuilder(context)
    y = builder.erf(builder.input("x", data_type="float16", shape=x.shape))
    got = (await compute(context, builder, {"x": x}, {"y": y}))["y"]
    with np.errstate(all="ignore"):
        expected = np.array([math.erf(value) for value in x.tolist()]).astype(np.float16)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
    steps = np.abs(got.view(np.int16).astype(int) - expected.view(np.int16))[~np.isnan(x)]
    assert steps.max() <= 1, f"{steps.max()} steps off at {x[~np.isnan(x)][steps.argmax()]}"
    assert np.count_nonzero(steps) < 100


@pytest.mark.parametrize("data_type", ["int32", "uint32"])
async def test_integers_become_the_nearest_floats(ml, rng, data_type):
    context = await ml.create_context(backend="wgpu")
    x = rng.integers(0, 2**32, COUNT, np.uint32).view(data_type)
    x[:8] = np.uint32([0, 1, 2**24 + 1, 2**25 + 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 129]).view(data_type)
    builder = MLGraphBuilder(context)
    y = builder.cast(builder.input("x", data_type=data_type, shape=x.shape), "float32")
    got = (await compute(context, builder, {"x": x}, {"y": y}))["y"]
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
