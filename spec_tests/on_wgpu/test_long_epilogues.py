"""Products whose last step is long: it is written once, in a loop over the sums, and computes the same."""

import numpy as np
import pytest

from spec_tests.support.both_devices import check_both


def gelu(b, x, data_type):
    """As models draw it, step by step."""
    half, one, root = (b.constant(number, data_type=data_type) for number in (0.5, 1, 2**0.5))
    return b.mul(b.mul(x, half), b.add(b.erf(b.div(x, root)), one))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(64, 32, 200), (37, 30, 66)], ids=str)
async def test_a_long_last_step(ml, compiled, data_type, shape):
    rows, inner, columns = shape
    rng = np.random.default_rng(rows)
    x = (rng.integers(-8, 9, (rows, inner)) / 8).astype(data_type)
    weight = (rng.integers(-8, 9, (inner, columns)) / 16).astype(data_type)
    rtol = 1e-5 if data_type == "float32" else 2e-3
    await check_both(ml, [x], lambda b, x: gelu(b, b.matmul(x, b.constant(weight)), data_type), rtol=rtol)
    sources = [source for source in compiled[-1][2] if "fn chain(" in source and "totals[share]" in source]
    calls = {source.count("ended(") + source.count("ended_one(") for source in sources}
    assert calls <= {3, 6}, "its function, one call of it by finish, and one more, or one for each of four elements"
    assert calls
