"""Conversions between data types, and quantization."""

import math
from collections.abc import Sequence
from typing import Final, TypeGuard

import numpy as np
from onnx import TensorProto, helper

from webnn_py.core.descriptors import FOUR_BITS
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.block_quantized import packed_in_bytes
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.reading.element_types import type_name
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.declaration import rule

WIDER: Final = {"int2": "int8", "int4": "int8", "int16": "int32", "uint2": "uint8", "uint4": "uint8", "uint16": "int32"}
"""Integer types that WebNN lacks, by numpy's names, and what holds their values."""


@rule("Cast", 6, 9, 13, 19, 21, 23, 24, 25, 28)
def cast(
    context: ConversionContext, x: MLOperand, *, to: int, saturate: bool = True, round_mode: str = "up"
) -> MLOperand:
    """Convert to another type; a boolean is 1 where the element is not 0.

    ``saturate`` and ``round_mode`` concern only floats of 8 bits, which WebNN lacks.
    """
    data_type = context.data_type("attribute to", to)
    if to == TensorProto.BOOL:
        return context.not_equal(x, context.number(0, x))
    return context.cast(x, data_type)


@rule("CastLike", 15, 19, 21, 23, 24, 25)
def cast_like(
    context: ConversionContext, x: MLOperand, target_type: Value, *, saturate: bool = True, round_mode: str = "up"
) -> MLOperand:
    """Convert to another tensor's type.

    ONNX's body is a Cast; other bodies are full of CastLike, and making each one's body would take longer than this.
    """
    if isinstance(target_type, np.ndarray):
        return cast(context, x, to=helper.np_dtype_to_tensor_dtype(target_type.dtype))
    if context.is_boolean(target_type):
        return cast(context, x, to=TensorProto.BOOL)
    return context.cast(x, target_type.data_type)


@rule("DequantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def dequantize(
    context: ConversionContext,
    x: Value,
    scale: MLOperand,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> MLOperand:
    """Return (x - zero point) · scale, for the whole tensor, along an axis, or by blocks."""
    y = _dequantized(context, x, scale, zero_point, axis, block_size)
    if not output_dtype:
        return y
    if context.data_type("attribute output_dtype", output_dtype) in INTEGER_RANGES:
        refuse("attribute output_dtype", type_name(output_dtype), "a type of floats")
    return cast(context, y, to=output_dtype)


def _dequantized(
    context: ConversionContext, x: Value, scale: MLOperand, zero_point: Value | None, axis: int, block_size: int
) -> MLOperand:
    is_short = _last_is_short(x, scale, axis, block_size)
    if context.has_four_bits and _is_packable(x) and (zero_point is None or _is_packable(zero_point)) and not is_short:
        context.reserve(2 * x.size)
        quantized = context.four_bits(packed_in_bytes(x), x.dtype.name, x.shape)
        shape = _scale_shape(quantized, scale, axis, block_size)
        zeros = np.zeros(shape, np.int8) if zero_point is None else zero_point
        packed = context.four_bits(packed_in_bytes(zeros), x.dtype.name, shape)
        return context.dequantize_linear(quantized, context.reshape(scale, shape), packed)
    quantized = _widened(context, x)
    zero = None if zero_point is None else _widened(context, zero_point)
    scale, zero, shape = _laid_out(context, quantized, scale, zero, axis, block_size)
    zero = _zeros(context, shape, quantized.data_type) if zero is None else zero
    return context.dequantize_linear(quantized, context.reshape(scale, shape), context.reshape(zero, shape))


def _is_packable(value: Value) -> TypeGuard[StaticValue]:
    return isinstance(value, np.ndarray) and value.dtype.name in FOUR_BITS and value.size > 0


def _widened(context: ConversionContext, value: Value) -> MLOperand:
    """Return known integers of types that WebNN lacks in the next wider one."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in WIDER:
        return context.operand(value)
    wider = np.dtype(WIDER[value.dtype.name])
    context.reserve(value.size * wider.itemsize)
    return context.constant(value.astype(wider))


@rule("QuantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def quantize(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    zero_point: MLOperand | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: bool = True,
) -> MLOperand:
    """Return x / scale, rounded half to even, plus the zero point, for the whole tensor, along an axis, or by blocks.

    The division is in the data type of the scale unless ``precision`` asks for another one. ``saturate`` concerns only
    floats of 8 bits.
    """
    if precision:
        data_type = context.data_type("attribute precision", precision)
        x, scale = context.cast(x, data_type), context.cast(scale, data_type)
    scale, zero_point, shape = _laid_out(context, x, scale, zero_point, axis, block_size)
    if output_dtype:
        data_type = context.data_type("attribute output_dtype", output_dtype)
        if zero_point is None:
            zero_point = _zeros(context, shape, data_type)
        if zero_point.data_type != data_type:
            refuse("attribute output_dtype", data_type, f"{zero_point.data_type}, that of the zero point, or absent")
    if zero_point is None:
        zero_point = _zeros(context, shape, "uint8")
    if x.data_type != scale.data_type:
        x = context.cast(x, scale.data_type)
    return context.quantize_linear(x, context.reshape(scale, shape), context.reshape(zero_point, shape))


def _zeros(context: ConversionContext, shape: Sequence[int], data_type: str) -> MLOperand:
    context.reserve(math.prod(shape) * np.dtype(data_type).itemsize)
    return context.constant(np.zeros(shape, data_type))


def _last_is_short(x: Value, scale: MLOperand, axis: int, block_size: int) -> bool:
    """Return whether the last block is shorter than the others, which WebNN's are never."""
    rank = len(x.shape)
    if block_size < 1 or scale.rank != rank or not -rank <= axis < rank:
        return False
    return scale.shape[axis] == -(-x.shape[axis] // block_size) and x.shape[axis] % block_size > 0


def _laid_out(
    context: ConversionContext,
    x: MLOperand,
    scale: MLOperand,
    zero_point: MLOperand | None,
    axis: int,
    block_size: int,
) -> tuple[MLOperand, MLOperand | None, tuple[int, ...]]:
    """Return scale, zero point and their shape in WebNN: one for each element where the last block is short."""
    if not _last_is_short(x, scale, axis, block_size):
        return scale, zero_point, _scale_shape(x, scale, axis, block_size)
    block_of = context.constant(np.arange(x.shape[axis], dtype=np.int32) // block_size)
    axis = counted(axis, x.rank)
    scale = context.gather(scale, block_of, axis=axis)
    zero_point = None if zero_point is None else context.gather(zero_point, block_of, axis=axis)
    return scale, zero_point, _scale_shape(x, scale, axis, 1)


def _scale_shape(x: MLOperand, scale: MLOperand, axis: int, block_size: int) -> tuple[int, ...]:
    """Return the shape of WebNN's scale: of the tensor's rank, each dimension a number of blocks."""
    if block_size:
        axis = counted(axis, x.rank)
        if scale.rank != x.rank or scale.shape[axis] * block_size != x.shape[axis]:
            refuse("attribute block_size", block_size, f"such that blocks of it fill axis {axis} of {list(x.shape)}")
        return scale.shape
    if math.prod(scale.shape) == 1:
        return (1,) * x.rank
    if scale.rank != 1:
        refuse("the shape of the scale", scale.shape, "a single number or a list")
    axis = counted(axis, x.rank)
    if scale.shape[0] != x.shape[axis]:
        refuse("the length of the scale", scale.shape[0], f"{x.shape[axis]}, as axis {axis} of {list(x.shape)}")
    return tuple(size if index == axis else 1 for index, size in enumerate(x.shape))
