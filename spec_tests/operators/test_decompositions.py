"""Decompositions are complete, are called as their operators are, and repeat blocks as the text says.

What they compute is tested by every case of every operator, on the reference device, which has little else.
"""

import inspect

import numpy as np
import pytest

from spec_tests.operators.decomposed import DECOMPOSITIONS
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.core import reference
from webnn_py.core.decompositions import conversion
from webnn_py.core.operators.registry import OPERATORS


def test_every_operator_is_a_primitive_or_has_a_decomposition():
    assert set(DECOMPOSITIONS) | set(reference.KERNELS) == set(OPERATORS)
    assert not set(DECOMPOSITIONS) & set(reference.KERNELS)


def test_decompositions_are_called_as_their_operators_are():
    for name, function in DECOMPOSITIONS.items():
        declared = [parameter for key, parameter in OPERATORS[name].signature.parameters.items() if key != "label"]
        own = list(inspect.signature(function).parameters.values())[1:]
        assert [(one.name, one.kind, one.default) for one in own] == [
            (one.name, one.kind, one.default) for one in declared
        ], name


async def test_blockwise_expand_repeats_every_element_as_a_block(context, rng):
    builder, values = MLGraphBuilder(context), rng.standard_normal((2, 1, 3)).astype(np.float32)
    x = builder.input("x", data_type="float32", shape=values.shape)
    y = conversion.blockwise_expand(builder, x, [4, 5, 3])
    got = await compute(context, builder, {"x": values}, {"y": y})
    np.testing.assert_array_equal(got["y"], values.repeat(2, axis=0).repeat(5, axis=1))


OUT_OF_RANGE = {
    "a mean of a sum beyond float32": ("reduce_mean", [3e38, 3e38, -1.5e38, 3e38], 1.875e38),
    "a logarithm of a sum beyond float32": ("reduce_log_sum", [3e38, 3e38], 89.289993),
    "squares beyond float32": ("reduce_l2", [3e30, 4e30], 5e30),
    "squares below float32": ("reduce_l2", [3e-30, 4e-30], 5e-30),
    "squares of subnormal numbers": ("reduce_l2", [3e-41, 4e-41], 5e-41),
    "squares of a window beyond float32": ("l2_pool2d", [3e30, 4e30], 5e30),
    "squares of a window below float32": ("l2_pool2d", [3e-30, 4e-30], 5e-30),
}


@pytest.mark.parametrize("title", OUT_OF_RANGE)
async def test_what_leaves_the_range_on_the_way_is_scaled(ml, title):
    name, numbers, expected = OUT_OF_RANGE[title]
    context = await ml.create_context(backend="reference")
    builder, values = MLGraphBuilder(context), np.float32(numbers).reshape(1, 1, 1, -1)
    y = getattr(builder, name)(builder.input("x", data_type="float32", shape=values.shape))
    got = await compute(context, builder, {"x": values}, {"y": y})
    np.testing.assert_allclose(got["y"].ravel().astype(np.float64), [expected], rtol=1e-6, atol=1e-45)
