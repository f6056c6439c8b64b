"""Subnormal numbers in large constants of products become zeros, unless they are few or are to be kept."""

import numpy as np
import pytest

from webnn_py import MLGraphBuilder

LEAST = np.finfo(np.float32).smallest_normal


async def product(ml, backend, weights, **options):
    """Return the weights times 2**40, by a product, in which subnormal numbers are normal."""
    context = await ml.create_context(backend=backend, **options)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[len(weights)] * 2)
    graph = await builder.build({"y": builder.matmul(x, builder.constant(weights))})
    given, made = [
        await context.create_buffer(data_type="float32", shape=weights.shape, readable=True, writable=True)
        for _ in range(2)
    ]
    context.write_buffer(given, np.eye(len(weights), dtype=np.float32) * np.float32(2**40))
    context.dispatch(graph, {"x": given}, {"y": made})
    return await context.read_buffer(made)


def weights_with(share):
    weights = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    weights.reshape(-1)[:: round(1 / share)] = [LEAST / 2, -LEAST / 4] * (-(-weights.size // round(1 / share)) // 2)
    return weights


@pytest.mark.parametrize("backend", ["numpy", "onnxruntime"])
async def test_many_subnormal_numbers_become_zeros_and_all_others_stay(ml, backend):
    weights = weights_with(1 / 4)
    expected = np.where(np.abs(weights) < LEAST, np.float32(0), weights) * np.float32(2**40)
    np.testing.assert_array_equal(await product(ml, backend, weights), expected)
    kept = await product(ml, backend, weights, keep_subnormals=True)
    np.testing.assert_array_equal(kept, weights * np.float32(2**40))


@pytest.mark.parametrize("backend", ["numpy", "onnxruntime"])
async def test_few_subnormal_numbers_and_small_constants_stay(ml, backend):
    few = np.linspace(-1, 1, 256 * 256, dtype=np.float32).reshape(256, 256)
    few[3, 4] = LEAST / 2
    small = weights_with(1 / 4)[:16, :16]
    for weights in (few, small):
        np.testing.assert_array_equal(await product(ml, backend, weights), weights * np.float32(2**40))
