"""Dynamic quantization by numpy: one kernel, with the bits of the operators that it is drawn in."""

import numpy as np
import pytest

from spec_tests.on_numpy.drawing import Drawing, operators_of, results
from webnn_py.core.device.compiling.expansion import expand
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE, dynamically_quantized
from webnn_py.devices.numpy.backend import CAPABILITIES
from webnn_py.devices.numpy.composites.dynamic_quantization import PIECE

RANGES = {
    "both signs": lambda x: x,
    "positive": lambda x: np.abs(x) + 1,
    "negative": lambda x: -np.abs(x) - 1,
    "ties": lambda x: np.rint(4 * x) / 2,
    "zeros": lambda x: -0 * x,
    "NaN": lambda x: np.where(x > 2, np.nan, x),
    "only NaN": lambda x: np.nan * x,
    "infinities": lambda x: np.where(np.abs(x) > 2, np.inf * x, x),
    "the smallest": lambda x: np.where(x > 0, 1e-45, 0),
    "the largest": lambda x: np.where(x > 0, 3e38, -3e38),
}


@pytest.mark.parametrize("change", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("shape", [(3, PIECE // 2), (5,)], ids=str)
def test_it_is_one_kernel_with_the_same_bits(shape, change):
    with np.errstate(all="ignore"):
        array = change(np.random.default_rng(18).normal(size=shape)).astype(np.float32)
    names = ("integers", "scale", "zero_point")
    b, drawn = Drawing(), Drawing()
    whole = b.graph(**dict(zip(names, b.append(DYNAMIC_QUANTIZE, b.given("x", array)), strict=True)))
    parts = drawn.graph(**dict(zip(names, dynamically_quantized(drawn, drawn.given("x", array)), strict=True)))
    assert operators_of(expand(whole, CAPABILITIES)) == ["dynamic_quantize"]
    expected = results(parts, {"x": array})
    for name, found in results(whole, {"x": array}).items():
        np.testing.assert_array_equal(found, expected[name], err_msg=name)
