"""Graphs that are written otherwise than they were drawn: with fewer reshapes, and with products of integers."""

from collections import Counter

import numpy as np
import onnx
import pytest

from spec_tests.on_onnxruntime.both import on_both
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

onnxruntime = pytest.importorskip("onnxruntime")

from webnn_py.device.on_onnxruntime import engine  # noqa: E402 - an extra

RNG = np.random.default_rng(17)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)


@pytest.fixture
async def contexts(ml):
    return await ml.create_context(backend="onnxruntime", threads=1), await ml.create_context(backend="numpy")


@pytest.fixture
def written(monkeypatch):
    """How often each operator of ONNX is in the models that were written."""
    counts = Counter()

    class Session(onnxruntime.InferenceSession):
        def __init__(self, model, *arguments, **options):
            counts.update(node.op_type for node in onnx.load_model_from_string(model).graph.node)
            super().__init__(model, *arguments, **options)

    monkeypatch.setattr(engine.onnxruntime, "InferenceSession", Session)
    return counts


# --- outputs -------------------------------------------------------------------------------------------------------


def one_of_two_names(builder, x):
    y = builder.neg(x)
    return {"a": y, "b": y, "c": builder.abs(y)}


def an_input_as_it_is(builder, x):
    return {"a": builder.cast(x, "float32"), "x": builder.neg(x)}


def a_constant_as_it_is(builder, x):
    constant = builder.constant(np.arange(5, dtype=np.float32))
    return {"a": builder.cast(constant, "float32"), "b": builder.cast(constant, "float32"), "c": builder.neg(x)}


@pytest.mark.parametrize("draw", [one_of_two_names, an_input_as_it_is, a_constant_as_it_is])
async def test_an_output_may_be_what_no_operator_makes_for_it_alone(contexts, draw):
    results = []
    for context in contexts:
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[2, 3, 4])
        results.append(await compute(context, builder, {"x": X}, draw(builder, x)))
    ours, expected = results
    assert ours.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(ours[name], array)


# --- reshapes ------------------------------------------------------------------------------------------------------


def lines(b, x):
    """A convolution of lines, as one of images of one row."""
    filters = b.reshape(b.constant(np.ones((3, 3, 3), np.float32)), [3, 3, 1, 3])
    return b.reshape(b.conv2d(b.reshape(x, [2, 3, 1, 4]), filters, padding=[0, 0, 1, 1]), [2, 3, 4])


def gated(b, x):
    y = b.reshape(b.softmax(x, 2), [6, 4])
    return b.mul(b.mul(y, b.sigmoid(y)), b.constant(np.float32(2)))


RESHAPED = {
    "convolutions of lines": (lambda b, x: lines(b, b.relu(lines(b, x))), {"Reshape": 2, "Relu": 1, "Conv": 2}),
    "there and back": (
        lambda b, x: b.softmax(b.reshape(b.reshape(b.softmax(x, 2), [24]), [2, 3, 4]), 2),
        {"Reshape": 0},
    ),
    "in vain": (lambda b, x: b.reshape(x, [2, 3, 4]), {"Reshape": 0, "Identity": 1}),
    "means and extremes of one element each": (
        lambda b, x: b.softmax(b.reduce_max(b.reduce_mean(b.reshape(x, [24, 1, 1]), axes=[1]), axes=[1]), 0),
        {"Reshape": 1, "ReduceMean": 0, "ReduceMax": 0, "Sum": 0},
    ),
    "means of several": (
        lambda b, x: b.reshape(b.reduce_mean(b.reshape(x, [6, 4]), axes=[1]), [2, 3]),
        {"Reshape": 2, "ReduceMean": 1},
    ),
    "one after the other": (lambda b, x: b.reshape(b.reshape(x, [24]), [4, 6]), {"Reshape": 1}),
    "before what reads them twice": (gated, {"Reshape": 1}),
    "before what other operators read, too": (
        lambda b, x: b.add(b.matmul(y := b.reshape(b.neg(x), [6, 4]), b.constant(np.eye(4, dtype="f4"))), b.exp(y)),
        {"Reshape": 1},
    ),
    "of another shape each": (
        lambda b, x: b.add(b.reshape(b.exp(x), [6, 4]), b.reshape(b.transpose(x), [6, 4])),
        {"Reshape": 2},
    ),
    "that are broadcast": (
        lambda b, x: b.add(b.reshape(b.exp(x), [2, 1, 12]), b.reshape(b.neg(x), [1, 2, 12])),
        {"Reshape": 2},
    ),
    "with a number of more axes": (
        lambda b, x: b.add(b.reshape(b.exp(x), [1, 2, 3, 4]), b.constant(np.ones([1, 1, 1, 1], np.float32))),
        {"Reshape": 1},
    ),
    "of numbers": (
        lambda b, x: b.mul(b.reshape(b.slice(x, [0] * 3, [1] * 3), [1]), b.reshape(b.neg(x), [24])),
        {"Reshape": 2},
    ),
    "whose result is quantized by each row": (
        lambda b, x: b.cast(
            b.quantize_linear(
                b.reshape(b.exp(x), [6, 4]),
                b.constant(np.full([6, 1], 0.1, np.float32)),
                b.constant(np.full([6, 1], 3, np.uint8)),
            ),
            "float32",
        ),
        {"Reshape": 1},
    ),
    "of a constant that is an output": (
        lambda b, _x: b.reshape(b.constant(np.arange(6, dtype=np.float32)), [2, 3]),
        {"Reshape": 1},
    ),
}


