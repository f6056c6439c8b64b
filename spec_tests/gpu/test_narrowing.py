"""Kernels of several operators: values that are never stored have data types too."""

import numpy as np
import pytest

from spec_tests.support.backends import BACKENDS
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

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
    context = await ml.create_context(backend=backend)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="int8", shape=NUMBERS.shape)
    results = await compute(context, builder, {"x": NUMBERS}, {"y": draw(builder, x)})
    np.testing.assert_array_equal(results["y"], NUMBERS)
