"""What random graphs of hostile data found, each on every device; ``python -m spec_tests.oracles`` finds more."""

import numpy as np

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

MANY = 4000
"""More than kernels for few elements take."""


async def test_one_condition_chooses_for_many_elements(context):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[MANY])
    condition = builder.input("condition", data_type="uint8", shape=[])
    given = {"x": np.arange(MANY, dtype=np.float32), "condition": np.array(2, np.uint8)}
    outputs = {"y": builder.where(condition, x, builder.constant(np.float32(-1)))}
    np.testing.assert_array_equal((await compute(context, builder, given, outputs))["y"], given["x"])


async def test_a_quotient_is_rounded_to_float32_before_it_is_quantized(context):
    """To an odd number of 25 bits, or midway between two integers: float32 has none there."""
    builder = MLGraphBuilder(context)
    given = {"x": np.float32([2.4892652e7, 1843, -1843, 3.5])}
    x = builder.input("x", data_type="float32", shape=[4])
    scale = builder.constant(np.float16([0.1]).astype(np.float32))
    y = builder.quantize_linear(x, scale, builder.constant(np.int32([3])))
    quotients = given["x"] / np.float32(np.float16(0.1))
    expected = np.rint(quotients).astype(np.int32) + 3
    assert expected[1] == 18434 + 3
    np.testing.assert_array_equal((await compute(context, builder, given, {"y": y}))["y"], expected)
