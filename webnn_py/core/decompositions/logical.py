"""Comparison and logic."""

import math

from webnn_py.core.decompositions.common import decomposition, number
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand


@decomposition
def logical_not(builder: Builder, a: MLOperand) -> MLOperand:
    return builder.equal(a, number(builder, 0, a))


def _truth(builder: Builder, a: MLOperand) -> MLOperand:
    return builder.greater(a, number(builder, 0, a))


@decomposition
def logical_and(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.mul(_truth(builder, a), _truth(builder, b))


@decomposition
def logical_or(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.max(_truth(builder, a), _truth(builder, b))


@decomposition
def logical_xor(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.not_equal(_truth(builder, a), _truth(builder, b))


@decomposition
def not_equal(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.logical_not(builder.equal(a, b))


@decomposition
def greater_or_equal(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.logical_or(builder.greater(a, b), builder.equal(a, b))


@decomposition
def lesser_or_equal(builder: Builder, a: MLOperand, b: MLOperand) -> MLOperand:
    return builder.logical_or(builder.lesser(a, b), builder.equal(a, b))


@decomposition
def is_nan(builder: Builder, a: MLOperand) -> MLOperand:
    return builder.not_equal(a, a)


@decomposition
def is_infinite(builder: Builder, a: MLOperand) -> MLOperand:
    return builder.equal(builder.abs(a), number(builder, math.inf, a))
