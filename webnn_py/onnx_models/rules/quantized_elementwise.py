"""Onnxruntime's operators on quantized tensors, computed in floats."""

from collections.abc import Sequence
from functools import reduce
from typing import Literal

import numpy as np

from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_helpers.windows import AutoPad, PoolingAttributes
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.activation import softmax_of_rows
from webnn_py.onnx_models.rules.conversion import dequantize, quantize
from webnn_py.onnx_models.rules.pooling import average_pool


@rule("com.microsoft.DequantizeLinear", 1)
def dequantize_linear(
    context: ConversionContext,
    x: Value,
    x_scale: MLOperand,
    x_zero_point: Value | None = None,
    *,
    axis: int = 1,
) -> MLOperand:
    """Dequantize as ONNX's operator, which had fewer data types."""
    return dequantize(context, x, x_scale, x_zero_point, axis=axis)


@rule("com.microsoft.QuantizeLinear", 1)
def quantize_linear(
    context: ConversionContext,
    x: MLOperand,
    y_scale: MLOperand,
    y_zero_point: MLOperand | None = None,
    *,
    axis: int = 1,
) -> MLOperand:
    """Quantize as ONNX's operator, which had fewer data types."""
    return quantize(context, x, y_scale, y_zero_point, axis=axis)


@rule("com.microsoft.QLinearAdd", 1)
def qlinear_add(
    context: ConversionContext,
    a: MLOperand,
    a_scale: MLOperand,
    a_zero_point: MLOperand | None,
    b: MLOperand,
    b_scale: MLOperand,
    b_zero_point: MLOperand | None,
    c_scale: MLOperand,
    c_zero_point: MLOperand | None = None,
) -> MLOperand:
    """Add, rounding as onnxruntime does, after the zero point is added: halves are frequent where scales match."""
    terms: list[MLOperand] = []
    offset = _number(context, c_zero_point)
    for x, scale, zero_point in ((a, a_scale, a_zero_point), (b, b_scale, b_zero_point)):
        ratio = _settled(context, context.div(_number(context, scale), _number(context, c_scale)))
        offset = context.sub(offset, context.mul(ratio, _number(context, zero_point)))
        terms.append(context.mul(context.cast(x, "float32"), ratio))
    return _rounded(context, reduce(context.add, terms, _settled(context, offset)), a)


def _rounded(context: ConversionContext, y: MLOperand, like: MLOperand) -> MLOperand:
    """Round half to even, and clamp to a data type."""
    if like.data_type not in INTEGER_RANGES:
        refuse("the data type of input A", like.data_type, "a type of integers")
    lowest, highest = INTEGER_RANGES[like.data_type]
    return context.cast(context.clamp(context.round_even(y), min_value=lowest, max_value=highest), like.data_type)


def _number(context: ConversionContext, parameter: MLOperand | None) -> MLOperand:
    """Return a parameter of the whole tensor as a float; 0 if it is absent."""
    if parameter is None:
        return context.constant(np.zeros((), np.float32))
    return context.cast(context.reshape(parameter, []), "float32")


def _settled(context: ConversionContext, value: MLOperand) -> MLOperand:
    """Return a value as a constant if it is known."""
    known = context.known(value)
    return value if known is None else context.operand(known)


@rule("com.microsoft.QLinearMul", 1)
def qlinear_mul(
    context: ConversionContext,
    a: MLOperand,
    a_scale: MLOperand,
    a_zero_point: MLOperand | None,
    b: MLOperand,
    b_scale: MLOperand,
    b_zero_point: MLOperand | None,
    c_scale: MLOperand,
    c_zero_point: MLOperand | None = None,
) -> MLOperand:
    """Multiply element by element, rounding as for a sum."""
    scale = context.mul(_number(context, a_scale), _number(context, b_scale))
    ratio = _settled(context, context.div(scale, _number(context, c_scale)))
    factors = [
        context.sub(context.cast(x, "float32"), _settled(context, _number(context, zero_point)))
        for x, zero_point in ((a, a_zero_point), (b, b_zero_point))
    ]
    product = context.mul(context.mul(*factors), ratio)
    return _rounded(context, context.add(product, _settled(context, _number(context, c_zero_point))), a)


@rule("com.microsoft.QLinearWhere", 1)
def qlinear_where(
    context: ConversionContext,
    condition: MLOperand,
    x: MLOperand,
    x_scale: MLOperand,
    x_zero_point: MLOperand,
    y: MLOperand,
    y_scale: MLOperand,
    y_zero_point: MLOperand,
    z_scale: MLOperand,
    z_zero_point: MLOperand,
) -> MLOperand:
    """Choose element by element."""
    chosen = context.where(
        condition, _floats(context, x, x_scale, x_zero_point), _floats(context, y, y_scale, y_zero_point)
    )
    return quantize(context, chosen, z_scale, z_zero_point, axis=0)


