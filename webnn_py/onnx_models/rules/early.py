"""Operators as they were before opset 7: they broadcast only where an attribute says so, and know training."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from webnn_py.onnx_models.axes import counted
from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.onnx_models.rules import matrix, movement, normalization, pooling
from webnn_py.onnx_models.table import rule
from webnn_py.operators import arithmetic, logical
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


def _aligned(a: MLOperand, b: MLOperand, axis: int | None, broadcast: int, context: ConversionContext) -> MLOperand:
    """The second operand, such that it broadcasts to the first as it does today: its axes stand from one on."""
    if not broadcast and a.shape != b.shape:
        refuse("the shapes of the inputs", f"{list(a.shape)} and {list(b.shape)}", "the same where broadcast is 0")
    if a.shape == b.shape:
        return b
    if prod(b.shape) == 1:
        return context.reshape(b, [])
    first = max(0, a.rank - b.rank) if axis is None else counted(axis, a.rank)
    if a.shape[first : first + b.rank] != b.shape:
        refuse("the shape of input B", b.shape, f"that of {list(a.shape)} from axis {first} on")
    return context.reshape(b, [*b.shape, *[1] * (a.rank - first - b.rank)])


def _binary(onnx_operator: str, operator: Operator[..., Any], *versions: int) -> None:
    """Register a rule for an element-wise operator."""

    def binary(
        context: ConversionContext,
        a: MLOperand,
        b: MLOperand,
        *,
        axis: int | None = None,
        broadcast: int,
        consumed_inputs: Sequence[int] | None = None,
    ) -> MLOperand:
        return context.apply(operator, a, _aligned(a, b, axis, broadcast, context))

    rule(onnx_operator, *versions)(binary)


for _name, _operator in (
    ("Add", arithmetic.add),
    ("Sub", arithmetic.sub),
    ("Mul", arithmetic.mul),
    ("Div", arithmetic.div),
):
    _binary(_name, _operator, 1, 6)
for _name, _operator in (
    ("And", logical.logical_and),
    ("Or", logical.logical_or),
    ("Xor", logical.logical_xor),
    ("Equal", logical.equal),
    ("Greater", logical.greater),
    ("Less", logical.lesser),
    ("Pow", arithmetic.pow_),
):
    _binary(_name, _operator, 1)


@rule("PRelu", 1, 6)
def prelu(
    context: ConversionContext, x: MLOperand, slope: MLOperand, *, consumed_inputs: Sequence[int] | None = None
) -> MLOperand:
    """A slope of its own for negative numbers: one for all, or one a channel."""
    if prod(slope.shape) == 1:
        return context.prelu(x, context.reshape(slope, []))
    if x.rank < 2 or slope.shape != (x.shape[1],):
        refuse("the shape of the slope", slope.shape, f"[1], or that of the channels of {list(x.shape)}")
    return context.prelu(x, context.reshape(slope, [*slope.shape, *[1] * (x.rank - 2)]))


@rule("Gemm", 1, 6)
def gemm(
    context: ConversionContext,
    a: MLOperand,
    b: MLOperand,
    c: MLOperand,
    *,
    alpha: float,
    beta: float,
    broadcast: int,
    transA: int,  # noqa: N803 - ONNX's name
    transB: int,  # noqa: N803 - ONNX's name
) -> MLOperand:
    """Alpha · A · B + beta · C; of ``broadcast`` 0 the shapes tell enough."""
    return matrix.gemm(context, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@rule("BatchNormalization", 1, 6)
def batch_normalization(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    b: MLOperand,
    mean: MLOperand,
    variance: MLOperand,
    *,
    consumed_inputs: Sequence[int] | None = None,
    epsilon: float,
    is_test: int,
    momentum: float,
    spatial: int,
) -> MLOperand:
    """Normalize with given means and variances, one a channel."""
    if not is_test:
        refuse("attribute is_test", is_test, "1: this version is not supported in training")
    if not spatial:
        refuse("attribute spatial", spatial, "1")
    return normalization.batch_normalization(context, x, scale, b, mean, variance, epsilon=epsilon, momentum=momentum)


@rule("Dropout", 1, 6)
def dropout(
    context: ConversionContext,
    data: MLOperand,
    *,
    consumed_inputs: Sequence[int] | None = None,
    is_test: int,
    ratio: float,
) -> MLOperand:
    """The operand itself."""
    if not is_test:
        refuse("attribute is_test", is_test, "1: nothing is dropped by chance")
    return data


@rule("AveragePool", 1)
def average_pool(
    context: ConversionContext,
    x: MLOperand,
    *,
    auto_pad: str,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """The mean of each window's elements; padding does not count."""
    return pooling.average_pool(context, x, auto_pad=auto_pad, kernel_shape=kernel_shape, pads=pads, strides=strides)


@rule("Reshape", 1)
def reshape(
    context: ConversionContext,
    data: MLOperand,
    *,
    consumed_inputs: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
) -> MLOperand:
    """Another shape, which is an attribute."""
    return movement.reshape(context, data, np.array(() if shape is None else shape, np.int64))
