"""float16 values are rounded between operators that one kernel computes, unless it makes no difference."""

import numpy as np

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

ROUNDED_LATER = {
    "abs": lambda b, x: b.abs(x),
    "clamp": lambda b, x: b.clamp(x, min_value=-0.3, max_value=1000.7),
    "neg": lambda b, x: b.neg(x),
    "relu": lambda b, x: b.relu(x),
}


async def on_both(ml, arrays, draw):
    """Compare the outputs on numpy and WebGPU, to the bit but for NaN's; returns the texts of the GPU's kernels."""
    results, sources = [], []
    for backend in ("numpy", "wgpu"):
        context = await ml.create_context(backend=backend)
        b = MLGraphBuilder(context)
        inputs = {f"x{index}": array for index, array in enumerate(arrays)}
        operands = [b.input(name, data_type=array.dtype.name, shape=array.shape) for name, array in inputs.items()]
        results.append(await compute(context, b, inputs, draw(b, *operands)))
        if backend == "wgpu":
            sources = list(context._device.backend._pipelines._of_graphs)
        context.destroy()
    for name, expected in results[0].items():
        np.testing.assert_array_equal(results[1][name], expected, name)
    return sources


async def test_rounding_behind_operators_that_keep_the_order_gives_the_same_bits(ml):
    rng = np.random.default_rng(5)
    x, y = (rng.integers(0, 2**16, 4098).astype(np.uint16).view(np.float16) for _ in range(2))

    def draw(b, x, y):
        scale = b.constant(1.5, data_type="float16")
        return {name: b.mul(operator(b, b.add(x, y)), scale) for name, operator in ROUNDED_LATER.items()}

    with np.errstate(all="ignore"):
        sources = await on_both(ml, [x, y], draw)
    assert {source.count("rounded_half(") - 1 for source in sources} == {1}, "the kept rounding of mul's operand"


async def test_a_residual_is_added_to_a_rounded_product_and_the_sum_is_rounded_once(ml):
    rng = np.random.default_rng(6)
    x, residual = (rng.standard_normal((6, 8)).astype(np.float16) for _ in range(2))
    weight = np.eye(8, dtype=np.float16) * np.float16(1.001)
    sources = await on_both(ml, [x, residual], lambda b, x, y: {"y": b.relu(b.add(b.matmul(x, b.constant(weight)), y))})
    assert [source.count("rounded_half(") for source in sources] == [2], "its function, and the product's"


async def test_what_wraps_is_wrapped_before_it_is_compared(ml):
    x = np.array([100, -100, 127, 5], np.int8)
    await on_both(ml, [x], lambda b, x: {"y": b.relu(b.add(x, x))})
