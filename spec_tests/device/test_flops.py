"""The arithmetic operations of a node, counted by hand."""

import numpy as np
import pytest

from webnn_py import MLGraphBuilder
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.flops import COUNTS, flops

IMAGE = (2, 6, 8, 8)


def image(b):
    return b.input("x", data_type="float32", shape=IMAGE)


def tensor(b, *shape):
    return b.constant(np.ones(shape, np.float32))


STEPS, BATCH, FEATURES, HIDDEN = 3, 2, 5, 4


def sequence(b):
    return b.input("x", data_type="float32", shape=(STEPS, BATCH, FEATURES))


def lstm(b, **options):
    weights = tensor(b, 2, 4 * HIDDEN, FEATURES), tensor(b, 2, 4 * HIDDEN, HIDDEN)
    return b.lstm(sequence(b), *weights, STEPS, HIDDEN, direction="both", **options)[0]


def gru_cell(b):
    x = b.input("x", data_type="float32", shape=(BATCH, FEATURES))
    weights = tensor(b, 3 * HIDDEN, FEATURES), tensor(b, 3 * HIDDEN, HIDDEN)
    return b.gru_cell(x, *weights, tensor(b, BATCH, HIDDEN), HIDDEN, bias=tensor(b, 3 * HIDDEN))


LSTM_STEP = 2 * 4 * HIDDEN * (FEATURES + HIDDEN) + 4 * HIDDEN * 2 + 5 * HIDDEN

COUNTED = {
    "matmul": (
        lambda b: b.matmul(tensor(b, 3, 2, 5), b.input("x", data_type="float32", shape=(5, 7))),
        2 * 3 * 2 * 7 * 5,
    ),
    "gemm": (lambda b: b.gemm(tensor(b, 5, 3), tensor(b, 5, 4), a_transpose=True), 2 * 3 * 4 * 5),
    "gemm and its third matrix": (
        lambda b: b.gemm(tensor(b, 3, 5), tensor(b, 5, 4), c=tensor(b, 4)),
        3 * 4 * (2 * 5 + 1),
    ),
    "conv2d": (lambda b: b.conv2d(image(b), tensor(b, 4, 6, 3, 3)), (2 * 4 * 6 * 6) * 2 * 6 * 9),
    "conv2d of groups, with a bias": (
        lambda b: b.conv2d(image(b), tensor(b, 1, 1, 2, 6), groups=3, filter_layout="hwio", bias=tensor(b, 6)),
        (2 * 6 * 8 * 8) * (2 * 2 + 1),
    ),
    "convTranspose2d": (
        lambda b: b.conv_transpose2d(image(b), tensor(b, 6, 4, 2, 2), strides=[2, 2]),
        2 * (2 * 6 * 64) * 4 * 4,
    ),
    "averagePool2d": (lambda b: b.average_pool2d(image(b), window_dimensions=[2, 4]), (2 * 6 * 7 * 5) * 8),
    "l2Pool2d of all": (lambda b: b.l2_pool2d(image(b)), (2 * 6) * 2 * 64),
    "lstm": (lstm, STEPS * 2 * BATCH * LSTM_STEP),
    "lstm with a bias and peepholes": (
        lambda b: lstm(b, bias=tensor(b, 2, 4 * HIDDEN), peephole_weight=tensor(b, 2, 3 * HIDDEN)),
        STEPS * 2 * BATCH * (LSTM_STEP + 4 * HIDDEN + 6 * HIDDEN),
    ),
    "gruCell": (gru_cell, BATCH * (2 * 3 * HIDDEN * (FEATURES + HIDDEN) + 3 * HIDDEN * 3 + 5 * HIDDEN)),
    "layerNormalization": (lambda b: b.layer_normalization(image(b), axes=[3], scale=tensor(b, 8)), 768 * 6),
    "batchNormalization": (lambda b: b.batch_normalization(image(b), tensor(b, 6), tensor(b, 6)), 768 * 2),
    "softmax": (lambda b: b.softmax(image(b), 1), 768 * 5),
    "reduceSum": (lambda b: b.reduce_sum(image(b), axes=[1]), 768),
    "reduceSumSquare": (lambda b: b.reduce_sum_square(image(b)), 2 * 768),
    "sigmoid": (lambda b: b.sigmoid(image(b)), 768),
    "add, broadcast": (lambda b: b.add(tensor(b, 6, 1, 1), image(b)), 768),
    "resample2d": (lambda b: b.resample2d(image(b), sizes=[4, 4], mode="linear"), 2 * 6 * 16 * 9),
    "resample2d, nearest": (lambda b: b.resample2d(image(b), sizes=[4, 4]), 0),
    "transpose": (lambda b: b.transpose(image(b)), 0),
    "cast": (lambda b: b.cast(image(b), "int32"), 0),
    "equal": (lambda b: b.equal(image(b), tensor(b, 1)), 0),
    "identity": (lambda b: b.identity(image(b)), 0),
}


@pytest.mark.parametrize("name", COUNTED)
async def test_operations_are_those_counted_by_hand(numpy_context, name):
    draw, expected = COUNTED[name]
    builder = MLGraphBuilder(numpy_context)
    operand = draw(builder)
    node = builder.value_of(operand).node
    assert node.operator.spec_name == name.split(maxsplit=1)[0].rstrip(",")
    assert flops(node) == expected
    builder.destroy()


def test_every_operator_that_computes_is_counted():
    """Operators without a count of their own count by elements, or only move, select and compare."""
    assert COUNTS.keys() <= OPERATORS.keys()
    others = {operator for name, operator in OPERATORS.items() if name not in COUNTS and not operator.is_elementwise}
    assert {operator.category for operator in others} == {"indexing", "movement"}
