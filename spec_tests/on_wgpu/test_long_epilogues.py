"""Products whose last step is long: it is written once, in a loop over the sums, and computes the same."""

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder


def gelu(b, x, data_type):
    """As models draw it, step by step."""
    half, one, root = (b.constant(number, data_type=data_type) for number in (0.5, 1, 2**0.5))
    return b.mul(b.mul(x, half), b.add(b.erf(b.div(x, root)), one))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(64, 32, 200), (37, 30, 66)], ids=str)
async def test_a_long_last_step(ml, data_type, shape):
    rows, inner, columns = shape
    rng = np.random.default_rng(rows)
    x = (rng.integers(-8, 9, (rows, inner)) / 8).astype(data_type)
    weight = (rng.integers(-8, 9, (inner, columns)) / 16).astype(data_type)
    results, sources = [], []
    for backend in ("numpy", "wgpu"):
        context = await ml.create_context(backend=backend)
        b = MLGraphBuilder(context)
        operand = b.input("x", data_type=data_type, shape=x.shape)
        y = gelu(b, b.matmul(operand, b.constant(weight)), data_type)
        results.append((await compute(context, b, {"x": x}, {"y": y}))["y"].astype(np.float32))
        if backend == "wgpu":
            sources = [kernel for kernel in context._device.backend._pipelines._of_graphs if "fn chain(" in kernel]
    rtol = 1e-5 if data_type == "float32" else 2e-3
    np.testing.assert_allclose(results[1], results[0], rtol=rtol, atol=rtol)
    calls = {source.count("ended(") + source.count("ended_one(") for source in sources if "totals[share]" in source}
    assert calls <= {3, 6}, "its function, one call of it by finish, and one more, or one for each of four elements"
    assert calls