@rule("com.microsoft.QLinearSigmoid", 1)
def qlinear_sigmoid(
    context: ConversionContext,
    x: MLOperand,
    x_scale: MLOperand,
    x_zero_point: MLOperand | None,
    y_scale: MLOperand,
    y_zero_point: MLOperand | None = None,
) -> MLOperand:
    """Return the sigmoid."""
    y = context.sigmoid(_floats(context, x, x_scale, x_zero_point))
    return _quantized_like(context, y, y_scale, y_zero_point, x)


@rule("com.microsoft.QLinearLeakyRelu", 1)
def qlinear_leaky_relu(
    context: ConversionContext,
    x: MLOperand,
    x_scale: MLOperand,
    x_zero_point: MLOperand | None,
    y_scale: MLOperand,
    y_zero_point: MLOperand | None = None,
    *,
    alpha: float = 0.01,
) -> MLOperand:
    """Apply a rectifier with a small slope for negative numbers."""
    y = context.leaky_relu(_floats(context, x, x_scale, x_zero_point), alpha=alpha)
    return _quantized_like(context, y, y_scale, y_zero_point, x)


@rule("com.microsoft.QLinearSoftmax", 1)
def qlinear_softmax(
    context: ConversionContext,
    x: MLOperand,
    x_scale: MLOperand,
    x_zero_point: MLOperand | None,
    y_scale: MLOperand,
    y_zero_point: MLOperand,
    *,
    axis: int = -1,
    opset: int,
) -> MLOperand:
    """Return the softmax; before opset 13 over all axes from one on."""
    floats, first = _floats(context, x, x_scale, x_zero_point), counted(axis, x.rank)
    if opset >= 13 or first == x.rank - 1:
        y = context.softmax(floats, first)
    else:
        y = softmax_of_rows(context, floats, axis=first)
    return quantize(context, y, y_scale, y_zero_point, axis=0)


@rule("com.microsoft.QLinearConcat", 1)
def qlinear_concat(
    context: ConversionContext, y_scale: MLOperand, y_zero_point: MLOperand, *inputs: MLOperand, axis: int
) -> MLOperand:
    """Concatenate tensors, each with its own scale and zero point."""
    if not inputs or len(inputs) % 3:
        refuse("the number of inputs", len(inputs) + 2, "two and three for each tensor")
    tensors = [_floats(context, *inputs[index : index + 3]) for index in range(0, len(inputs), 3)]
    joined = context.concat(tensors, counted(axis, tensors[0].rank))
    return quantize(context, joined, y_scale, y_zero_point, axis=0)


@rule("com.microsoft.QLinearGlobalAveragePool", 1)
def qlinear_global_average_pool(
    context: ConversionContext,
    x: MLOperand,
    x_scale: MLOperand,
    x_zero_point: MLOperand,
    y_scale: MLOperand,
    y_zero_point: MLOperand,
    *,
    channels_last: bool = False,
) -> MLOperand:
    """Return the mean over the spatial axes."""
    if x.rank < 3:
        refuse("the rank of input X", x.rank, "at least 3")
    axes = range(1, x.rank - 1) if channels_last else range(2, x.rank)
    mean = context.reduce_mean(_floats(context, x, x_scale, x_zero_point), axes=tuple(axes), keep_dimensions=True)
    return quantize(context, mean, y_scale, y_zero_point, axis=0)


@rule("com.microsoft.QLinearAveragePool", 1)
def qlinear_average_pool(
    context: ConversionContext,
    x: MLOperand,
    x_scale: MLOperand,
    x_zero_point: MLOperand | None,
    y_scale: MLOperand,
    y_zero_point: MLOperand | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    ceil_mode: bool = False,
    channels_last: Literal[0] = 0,
    count_include_pad: bool = False,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> MLOperand:
    """Return the mean of each window's elements."""
    y = average_pool(
        context,
        _floats(context, x, x_scale, x_zero_point),
        attributes=PoolingAttributes(auto_pad=auto_pad, pads=pads, strides=strides),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        kernel_shape=kernel_shape,
    )
    return _quantized_like(context, y, y_scale, y_zero_point, x)


def _floats(
    context: ConversionContext, x: MLOperand, scale: MLOperand, zero_point: MLOperand | None = None
) -> MLOperand:
    return dequantize(context, x, scale, zero_point, axis=0)


def _quantized_like(
    context: ConversionContext, y: MLOperand, scale: MLOperand, zero_point: MLOperand | None, like: MLOperand
) -> MLOperand:
    """Quantize; without a zero point, to the data type of the input, around 0."""
    if zero_point is None:
        zero_point = context.constant(np.zeros((), like.data_type))
    return quantize(context, y, scale, zero_point, axis=0)
