"""Scalars beside tensors whose last axis has one element are written with as many axes, and mean the same."""

import numpy as np
import onnx
import pytest

from spec_tests.on_onnxruntime.both import on_both

pytest.importorskip("onnxruntime")

COLUMN = np.array([-np.inf, -200, -3.5, -0.0, 0.0, 2.0**-14, 1, 6, 40, np.inf, np.nan], np.float32).reshape(1, -1, 1)

BINARY = ["add", "sub", "mul", "div", "max", "min", "pow"]
BINARY += ["equal", "not_equal", "greater", "greater_or_equal", "lesser", "lesser_or_equal"]
UNARY = ["gelu", "hard_swish", "sigmoid"]


def number(b, x, value=3):
    return b.constant(value, data_type=x.data_type)


DRAWINGS = {
    **{name: lambda b, x, name=name: getattr(b, name)(x, number(b, x)) for name in BINARY},
    **{f"{name} behind a number": lambda b, x, name=name: getattr(b, name)(number(b, x), x) for name in BINARY},
    **{name: lambda b, x, name=name: getattr(b, name)(x) for name in UNARY},
    "where": lambda b, x: b.where(b.greater(x, number(b, x)), x, number(b, x, -1)),
    "prelu": lambda b, x: b.prelu(x, number(b, x, 0.25)),
    "prelu of what is not finite": lambda b, x: b.prelu(x, number(b, x, np.inf)),
    "two numbers": lambda b, x: b.add(b.mul(x, number(b, x)), b.constant(np.full((1, 1), 5, x.data_type))),
}


def ranks(models):
    """Return the ranks of constants of one element, perhaps cast, each with that of what its node reads besides."""
    found = []
    for model in models:
        graph = onnx.shape_inference.infer_shapes(onnx.helper.make_model(model)).graph
        numbers = {item.name: len(item.dims) for item in graph.initializer if np.prod(item.dims) == 1}
        values = [*graph.input, *graph.value_info, *graph.output]
        others = {item.name: len(item.type.tensor_type.shape.dim) for item in values}
        for node in graph.node:
            if node.op_type == "Cast" and node.input[0] in numbers:
                numbers[node.output[0]] = numbers[node.input[0]]
                del others[node.output[0]]
            beside = {others[name] for name in node.input if name in others}
            found.extend((numbers[name], max(beside)) for name in node.input if name in numbers and beside)
    return found


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("drawing", DRAWINGS)
async def test_beside_a_column_a_number_has_its_axes(contexts, models, drawing, data_type):
    got, expected = await on_both(contexts, DRAWINGS[drawing], COLUMN.astype(data_type))
    off = 1e-6 if data_type == "float32" else 2e-3
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=off, atol=2e-6)
    assert {number for number, _ in ranks(models)} == {3}


@pytest.mark.parametrize("drawing", ["add", "sigmoid", "where"])
async def test_beside_rows_a_number_stays_as_it_is(contexts, models, drawing):
    await on_both(contexts, DRAWINGS[drawing], COLUMN.reshape(1, 1, -1))
    assert {number for number, _ in ranks(models)} == {0}


async def test_beside_a_number_a_number_stays_as_it_is(contexts, models):
    await on_both(contexts, DRAWINGS["add"], np.array(2, np.float32))
    assert ranks(models) == [(0, 0)]
