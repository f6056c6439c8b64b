"""Normalizations by the root mean square are one kernel, with the values of what was drawn."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both, computed
from spec_tests.support.rules import assert_becomes, assert_stays
from webnn_py import MLGraphBuilder
from webnn_py.devices.rewriting.root_mean_square import RMS_NORMALIZATION

RNG = np.random.default_rng(6)


def number(b, value):
    return b.constant(np.float32(value))


def rms(b, x, *, epsilon=1e-6, axes=None, by="reciprocal", power=None):
    """The normalization without a scale, as exporters draw it."""
    squares = b.mul(x, x) if power is None else b.pow(x, number(b, power))
    mean = b.reduce_mean(squares, axes=[x.rank - 1] if axes is None else axes, keep_dimensions=True)
    root = b.sqrt(b.add(number(b, epsilon), mean))
    if by == "root":
        return b.div(x, root)
    return b.mul(b.reciprocal(root) if by == "reciprocal" else b.div(number(b, 1), root), x)


def scaled(b, x):
    return b.mul(rms(b, x), b.constant(np.linspace(-1, 2, x.shape[-1], dtype=np.float32)))


def test_drawings_become_one_operator():
    drawings = {
        name: (draw, lambda b, x: b.rms_normalization(x, epsilon=1e-6))
        for name, draw in {
            "by a reciprocal": rms,
            "by a quotient of 1": lambda b, x: rms(b, x, by="one"),
            "by the root": lambda b, x: rms(b, x, by="root"),
            "of a power": lambda b, x: rms(b, x, power=2),
        }.items()
    }
    assert_becomes(RMS_NORMALIZATION, [3, 8], "float32", drawings)


def test_what_differs_stays():
    drawings = {
        "of a small epsilon": (lambda b, x: rms(b, x, epsilon=1e-20), "it must be at least 1e-12"),
        "along another axis": (lambda b, x: rms(b, x, axes=[0]), "along the last one"),
        "of the third power": (lambda b, x: rms(b, x, power=3), ""),
    }
    assert_stays(RMS_NORMALIZATION, [3, 8], drawings)


def in_float16(b, x):
    """The normalization as models of float16 have it: computed in float32, and rounded before it is scaled."""
    y = b.cast(rms(b, b.cast(x, "float32"), epsilon=1e-5), "float16")
    return b.mul(y, b.constant(np.linspace(-1, 2, x.shape[-1]).astype(np.float16)))


def of_a_residual(b, x):
    total = b.add(x, b.matmul(x, b.constant(np.eye(x.shape[-1], dtype=np.float32))))
    return {"total": total, "y": scaled(b, total)}


@pytest.mark.usefixtures("adapter_features")
@pytest.mark.parametrize("shape", [(1, 1, 256), (5, 24), (3, 7), (2, 4099), (2, 9_000), (1, 30_001), (70_000, 4)])
async def test_values_are_those_of_the_drawing(ml, shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    for draw in (scaled, rms):
        await check_both(ml, [x], draw, rtol=3e-6)


@pytest.mark.usefixtures("adapter_features")
async def test_float16_is_rounded_as_drawn(ml):
    x = RNG.standard_normal((5, 64)).astype(np.float16)
    await check_both(ml, [x], in_float16, rtol=2e-3)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e18, 1e19, 3e38, 1e-18, 1e-30, 1e-45])
async def test_any_number_is_normalized_as_it_was_drawn(ml, special):
    x = RNG.standard_normal((4, 24)).astype(np.float32)
    x[1, 3:5] = special
    with np.errstate(all="ignore"):
        await check_both(ml, [x], scaled, rtol=3e-6, is_finite=False)


async def test_a_sum_of_squares_may_be_larger_than_any_number(ml):
    got = await computed(ml, [np.full((2, 24), 1e19, np.float32)], rms)
    np.testing.assert_allclose(got, np.ones((2, 24)), rtol=3e-6)


@pytest.mark.parametrize(("draw", "kernels"), [(scaled, 1), (in_float16, 1), (of_a_residual, 2)])
async def test_kernels(ml, compiled, draw, kernels):
    context = await ml.create_context(backend="wgpu")
    builder = MLGraphBuilder(context)
    data_type = "float16" if draw is in_float16 else "float32"
    drawn = draw(builder, builder.input("x", data_type=data_type, shape=[2, 64]))
    await builder.build(drawn if isinstance(drawn, dict) else {"y": drawn})
    assert compiled[-1][0] == kernels
    context.destroy()
