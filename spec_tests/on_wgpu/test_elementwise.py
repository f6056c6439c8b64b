"""Kernels of several operators: values that are never stored have data types too."""

import numpy as np
import pytest

from spec_tests.support.backends import BACKENDS
from spec_tests.support.both_devices import computed

EXTREMES = {
    "float16": np.array([65504, 2049, 0.1, 1 / 3], np.float16),
    "int8": np.array([127, 100, -128, -1], np.int8),
    "uint8": np.array([255, 200, 128, 1], np.uint8),
}
NUMBERS = np.array([[[[1, 2, -3], [4, 5, 6]]]], np.int8)


def draw_casts(builder, x):
    """From int8 to int8, by way of float16."""
    return builder.cast(builder.neg(builder.neg(builder.cast(x, "float16"))), "int8")


def draw_sum(builder, x):
    """A convolution of float16, stored as int8."""
    ones = builder.constant(np.ones((1, 1, 1, 1), np.float16))
    return builder.cast(builder.conv2d(builder.cast(x, "float16"), ones), "int8")


def draw_product(builder, x):
    """A product of float16, stored as int8."""
    ones = builder.constant(np.eye(3, dtype=np.float16))
    return builder.cast(builder.matmul(builder.cast(x, "float16"), ones), "int8")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("draw", [draw_casts, draw_sum, draw_product], ids=["casts", "a convolution", "a product"])
async def test_float16_between_integers(ml, backend, draw):
    np.testing.assert_array_equal(await computed(ml, [NUMBERS], draw, backend), NUMBERS)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("data_type", EXTREMES)
async def test_a_fused_value_is_narrowed_as_a_stored_one(ml, backend, data_type):
    x_data, last_data = EXTREMES[data_type], EXTREMES[data_type][-1]

    def draw(b, x):
        last = b.constant(np.full(4, last_data))
        return {
            "quotient": b.div(b.mul(x, x), last),
            "greatest": b.max(b.add(x, last), x),
            "difference": b.sub(b.add(x, last), last),
        }

    results = await computed(ml, [x_data], draw, backend)
    with np.errstate(over="ignore"):
        quotient = (x_data * x_data / last_data).astype(data_type).astype(np.float64)
        np.testing.assert_allclose(results["quotient"].astype(np.float64), quotient, rtol=1e-3, err_msg="quotient")
        np.testing.assert_array_equal(results["greatest"], np.maximum(x_data + last_data, x_data), "greatest")
        np.testing.assert_array_equal(results["difference"], x_data + last_data - last_data, "difference")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("data_type", EXTREMES)
async def test_what_a_reduction_reads_and_returns_is_narrowed(ml, backend, data_type):
    data = np.stack([EXTREMES[data_type], EXTREMES[data_type][::-1]])
    wide, count = ("float32", 4) if data_type == "float16" else ("int32", 1)

    def draw(b, x):
        outputs = {
            "before": b.reduce_sum(b.cast(b.add(x, x), wide), axes=[1]),
            "behind": b.sub(b.reduce_max(x, axes=[0]), x),
        }
        if data_type == "float16":
            third = b.constant(np.full(2, 1 / 3, np.float16))
            outputs["rounded"] = b.sub(b.cast(b.reduce_mean(x, axes=[1]), wide), b.cast(third, wide))
        return outputs

    results = await computed(ml, [data], draw, backend)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(results["before"], (data + data).astype(wide).sum(1), "before")
        np.testing.assert_array_equal(results["behind"], data.max(0) - data, "behind")
        if data_type == "float16":
            mean = (data.astype(wide).sum(1) / count).astype(data_type).astype(wide)
            np.testing.assert_array_equal(results["rounded"], mean - np.float32(np.float16(1 / 3)), "rounded")
