"""Quantization in blocks along so many axes that, cut into blocks, they are more than an operand may have."""

import numpy as np
import pytest

from spec_tests.support.backends import BACKENDS
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

SHAPE, OF_SCALE = (4, 4, 4, 4, 4), (2, 2, 2, 2, 2)


def in_blocks(parameter):
    for axis in range(parameter.ndim):
        parameter = np.repeat(parameter, 2, axis)
    return parameter


@pytest.mark.parametrize("backend", BACKENDS)
async def test_blocks_along_five_axes(ml, rng, backend):
    context = await ml.create_context(backend=backend)
    given = {
        "x": rng.integers(-100, 100, SHAPE).astype(np.int8),
        "scale": rng.integers(1, 9, OF_SCALE).astype(np.float32) / 8,
        "zero_point": rng.integers(-9, 9, OF_SCALE).astype(np.int8),
    }
    builder = MLGraphBuilder(context)
    operands = {name: builder.input(name, data_type=a.dtype.name, shape=a.shape) for name, a in given.items()}
    floats = builder.dequantize_linear(*operands.values())
    again = builder.quantize_linear(floats, operands["scale"], operands["zero_point"])
    results = await compute(context, builder, given, {"floats": floats, "again": again})
    distance = given["x"].astype(np.float32) - in_blocks(given["zero_point"])
    np.testing.assert_array_equal(results["floats"], distance * in_blocks(given["scale"]))
    np.testing.assert_array_equal(results["again"], given["x"])
