"""Small sigmoids side by side are written as one, and give what each gives alone."""

from functools import partial

import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder

pytest.importorskip("onnxruntime")

from webnn_py.device.on_onnxruntime import joined_sigmoids
from webnn_py.operators.composites import dynamically_quantized
from webnn_py.rewriting.passes import passes_left_out

X = np.random.default_rng(11).normal(size=(1, 12, 4)).astype(np.float32) * 30
X.flat[:6] = np.nan, np.inf, -np.inf, -0.0, -87.5, 2.0**-14


def pieces(b, x, sizes=(5, 4, 3)):
    """What is made of pieces: those themselves would be pieces of one sigmoid."""
    return [b.neg(piece) for piece in b.split(x, sizes, axis=1)]


def named(*operands):
    return {f"y{number}": operand for number, operand in enumerate(operands)}


def of_three(b, x):
    return named(*map(b.sigmoid, pieces(b, x)))


def of_one_shape(b, x):
    return named(b.sigmoid(x), b.sigmoid(b.neg(x)), b.sigmoid(b.abs(x)))


def read_further_on(b, x):
    first, second, third = map(b.sigmoid, pieces(b, x, [4, 4, 4]))
    return named(b.mul(first, second), third, b.neg(third))


def in_a_row(b, x):
    for _ in range(3):
        x = b.sigmoid(x)
    return named(x)


def with_one_behind(b, x):
    joined = [*map(b.sigmoid, pieces(b, x))]
    return named(*joined, b.sigmoid(b.neg(joined[0])))


def of_two_kinds(b, x):
    other = "float16" if x.data_type == "float32" else "float32"
    return of_three(b, x) | {"z": b.sigmoid(b.reshape(x, [12, 4])), "w": b.sigmoid(b.cast(b.neg(x), other))}


def of_two(b, x):
    return named(*map(b.sigmoid, pieces(b, x, [6, 6])))


def of_two_axes(b, x):
    first, second, third = pieces(b, x, [4, 4, 4])
    return named(b.sigmoid(first), b.sigmoid(b.concat([second, third], 1)), b.sigmoid(b.transpose(third)))


def of_numbers(b, x):
    return named(*(b.sigmoid(b.reduce_max(piece)) for piece in pieces(b, x)))


def beside_what_is_quantized(b, x):
    scale, zero_point = b.constant(np.full((1, 1, 1), 0.5, x.data_type)), b.constant(np.zeros((1, 1, 1), np.int8))
    return of_three(b, x) | {"z": b.quantize_linear(x, scale, zero_point)}


def repeated(b, x, times):
    rows = b.expand(b.reshape(x, [1, 12, 4, 1]), [1, 12, 4, times])
    return named(*(b.sigmoid(piece) for piece in pieces(b, rows)))


JOINED = {
    "of other sizes": (of_three, 1, [3]),
    "of one shape": (of_one_shape, 1, [3]),
    "read further on": (read_further_on, 1, [3]),
    "with one behind": (with_one_behind, 2, [3]),
    "with others of other kinds": (of_two_kinds, 3, [3]),
    "that wait for each other": (in_a_row, 3, []),
    "only two": (of_two, 2, []),
    "of two axes that differ": (of_two_axes, 3, [2]),
    "of numbers": (of_numbers, 3, []),
    "beside what is quantized": (beside_what_is_quantized, 1, [3]),
    "as large as may be copied": (partial(repeated, times=256), 1, [3]),
    "too large to copy": (partial(repeated, times=257), 3, []),
}
"""How many powers are drafts, one for each sigmoid, and of how much what is joined."""


def powers(nodes):
    return sum(node.operator == "Exp" for node in nodes)


async def computed(ml, draw, x):
    context = await ml.create_context(backend="onnxruntime", threads=1)
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type=x.dtype.name, shape=x.shape)
    return await compute(context, builder, {"x": x}, draw(builder, operand))


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("case", JOINED)
async def test_sigmoids_side_by_side_are_one_with_the_same_bits(ml, drafts, case, data_type):
    draw, sigmoids, joined = JOINED[case]
    x = X.astype(data_type)
    ours = await computed(ml, draw, x)
    assert powers(drafts[0]) == sigmoids
    assert [len(node.inputs) for node in drafts[0] if node.operator == "Concat"] == joined
    with passes_left_out("sigmoids-side-by-side"):
        apart = await computed(ml, draw, x)
    assert ours.keys() == apart.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array.view(f"u{array.itemsize}"), apart[name].view(f"u{array.itemsize}"), name)


async def test_no_more_are_joined_than_operators_join(ml, drafts, monkeypatch):
    monkeypatch.setattr(joined_sigmoids, "MAX_TENSOR_COUNT", 3)
    await computed(ml, of_three, X)
    await computed(ml, lambda b, x: named(*map(b.sigmoid, pieces(b, x, [3, 3, 3, 3]))), X)
    assert [*map(powers, drafts)] == [1, 4]


async def test_gates_of_quantized_networks_stay_apart(ml, drafts):
    def draw(b, x):
        gated = [b.mul(piece, b.sigmoid(piece)) for piece in pieces(b, x)]
        return named(*(b.cast(dynamically_quantized(b, one)[0], "float32") for one in gated))

    await computed(ml, draw, np.nan_to_num(X, posinf=1, neginf=-1))
    assert sum(node.operator == "Sigmoid" for node in drafts[0]) == 3
