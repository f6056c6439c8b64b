"""Bitwise operators, which WebNN lacks: computed exactly, by quotients of powers of 2."""

import math
from typing import Any, Final, Literal

import numpy as np

from webnn_py.core.operators import logical
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_table.declaration import rule

MOST_BITS: Final = 2**26
"""The most bits that a tensor is taken apart into: each takes at least a byte."""


def _of_bits(onnx_operator: str, operator: Operator[..., Any]) -> None:
    """Register a rule that combines the bits of two integers."""

    @rule(onnx_operator, 18)
    def convert(context: ConversionContext, a: MLOperand, b: MLOperand) -> MLOperand:
        return _joined(context, context.apply(operator, _bits(context, a), _bits(context, b)), a)


_of_bits("BitwiseAnd", logical.logical_and)
_of_bits("BitwiseOr", logical.logical_or)
_of_bits("BitwiseXor", logical.logical_xor)


@rule("BitwiseNot", 18)
def bitwise_not(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the complement: all bits, which in a signed integer are -1, minus the integer."""
    lowest, highest = _range(x)
    return context.sub(_constant(context, [-1 if lowest else highest], x), x)


@rule("BitShift", 11, 28)
def bit_shift(
    context: ConversionContext, x: MLOperand, y: MLOperand, *, direction: Literal["LEFT", "RIGHT"]
) -> MLOperand:
    """Shift the bits left or right by Y; a shift by all bits or more gives 0."""
    lowest, highest = _range(x)
    if lowest:
        refuse("the data type of input X", x.data_type, "one of unsigned integers")
    count = highest.bit_length()
    powers = _constant(context, [2**bit for bit in range(count)], x)
    places = context.cast(context.clamp(y, max_value=count - 1), "int32")
    factor = context.gather(powers, places)
    if direction == "RIGHT":
        moved = context.div(x, factor)
    else:  # what would go beyond the last bit is taken away first, so that no product is too large
        rest = _constant(context, [highest // 2**bit for bit in range(count)], x)
        moved = context.mul(_low_bits(context, x, context.gather(rest, places)), factor)
    return context.where(context.lesser(y, _constant(context, [count], y)), moved, context.number(0, x))


def _low_bits(context: ConversionContext, x: MLOperand, most: MLOperand) -> MLOperand:
    """Return the remainder of integers that are not negative, divided by one more than the largest remainder."""
    half = context.div(most, context.number(2, x))  # most + 1, which may be beyond the data type, is 2 · (half + 1)
    parts = context.add(half, context.number(1, x))
    quotient = context.div(context.div(x, parts), context.number(2, x))
    return context.sub(x, context.mul(context.mul(quotient, parts), context.number(2, x)))


def _range(x: MLOperand) -> tuple[int, int]:
    if x.data_type not in INTEGER_RANGES:
        refuse("the data type of the input", x.data_type, ", ".join(INTEGER_RANGES))
    lowest, highest = INTEGER_RANGES[x.data_type]
    return int(lowest), int(highest)


def _constant(context: ConversionContext, values: list[int], like: MLOperand) -> MLOperand:
    """Return integers as a constant of the data type of ``like``; a single one as a scalar."""
    array = np.array(values, np.dtype(like.data_type))
    return context.constant(array if len(values) > 1 else array.reshape([]))


def _bits(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the bits along a new last axis, the lowest first; a negative integer has its complement's, inverted."""
    lowest, highest = _range(x)
    count = highest.bit_length()
    bits = math.prod(x.shape) * (count + 1 if lowest else count)
    if bits > MOST_BITS:
        refuse("the number of bits", bits, f"at most {MOST_BITS}")
    powers = _constant(context, [2**bit for bit in range(count)], x)
    alone = context.reshape(x, [*x.shape, 1])
    is_negative = context.lesser(alone, context.number(0, x)) if lowest else None
    if is_negative is not None:
        alone = context.where(is_negative, bitwise_not(context, alone), alone)
    quotients = context.div(alone, powers)
    two = context.number(2, x)
    odd = context.sub(quotients, context.mul(context.div(quotients, two), two))
    is_one = context.equal(odd, context.number(1, x))
    if is_negative is None:
        return is_one
    return context.concat([context.logical_xor(is_one, is_negative), is_negative], x.rank)


def _joined(context: ConversionContext, bits: MLOperand, like: MLOperand) -> MLOperand:
    """Return the integers whose bits are along the last axis; bytes, which WebNN does not sum, by way of int32."""
    lowest, highest = _range(like)
    values = [2**bit for bit in range(highest.bit_length())] + ([lowest] if lowest else [])
    added = np.dtype("int32" if like.data_type in ("int8", "uint8") else like.data_type)
    parts = context.where(bits, context.constant(np.array(values, added)), context.constant(np.zeros([], added)))
    total = context.reduce_sum(parts, axes=[bits.rank - 1])
    return context.cast(total, like.data_type)
