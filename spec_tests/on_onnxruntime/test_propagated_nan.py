"""onnxruntime propagates NaN through every operator that declares it, so that guards and outputs show it."""

import math

import numpy as np
import pytest

from spec_tests.operators.minimal import draw_operands, minimal, outputs_of, tensors_of
from spec_tests.operators.test_facts import DRAWS, OPTIONS, feeds_of
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.core.operators.registry import OPERATORS

pytest.importorskip("onnxruntime")


async def computed(context, name, arguments, operand, feeds):
    """Draw an operator of gelu, where onnxruntime's Gelu makes NaN of -Infinity."""
    builder = MLGraphBuilder(context)
    drawn = draw_operands(builder, arguments)
    if isinstance(drawn[operand], list):
        drawn[operand] = [builder.gelu(drawn[operand][0]), *drawn[operand][1:]]
    else:
        drawn[operand] = builder.gelu(drawn[operand])
    return await compute(context, builder, feeds, outputs_of(getattr(builder, name)(**drawn)))


def calls():
    """Each operand of float32 whose NaN an operator propagates, with some arguments."""
    for name, operator in OPERATORS.items():
        for operand in operator.nan_operands:
            for options in ({}, *OPTIONS.get(name, ())):
                arguments = minimal(name) | options
                types = {key.partition("[")[0]: tensor.data_type for key, tensor in tensors_of(arguments)}
                if types[operand] == "float32":
                    yield name, operand, arguments


async def test_nan_that_onnxruntime_makes_is_visible_behind_every_operator_that_propagates_it(contexts):
    found, rng = [], np.random.default_rng(8)
    for name, operand, arguments in calls():
        feeds = feeds_of(arguments, DRAWS["positive"], rng)
        key = next(key for key in feeds if key.partition("[")[0] == operand)
        feeds[key].reshape(-1)[0] = -math.inf
        got, expected = [await computed(context, name, arguments, operand, feeds) for context in contexts]
        for output, wanted in expected.items():
            # The zero that gelu makes of -Infinity may have either sign, and what is divided by it.
            if not np.allclose(np.abs(got[output]), np.abs(wanted), rtol=1e-4, atol=1e-5, equal_nan=True):
                found.append(f"{name} of {operand}: {got[output]}, not {wanted}")
    assert not found, "\n".join(found)