@pytest.mark.parametrize("case", RESHAPED)
async def test_reshapes_are_joined_and_moved_behind_what_takes_any_shape(contexts, written, case):
    draw, counts = RESHAPED[case]
    got, expected = await on_both(contexts, draw, X)
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6)
    assert {name: written[name] for name in counts} == counts


# --- products of integers ------------------------------------------------------------------------------------------


def product(b, x, zero_point, matrix, of_matrix, *, result="int32"):
    """A quantized product as importers draw it; None for zero points of 0."""
    shifted = []
    for integers, zero in ((x, zero_point), (matrix, of_matrix)):
        y = b.cast(b.constant(integers) if isinstance(integers, np.ndarray) else integers, "float32")
        if zero is not None:
            y = b.sub(y, b.cast(b.constant(zero) if isinstance(zero, np.ndarray) else zero, "float32"))
        shifted.append(y)
    return b.cast(b.matmul(*shifted), result)


def integers(data_type, *shape):
    limits = np.iinfo(data_type)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(data_type)


UNSIGNED, SIGNED = integers("uint8", 2, 7, 64), integers("int8", 64, 5)
EXTREME = np.full((2, 64), 255, np.uint8), np.where(np.arange(320).reshape(64, 5) % 2, 127, -128).astype(np.int8)
LONG = np.full((1, 600), 255, np.uint8), np.full((600, 2), -128, np.int8)
THIN = np.full((1, 600), 255, np.uint8), np.where(np.arange(1200).reshape(600, 2) % 3, 1, -128).astype(np.int8)


def number(value, data_type="int8", shape=()):
    return np.full(shape, value, data_type)


AS_INTEGERS = {
    "by zero points of numbers": (UNSIGNED, number(3, "uint8"), SIGNED, number(-7)),
    "by none": (integers("int8", 3, 64), None, SIGNED, None),
    "by one for each column": (UNSIGNED, number(200, "uint8", [1, 1]), SIGNED, integers("int8", 5)),
    "by one for each column, as a row": (UNSIGNED, None, integers("uint8", 64, 5), integers("uint8", 1, 5)),
    "of extremes": (EXTREME[0], number(0, "uint8"), EXTREME[1], number(0)),
    "whose sums are small as the matrix is": (THIN[0], None, THIN[1], None),
}
AS_FLOATS = {
    "whose sums may be rounded": (LONG[0], None, LONG[1], None),
    "with a zero point for each row": (UNSIGNED, integers("uint8", 7, 1), SIGNED, None),
    "of several matrices": (UNSIGNED, None, integers("int8", 2, 64, 5), None),
    "with a zero point of more axes": (UNSIGNED, number(3, "uint8", [1, 1, 1, 1]), SIGNED, None),
    "with zero points of another type": (UNSIGNED, number(3), SIGNED, None),
}


@pytest.mark.parametrize("case", AS_INTEGERS)
async def test_a_product_of_bytes_is_one_of_integers_and_the_same(contexts, written, case):
    x, *others = AS_INTEGERS[case]
    for result in ("int32", "float32"):
        got, expected = await on_both(contexts, lambda b, x: product(b, x, *others, result=result), x)  # noqa: B023 - at once
        np.testing.assert_array_equal(got, expected)
    assert (written["MatMulInteger"], written["MatMul"]) == (2, 0)


async def test_products_may_share_their_constants(contexts, written):
    def draw(b, x, y):
        return b.add(*(product(b, operand, None, SIGNED, number(0)) for operand in (x, y)))

    got, expected = await on_both(contexts, draw, UNSIGNED, UNSIGNED[::-1].copy())
    np.testing.assert_array_equal(got, expected)
    assert written["MatMulInteger"] == 2


@pytest.mark.parametrize("case", AS_FLOATS)
async def test_a_product_that_is_not_known_to_be_exact_in_float32_stays_one_of_floats(contexts, written, case):
    x, *others = AS_FLOATS[case]
    got, expected = await on_both(contexts, lambda b, x: product(b, x, *others), x)
    np.testing.assert_array_equal(got, expected)
    assert (written["MatMulInteger"], written["MatMul"]) == (0, 1)


async def test_a_matrix_that_is_not_constant_stays_one_of_floats(contexts, written):
    got, expected = await on_both(contexts, lambda b, x, y: product(b, x, None, y, None), UNSIGNED, SIGNED)
    np.testing.assert_array_equal(got, expected)
    assert written["MatMulInteger"] == 0
