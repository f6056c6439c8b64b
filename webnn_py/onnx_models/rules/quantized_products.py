"""Quantized products: exact sums of integers, which are scaled and quantized."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.block_quantized import (
    MATMUL_NBITS,
    check_packed,
    packed_in_bytes,
    times_columns,
    unpacked,
)
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rule_helpers.axes import check_rank
from webnn_py.onnx_models.rule_helpers.integer_products import convolution, product, shifted
from webnn_py.onnx_models.rule_helpers.windows import ConvolutionAttributes
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.conversion import quantize
from webnn_py.onnx_models.rules.convolution import conv
from webnn_py.onnx_models.rules.matrix import TransposeAttributes, of_vectors

HALF: Final = 4
"""Bits of an integer of which two share a byte."""

INT8_LEVEL: Final = 4
"""The level of accuracy of products of int8."""


@rule("DynamicQuantizeLinear", 11)
def dynamic_quantize(context: ConversionContext, x: MLOperand) -> list[MLOperand]:
    """Quantize to uint8 by the range of the elements and 0.

    ONNX's body would divide 0 by 0 where all elements are 0.
    """
    return context.composite(DYNAMIC_QUANTIZE, {"input": x})


@rule("MatMulInteger", 10)
def matmul_integer(
    context: ConversionContext,
    a: Value,
    b: Value,
    a_zero_point: Value | None = None,
    b_zero_point: Value | None = None,
) -> MLOperand:
    """Return a product of matrices of 8-bit integers less their zero points, as int32."""
    rows, columns = a.shape, b.shape
    if not rows or not columns:
        refuse("the shape of a factor", [], "that of a vector or of matrices")
    if len(rows) == 1:
        a = _reshaped(context, a, [1, *rows])
    if len(columns) == 1:
        b = _reshaped(context, b, [*columns, 1])
    left = shifted(context, a, _per_row(context, a_zero_point))
    return of_vectors(context, product(context, left, shifted(context, b, b_zero_point)), rows, columns)


def _per_row(context: ConversionContext, zero_point: Value | None) -> Value | None:
    """Return a list of zero points as one for each row; a single one is for all."""
    return zero_point if zero_point is None or len(zero_point.shape) != 1 else _spread(context, zero_point, 2)


def _spread(context: ConversionContext, values: Value, rank: int) -> Value:
    """Return a list as a tensor of a rank, along the first axis."""
    return _reshaped(context, values, [math.prod(values.shape)] + [1] * (rank - 1))


def _reshaped(context: ConversionContext, value: Value, shape: Sequence[int]) -> Value:
    return value.reshape(shape) if isinstance(value, np.ndarray) else context.reshape(value, shape)


@rule("ConvInteger", 10)
def conv_integer(
    context: ConversionContext,
    x: Value,
    w: Value,
    x_zero_point: Value | None = None,
    w_zero_point: Value | None = None,
    *,
    attributes: ConvolutionAttributes,
) -> MLOperand:
    """Convolve 8-bit integers less their zero points, as int32; the padding is 0 after that."""
    images, filters, group = x.shape, w.shape, attributes.group
    if len(filters) < 3 or len(images) != len(filters) or images[1] != group * filters[1]:
        refuse("the shape of input x", images, f"such that filters {list(filters)} in {group} groups slide over it")
    if w_zero_point is not None and math.prod(w_zero_point.shape) > 1:
        w_zero_point = _spread(context, w_zero_point, len(filters))
    shifted_filters, shifted_images = shifted(context, w, w_zero_point), shifted(context, x, x_zero_point)
    convolved = partial(conv, context, attributes=attributes)
    return convolution(context, shifted_images, shifted_filters, group, convolved)


@rule("QLinearMatMul", 10, 21)
def qlinear_matmul(
    context: ConversionContext,
    a: Value,
    a_scale: MLOperand,
    a_zero_point: Value,
    b: Value,
    b_scale: MLOperand,
    b_zero_point: Value,
    y_scale: MLOperand,
    y_zero_point: MLOperand,
) -> MLOperand:
    """Return a product of quantized matrices, quantized."""
    y = matmul_integer(context, a, b, a_zero_point, b_zero_point)
    scales = [_by_rows(context, a_scale), b_scale]
    return _requantized(context, y, scales, y_scale, y_zero_point)


def _by_rows(context: ConversionContext, scale: MLOperand) -> MLOperand:
    """Return scales of rows as a column; a single one is for all."""
    return scale if scale.rank != 1 else context.reshape(scale, [scale.shape[0], 1])


def _scaled(context: ConversionContext, sums: MLOperand, scale: MLOperand) -> MLOperand:
    """Sums of integers times a scale."""
    scaled = context.mul(context.cast(sums, "float32"), scale)
    return context.reshape(scaled, sums.shape) if scaled.rank > sums.rank else scaled


def _requantized(
    context: ConversionContext,
    sums: MLOperand,
    scales: Sequence[MLOperand],
    y_scale: MLOperand,
    zero_point: MLOperand,
) -> MLOperand:
    """Convert sums of integers from the factors' scales to the output's, one for all or one for each row.

    The scales make one factor first, as onnxruntime has it: otherwise what lies between two steps may be rounded to
    the other one.
    """
    a_scale, b_scale, divisor = (context.cast(item, "float32") for item in (*scales, _by_rows(context, y_scale)))
    x = _scaled(context, sums, context.div(context.mul(a_scale, b_scale), divisor))
    context.reserve(4 * math.prod(zero_point.shape))
    one = context.constant(np.ones(zero_point.shape, np.float32))
    if math.prod(one.shape) == 1:
        return quantize(context, x, one, zero_point, axis=0)
    if one.rank == 1:
        return quantize(context, x, one, zero_point, axis=x.rank - 2)
    return context.quantize_linear(x, one, zero_point)


@rule("QLinearConv", 10)
def qlinear_conv(
    context: ConversionContext,
    x: Value,
    x_scale: MLOperand,
    x_zero_point: Value,
    w: Value,
    w_scale: MLOperand,
    w_zero_point: Value,
    y_scale: MLOperand,
    y_zero_point: MLOperand,
    b: MLOperand | None = None,
    *,
    attributes: ConvolutionAttributes,
) -> MLOperand:
    """Convolve quantized images, and quantize the result; the bias is int32, in steps of both scales."""
    sums = conv_integer(context, x, w, x_zero_point, w_zero_point, attributes=attributes)
    ones = [1] * (sums.rank - 2)
    if b is not None:
        check_rank("input B", b, 1)
        sums = context.add(sums, context.reshape(b, [*b.shape, *ones]))
    if math.prod(w_scale.shape) > 1:
        w_scale = context.reshape(w_scale, [w_scale.shape[0], *ones])
    return _requantized(context, sums, [x_scale, w_scale], y_scale, y_zero_point)


@rule("com.microsoft.DynamicQuantizeMatMul", 1)
def dynamic_quantize_matmul(
    context: ConversionContext,
    a: MLOperand,
    b: Value,
    b_scale: MLOperand,
    b_zero_point: Value | None = None,
    bias: MLOperand | None = None,
) -> MLOperand:
    """Return a product with a quantized matrix; the first factor is quantized by its own range on the way."""
    quantized, scale, zero_point = dynamic_quantize(context, a)
    return matmul_integer_to_float(context, quantized, b, scale, b_scale, zero_point, b_zero_point, bias)


@rule("com.microsoft.MatMulIntegerToFloat", 1)
def matmul_integer_to_float(
    context: ConversionContext,
    a: Value,
    b: Value,
    a_scale: MLOperand,
    b_scale: MLOperand,
    a_zero_point: Value | None = None,
    b_zero_point: Value | None = None,
    bias: MLOperand | None = None,
) -> MLOperand:
    """Return a product of quantized matrices as float, plus a bias."""
    y = _scaled(context, matmul_integer(context, a, b, a_zero_point, b_zero_point), context.mul(a_scale, b_scale))
    return y if bias is None else context.add(y, bias)


@rule("com.microsoft.QGemm", 1)
def qgemm(
    context: ConversionContext,
    a: Value,
    a_scale: MLOperand,
    a_zero_point: Value,
    b: Value,
    b_scale: MLOperand,
    b_zero_point: Value,
    c: MLOperand | None = None,
    y_scale: MLOperand | None = None,
    y_zero_point: MLOperand | None = None,
    *,
    attributes: TransposeAttributes,
) -> MLOperand:
    """Alpha · A · B plus C, in int32 in steps of both scales; quantized where an output scale is given."""
    a, b = (
        x if not is_transposed else context.transpose(x) if isinstance(x, MLOperand) else x.T
        for x, is_transposed in ((a, attributes.transA), (b, attributes.transB))
    )
    sums = matmul_integer(context, a, b, a_zero_point, b_zero_point)
    alpha = attributes.alpha
    scale = a_scale if alpha == 1 else context.mul(a_scale, context.number(alpha, a_scale))
    total = sums if c is None else context.add(sums, c)
    if y_scale is not None and y_zero_point is not None:
        return _requantized(context, total, [scale, b_scale], y_scale, y_zero_point)
    if y_scale is not None or y_zero_point is not None:
        refuse("the pair of inputs y_scale and y_zero_point", "incomplete", "whole, or absent for floats")
    return _scaled(context, total, context.mul(scale, b_scale))


@rule("com.microsoft.MatMulNBits", 1)
def matmul_nbits(
    context: ConversionContext,
    a: MLOperand,
    b: StaticValue,
    scales: MLOperand,
    zero_points: Value | None = None,
    g_idx: StaticValue | None = None,
    bias: MLOperand | None = None,
    *,
    K: int,  # noqa: N803 - ONNX's name
    N: int,  # noqa: N803 - ONNX's name
    accuracy_level: int = 0,
    bits: Literal[2, 4, 8] = 4,
    block_size: int,
    weight_prepacked: Literal[0] = 0,
) -> MLOperand:
    """Return a product with a matrix of weights of a few bits, with a scale for each block of a column.

    ``accuracy_level`` 4 allows onnxruntime's products of int8 on its device; no other device makes use of it.
    """
    if g_idx is not None:
        refuse("input g_idx", "given", "absent: weights in an order of their own are not supported")
    if min(K, N, block_size) < 1:
        refuse("attributes K, N and block_size", f"{K}, {N} and {block_size}", "at least 1")
    blocks = -(-K // block_size)
    context.reserve(N * blocks * block_size)
    by_block = context.reshape(scales, [N, blocks])
    known = zero_points if isinstance(zero_points, np.ndarray) and zero_points.dtype == np.uint8 else None
    if zero_points is not None and known is None:
        if isinstance(zero_points, MLOperand) and zero_points.data_type == "uint8":
            refuse("input zero_points", "computed when the graph runs", "known while building")
        weights = context.constant(unpacked(b, bits, N, blocks * block_size))
        matrix = _with_float_points(context, weights, by_block, context.operand(zero_points))
        return times_columns(context, a, matrix, bias, K)
    check_packed(b, bits, N, blocks * block_size)
    if known is not None:
        check_packed(known, bits, N, blocks)
    if context.has_four_bits and bits == HALF and block_size % 2 == 0:
        return times_columns(context, a, _of_four_bits(context, b, by_block, known, block_size), bias, K)
    b = b.reshape(N, blocks, -1)
    known = None if known is None else known.reshape(N, -1)
    operands = {"a": a, "b": b, "scales": by_block, "zero_points": known, "bias": bias}
    given: dict[str, Any] = {name: item for name, item in operands.items() if item is not None}
    level = accuracy_level if accuracy_level == INT8_LEVEL else 0
    options: dict[str, Any] = {"inner": K, "bits": bits, "block_size": block_size, "accuracy_level": level}
    (y,) = context.composite(MATMUL_NBITS, given, **options)
    return y


def _of_four_bits(
    context: ConversionContext, b: StaticValue, scales: MLOperand, zero_points: StaticValue | None, block_size: int
) -> MLOperand:
    """Return the matrix of which the device keeps four bits an element: their order is WebNN's."""
    rows, blocks = scales.shape
    points = np.full([rows, blocks], 8, np.uint8) if zero_points is None else unpacked(zero_points, 4, rows, blocks)
    weights = context.four_bits(b.reshape(-1), "uint4", [rows, blocks * block_size])
    zeros = context.four_bits(packed_in_bytes(points), "uint4", [rows, blocks])
    return context.dequantize_linear(weights, scales, zeros)


def _with_float_points(
    context: ConversionContext, weights: MLOperand, scales: MLOperand, points: MLOperand
) -> MLOperand:
    """Dequantize with zero points between integers: (w - point) · scale, block by block."""
    rows, blocks = scales.shape
    in_blocks = context.reshape(context.cast(weights, scales.data_type), [rows, blocks, weights.shape[1] // blocks])
    centred = context.sub(in_blocks, context.reshape(points, [rows, blocks, 1]))
    return context.reshape(context.mul(centred, context.reshape(scales, [rows, blocks, 1])), weights.shape)
