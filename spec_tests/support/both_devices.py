"""The same drawing on both devices, with data that no order of sums and products rounds."""

import numpy as np

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder


def integers(shape, data_type="float32", low=-4, high=5):
    low = 0 if data_type.startswith("u") else low
    return np.random.default_rng(list(shape)).integers(low, high, shape).astype(data_type)


async def check_both(ml, arrays, draw, *, rtol=0):
    """Compare the outputs of ``draw(builder, *operands)`` on both devices."""
    results = []
    for backend in ("numpy", "wgpu"):
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        inputs = {f"x{index}": array for index, array in enumerate(arrays)}
        operands = [
            builder.input(name, data_type=array.dtype.name, shape=array.shape) for name, array in inputs.items()
        ]
        results.append((await compute(context, builder, inputs, {"y": draw(builder, *operands)}))["y"])
        context.destroy()
    expected, got = results
    assert got.dtype == expected.dtype
    assert np.isfinite(expected).all()
    if rtol == 0:
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
