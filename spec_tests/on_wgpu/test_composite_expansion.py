"""Quantization in blocks along five axes, which cut into blocks are more axes than an operand may have."""

import numpy as np
import pytest

from spec_tests.support.backends import BACKENDS
from spec_tests.support.both_devices import computed

SHAPE, OF_SCALE = (4, 4, 4, 4, 4), (2, 2, 2, 2, 2)


def in_blocks(parameter):
    for axis in range(parameter.ndim):
        parameter = np.repeat(parameter, 2, axis)
    return parameter


@pytest.mark.parametrize("backend", BACKENDS)
async def test_blocks_along_five_axes(ml, rng, backend):
    given = {
        "x": rng.integers(-100, 100, SHAPE).astype(np.int8),
        "scale": rng.integers(1, 9, OF_SCALE).astype(np.float32) / 8,
        "zero_point": rng.integers(-9, 9, OF_SCALE).astype(np.int8),
    }

    def draw(b, x, scale, zero_point):
        floats = b.dequantize_linear(x, scale, zero_point)
        return {"floats": floats, "again": b.quantize_linear(floats, scale, zero_point)}

    results = await computed(ml, given, draw, backend)
    distance = given["x"].astype(np.float32) - in_blocks(given["zero_point"])
    np.testing.assert_array_equal(results["floats"], distance * in_blocks(given["scale"]))
    np.testing.assert_array_equal(results["again"], given["x"])
