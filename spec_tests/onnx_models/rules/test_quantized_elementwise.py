"""Operators from quantized tensors to quantized ones: within one step of onnxruntime's."""

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import Random, check_steps, compared, microsoft, scaled
from spec_tests.support.backends import BACKENDS, on_each

random = Random(9, -9, 9)
floats, of_type = random.floats, random.integers


pytestmark = pytest.mark.sampled(5)


backend = on_each(BACKENDS)


A, B = of_type("uint8", 2, 3, 4, 4), of_type("uint8", 3, 1, 4)
SIGNED = of_type("int8", 2, 3, 4, 4)
KNOWN, BOTH_KNOWN = (1, 2, 3, 4), (1, 2, 4, 5, 6, 7)
"""Scales and zero points of one input or two, and of the output."""


def of_one(operator, scale, result, **options):
    """Return a case of an operator of one input."""
    return microsoft(f"QLinear{operator}", A, *scale, *result, known=KNOWN, **options)


def of_two(operator, left, right, result, *, a=A, b=B, **options):
    """Return a case of an operator of two inputs."""
    return microsoft(f"QLinear{operator}", a, *left, b, *right, *result, **options)


LEFT, RIGHT = scaled(0.1, 100), scaled(0.05, 7)
SIGNED_STEPS = scaled(0.1, -3, np.int8), scaled(0.05, 7, np.int8), scaled(0.2, 8, np.int8)
WINDOWS = {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1], "strides": [2, 1]}


test_steps = compared(
    of_two("Add", LEFT, RIGHT, scaled(0.2, 128), known=BOTH_KNOWN),
    of_two("Add", *SIGNED_STEPS, a=SIGNED, b=SIGNED[0]),
    of_two("Mul", LEFT, RIGHT, scaled(0.9, 128)),
    of_two("Mul", LEFT, RIGHT, scaled(0.9, 0)[:1]),
    microsoft("QLinearWhere", A[0] > 99, A, *LEFT, B, *RIGHT, *scaled(0.2, 128), known=(2, 3, 5, 6, 7, 8)),
    of_one("Sigmoid", scaled(0.05, 100), scaled(1 / 256, 0)),
    of_one("LeakyRelu", scaled(0.05, 100), scaled(0.05, 20), alpha=0.3),
    of_one("Softmax", scaled(0.02, 100), scaled(1 / 256, 0), axis=-1, opset=13),
    of_one("Softmax", scaled(0.02, 100), scaled(1 / 256, 0), axis=1, opset=11),
    microsoft("QLinearConcat", *scaled(0.1, 9), A, *RIGHT, A, *scaled(0.1, 90), axis=1, known=(0, 1, 3, 4, 6, 7)),
    of_one("GlobalAveragePool", RIGHT, scaled(0.04, 3)),
    of_one("GlobalAveragePool", RIGHT, scaled(0.04, 3), channels_last=1),
    of_one("AveragePool", RIGHT, scaled(0.04, 3), **WINDOWS),
    microsoft("QuantizeLinear", floats(2, 3), *LEFT),
    microsoft("QuantizeLinear", floats(3, 3), np.float32([0.1, 0.2, 0.3]), np.uint8([100, 90, 80]), axis=0),
    by=check_steps,
)


OF_ROWS = of_type("uint8", 3, 3), np.float32([1, 2, 3]), np.uint8([4, 5, 6])


test_floats = compared(
    microsoft("DequantizeLinear", A, *LEFT),
    *(microsoft("DequantizeLinear", *OF_ROWS, axis=axis) for axis in (0, 1)),
    microsoft("DequantizeLinear", of_type("uint16", 3, 4), *scaled(0.1, 100, np.uint16), known=(0, 2)),
    microsoft("DequantizeLinear", of_type("int16", 3, 4), *scaled(0.1, -7, np.int16), known=(0, 2)),
)


EACH = np.arange(256, dtype=np.uint8).reshape(256, 1)
PAIRS = {"a": EACH, "b": EACH.T, "known": BOTH_KNOWN}
"""All pairs of bytes."""


test_halves_are_rounded_to_where_onnxruntime_rounds_them = compared(
    of_two("Add", scaled(0.0078431, 0), scaled(0.0078431, 0), scaled(0.0156862, 0), **PAIRS),
    of_two("Add", scaled(0.5, 3), scaled(0.25, 8), scaled(1.0, 7), **PAIRS),
    of_two("Mul", scaled(0.5, 100), scaled(0.25, 7), scaled(4.0, 127), **PAIRS),
)
