"""float16 values are rounded between operators that one kernel computes, unless it makes no difference."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both

ROUNDED_LATER = {
    "abs": lambda b, x: b.abs(x),
    "clamp": lambda b, x: b.clamp(x, min_value=-0.3, max_value=1000.7),
    "neg": lambda b, x: b.neg(x),
    "relu": lambda b, x: b.relu(x),
}


@pytest.fixture
def check(ml, compiled):
    """Compares the outputs on both devices and returns the texts of the GPU's kernels."""

    async def check(arrays, draw):
        await check_both(ml, arrays, draw, is_finite=False)
        return compiled[-1][2]

    return check


async def test_rounding_behind_operators_that_keep_the_order_gives_the_same_bits(check):
    rng = np.random.default_rng(5)
    x, y = (rng.integers(0, 2**16, 4098).astype(np.uint16).view(np.float16) for _ in range(2))

    def draw(b, x, y):
        scale = b.constant(1.5, data_type="float16")
        return {name: b.mul(operator(b, b.add(x, y)), scale) for name, operator in ROUNDED_LATER.items()}

    with np.errstate(all="ignore"):
        sources = await check([x, y], draw)
    assert {source.count("rounded_half(") - 1 for source in sources} == {1}, "the kept rounding of mul's operand"


async def test_a_residual_is_added_to_a_rounded_product_and_the_sum_is_rounded_once(check):
    rng = np.random.default_rng(6)
    x, residual = (rng.standard_normal((6, 8)).astype(np.float16) for _ in range(2))
    weight = np.eye(8, dtype=np.float16) * np.float16(1.001)
    sources = await check([x, residual], lambda b, x, y: {"y": b.relu(b.add(b.matmul(x, b.constant(weight)), y))})
    assert [source.count("rounded_half(") for source in sources] == [2], "its function, and the product's"


async def test_what_wraps_is_wrapped_before_it_is_compared(check):
    x = np.array([100, -100, 127, 5], np.int8)
    await check([x], lambda b, x: {"y": b.relu(b.add(x, x))})
