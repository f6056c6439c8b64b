"""Operators of before opset 7: they broadcast only where an attribute says so, and have a training mode.

And some that ONNX removed, and onnxruntime kept.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from webnn_py.core.operators import arithmetic, logical
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules import matrix, movement
from webnn_py.onnx_models.rules.matrix import GemmAttributes


def _aligned(context: ConversionContext, a: MLOperand, b: MLOperand, axis: int | None, *, broadcast: bool) -> MLOperand:
    """Return the second operand such that it broadcasts to the first as in later opsets: its axes begin at one."""
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

    @rule(onnx_operator, *versions)
    def convert(
        context: ConversionContext, a: MLOperand, b: MLOperand, *, axis: int | None = None, broadcast: bool
    ) -> MLOperand:
        return context.apply(operator, a, _aligned(context, a, b, axis, broadcast=broadcast))


_binary("Add", arithmetic.add, 1, 6)
_binary("Sub", arithmetic.sub, 1, 6)
_binary("Mul", arithmetic.mul, 1, 6)
_binary("Div", arithmetic.div, 1, 6)
_binary("Pow", arithmetic.pow_, 1)
_binary("And", logical.logical_and, 1)
_binary("Or", logical.logical_or, 1)
_binary("Xor", logical.logical_xor, 1)
_binary("Equal", logical.equal, 1)
_binary("Greater", logical.greater, 1)
_binary("Less", logical.lesser, 1)


@rule("PRelu", 1, 6)
def prelu(context: ConversionContext, x: MLOperand, slope: MLOperand) -> MLOperand:
    """Return a slope of its own for negative numbers: one for all, or one a channel."""
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
    attributes: GemmAttributes,
    broadcast: bool,
) -> MLOperand:
    """Return alpha · A · B + beta · C, which broadcasts only where ``broadcast`` says so."""
    rows, columns = -1 if attributes.transA else 0, 0 if attributes.transB else -1
    shape = (a.shape[rows], b.shape[columns]) if a.rank == b.rank == 2 else c.shape
    if not broadcast and c.shape != shape:
        refuse("the shape of input C", c.shape, f"{list(shape)} where broadcast is 0")
    return matrix.gemm(context, a, b, c, attributes=attributes)


@rule("Dropout", 1, 6)
def dropout(context: ConversionContext, data: MLOperand, *, is_test: bool, ratio: float) -> MLOperand:
    """Return the operand itself."""
    if not is_test:
        refuse("attribute is_test", 0, "1: nothing is dropped by chance")
    return data


@rule("Reshape", 1)
def reshape(context: ConversionContext, data: MLOperand, *, shape: Sequence[int] = ()) -> MLOperand:
    """Return another shape, which is an attribute."""
    return movement.reshape(context, data, tuple(shape))


@rule("ImageScaler", 1)
def image_scaler(
    context: ConversionContext, x: MLOperand, *, bias: Sequence[float] | None = None, scale: float = 1.0
) -> MLOperand:
    """Multiply images by a scale, and add a bias for each channel."""
    if x.rank != 4 or bias is None or len(bias) != x.shape[1]:
        refuse("attribute bias", () if bias is None else tuple(bias), f"one for each channel of {list(x.shape)}")
    shift = context.constant(np.array(bias).reshape(-1, 1, 1).astype(x.data_type))
    return context.add(context.mul(x, context.number(scale, x)), shift)


@rule("Crop", 1)
def crop(
    context: ConversionContext, x: MLOperand, *, border: Sequence[int] | None = None, scale: Sequence[int] | None = None
) -> MLOperand:
    """Crop images: by borders (left, top, right, bottom), or to a size (height, width) after the first two."""
    if x.rank != 4 or border is None or len(border) != 4 or (scale is not None and len(scale) != 2):
        refuse("attributes border and scale", f"{border} and {scale}", "four numbers, and none or two, for images")
    left, top, right, bottom = border
    height, width = scale or (x.shape[2] - top - bottom, x.shape[3] - left - right)
    return context.slice(x, [0, 0, top, left], [*x.shape[:2], height, width])


@rule("Affine", 1)
def affine(context: ConversionContext, x: MLOperand, *, alpha: float = 1.0, beta: float = 0.0) -> MLOperand:
    """Alpha · x + beta."""
    return context.linear(x, alpha=alpha, beta=beta)
