"""Activations far from zero are their limits exactly, alone and behind a product, on every device."""

import math

import attrs
import numpy as np
import pytest

from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

FAR = (math.inf, 3e38, 65504, 1e4, 500, 200)
"""From 106 on, e to the power of minus that is 0 also as a subnormal float32. Float16 has no more than 65504."""


@attrs.frozen
class Limit:
    """The values of an activation far from zero.

    Attributes:
        draw: draws it.
        below: what it is far below zero; zeros may have either sign.
        above: what it is far above, or None for the element itself.
        further: magnitudes, nearer to zero, of negative elements for which it is the same.
    """

    draw: object
    below: float
    above: float | None = None
    further: tuple[float, ...] = ()


LIMITS = {
    "elu": Limit(lambda b, x: b.elu(x, alpha=0.5), -0.5, further=(105, 30)),
    "erf": Limit(lambda b, x: b.erf(x), -1, 1, further=(105, 5)),
    "gelu": Limit(lambda b, x: b.gelu(x), 0, further=(105, 30, 20, 15)),
    "hardSigmoid": Limit(lambda b, x: b.hard_sigmoid(x), 0, 1, further=(105, 3)),
    "hardSwish": Limit(lambda b, x: b.hard_swish(x), 0, further=(105, 3)),
    "relu": Limit(lambda b, x: b.relu(x), 0, further=(105, 1)),
    "sigmoid": Limit(lambda b, x: b.sigmoid(x), 0, 1),
    "softplus": Limit(lambda b, x: b.softplus(x), 0),
    "tanh": Limit(lambda b, x: b.tanh(x), -1, 1, further=(105, 10)),
    "x · sigmoid(x)": Limit(lambda b, x: b.mul(x, b.sigmoid(x)), 0, further=(120,)),
}


backend = on_each(DEVICES)


@pytest.mark.parametrize("is_fused", [False, True], ids=["alone", "behind a product"])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
async def test_activations_far_from_zero_are_their_limits(context, data_type, is_fused):
    builder = MLGraphBuilder(context)
    inputs, outputs, expected = {}, {}, {}
    for name, limit in LIMITS.items():
        with np.errstate(over="ignore"):
            above = np.array(FAR, data_type)
            below = -np.array(FAR + limit.further, data_type)
        if name == "x · sigmoid(x)":
            below = below[np.isfinite(below)]  # -Infinity · 0 is NaN
        array = np.concatenate([below, above])[:, None]
        x = builder.input(name, data_type=data_type, shape=array.shape)
        product = builder.matmul(x, builder.constant(np.ones((1, 1), data_type))) if is_fused else x
        inputs[name], outputs[name] = array, limit.draw(builder, product)
        limit_above = above if limit.above is None else np.full_like(above, limit.above)
        expected[name] = np.concatenate([np.full_like(below, limit.below), limit_above])[:, None]
    results = await compute(context, builder, inputs, outputs)
    wrong = {
        name: [*zip(inputs[name][differ], result[differ], strict=True)]
        for name, result in results.items()
        if (differ := result != expected[name]).any()
    }
    assert not wrong, wrong
