"""Operators from quantized tensors to quantized ones: within one step of onnxruntime's."""

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import check, check_steps, each, node
from spec_tests.support.backends import BACKENDS

rng = np.random.default_rng(9)
MS = "com.microsoft."


pytestmark = pytest.mark.sampled(5)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    return request.param


def of_bytes(data_type, *shape):
    limits = np.iinfo(data_type)
    return rng.integers(limits.min, limits.max, shape, data_type, endpoint=True)


def scaled(value, point, data_type="uint8"):
    """A scale and a zero point."""
    return np.array(value, np.float32), np.array(point, data_type)


A, B = of_bytes("uint8", 2, 3, 4, 4), of_bytes("uint8", 3, 1, 4)
SIGNED = of_bytes("int8", 2, 3, 4, 4)
KNOWN = (1, 2, 3, 4)
"""Scales and zero points of one input and the output."""


@each(
    node(f"{MS}QLinearAdd", 1, A, *scaled(0.1, 100), B, *scaled(0.05, 7), *scaled(0.2, 128), known=(1, 2, 4, 5, 6, 7)),
    node(
        f"{MS}QLinearAdd", 1, SIGNED, *scaled(0.1, -3, "int8"), SIGNED[0], *scaled(0.05, 7, "int8"),
        *scaled(0.2, 8, "int8"),
    ),
    node(f"{MS}QLinearMul", 1, A, *scaled(0.1, 100), B, *scaled(0.05, 7), *scaled(0.9, 128)),
    node(f"{MS}QLinearMul", 1, A, *scaled(0.1, 100), B, *scaled(0.05, 7), scaled(0.9, 0)[0]),
    node(
        f"{MS}QLinearWhere", 1, A[0] > 99, A, *scaled(0.1, 100), B, *scaled(0.05, 7), *scaled(0.2, 128),
        known=(2, 3, 5, 6, 7, 8),
    ),
    node(f"{MS}QLinearSigmoid", 1, A, *scaled(0.05, 100), *scaled(1 / 256, 0), known=KNOWN),
    node(f"{MS}QLinearLeakyRelu", 1, A, *scaled(0.05, 100), *scaled(0.05, 20), alpha=0.3, known=KNOWN),
    node(
        f"{MS}QLinearSoftmax", 1, A, *scaled(0.02, 100), *scaled(1 / 256, 0), known=KNOWN, axis=-1, opset=13
    ),
    node(f"{MS}QLinearSoftmax", 1, A, *scaled(0.02, 100), *scaled(1 / 256, 0), known=KNOWN, axis=1, opset=11),
    node(f"{MS}QLinearConcat", 1, *scaled(0.1, 9), A, *scaled(0.05, 7), A, *scaled(0.1, 90), axis=1,
         known=(0, 1, 3, 4, 6, 7)),
    node(f"{MS}QLinearGlobalAveragePool", 1, A, *scaled(0.05, 7), *scaled(0.04, 3), known=KNOWN),
    node(
        f"{MS}QLinearGlobalAveragePool", 1, A, *scaled(0.05, 7), *scaled(0.04, 3), known=KNOWN, channels_last=1
    ),
    node(
        f"{MS}QLinearAveragePool", 1, A, *scaled(0.05, 7), *scaled(0.04, 3), known=KNOWN, kernel_shape=[2, 2],
        pads=[1, 0, 0, 1], strides=[2, 1],
    ),
    node(f"{MS}QuantizeLinear", 1, rng.uniform(-9, 9, [2, 3]).astype(np.float32), *scaled(0.1, 100)),
    node(f"{MS}QuantizeLinear", 1, rng.uniform(-9, 9, [3, 3]).astype(np.float32), np.float32([0.1, 0.2, 0.3]),
         np.uint8([100, 90, 80]), axis=0),
)  # fmt: skip
async def test_steps(context, case):
    await check_steps(context, case)


@each(
    node(f"{MS}DequantizeLinear", 1, A, *scaled(0.1, 100)),
    *(
        node(f"{MS}DequantizeLinear", 1, of_bytes("uint8", 3, 3), np.float32([1, 2, 3]), np.uint8([4, 5, 6]), axis=axis)
        for axis in (0, 1)
    ),
    node(f"{MS}DequantizeLinear", 1, of_bytes("uint16", 3, 4), *scaled(0.1, 100, "uint16"), known=(0, 2)),
    node(f"{MS}DequantizeLinear", 1, of_bytes("int16", 3, 4), *scaled(0.1, -7, "int16"), known=(0, 2)),
)
async def test_floats(context, case):
    await check(context, case)


EACH = np.arange(256, dtype=np.uint8).reshape(256, 1)
"""With its transpose, all pairs of bytes."""


@each(
    node(
        f"{MS}QLinearAdd", 1, EACH, *scaled(0.0078431, 0), EACH.T, *scaled(0.0078431, 0), *scaled(0.0156862, 0),
        known=(1, 2, 4, 5, 6, 7),
    ),
    node(
        f"{MS}QLinearAdd", 1, EACH, *scaled(0.5, 3), EACH.T, *scaled(0.25, 8), *scaled(1.0, 7),
        known=(1, 2, 4, 5, 6, 7),
    ),
    node(
        f"{MS}QLinearMul", 1, EACH, *scaled(0.5, 100), EACH.T, *scaled(0.25, 7), *scaled(4.0, 127),
        known=(1, 2, 4, 5, 6, 7),
    ),
)  # fmt: skip
async def test_halves_are_rounded_to_where_onnxruntime_rounds_them(context, case):
    await check(context, case)
