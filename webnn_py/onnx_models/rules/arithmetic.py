"""Element-wise arithmetic."""

from functools import partial, reduce
from typing import Any

import numpy as np

from webnn_py.core.operators import arithmetic
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rule_helpers.normalizations import normalized
from webnn_py.onnx_models.rule_table.declaration import one_to_one, rule

one_to_one("Add", arithmetic.add, 7, 13, 14)
one_to_one("Sub", arithmetic.sub, 7, 13, 14)


def _ends_normalizations(onnx_operator: str, operator: Operator[..., Any], *versions: int) -> None:
    @rule(onnx_operator, *versions)
    def convert(context: ConversionContext, a: MLOperand, b: MLOperand) -> MLOperand:
        return normalized(context, context.apply(operator, a, b))


_ends_normalizations("Mul", arithmetic.mul, 7, 13, 14)
_ends_normalizations("Div", arithmetic.div, 7, 13, 14)

ROUNDING = 1e-5
"""The largest relative difference of a power in float32 from the integer that it stands for."""


def _of_any_number(onnx_operator: str, operator: Operator[..., Any], *versions: int) -> None:
    @rule(onnx_operator, *versions)
    def convert(context: ConversionContext, *data: MLOperand) -> MLOperand:
        return reduce(partial(context.apply, operator), data)


_of_any_number("Max", arithmetic.max_, 6, 8, 12, 13)
_of_any_number("Min", arithmetic.min_, 6, 8, 12, 13)
_of_any_number("Sum", arithmetic.add, 6, 8, 13)


@rule("Mean", 6, 8, 13)
def mean(context: ConversionContext, *data: MLOperand) -> MLOperand:
    """Return the mean of any number of tensors."""
    added = reduce(context.add, data)
    return context.div(added, context.number(len(data), added))


@rule("Mod", 10, 13, 28)
def remainder(context: ConversionContext, a: MLOperand, b: MLOperand, *, fmod: bool) -> MLOperand:
    """Return the remainder of A divided by B: with the sign of B, or with ``fmod`` that of A."""
    zero = context.number(0, a)
    if a.data_type in INTEGER_RANGES:
        quotient = context.div(a, b)  # towards 0
    else:
        ratio = context.div(a, b)
        quotient = context.mul(context.sign(ratio), context.floor(context.abs(ratio)))
    rest = context.sub(a, context.mul(quotient, b))
    if a.data_type not in INTEGER_RANGES:  # nothing is left out of an infinite divisor
        rest = context.where(
            context.logical_and(context.is_infinite(b), context.logical_not(context.is_infinite(a))), a, rest
        )
    if fmod or a.data_type.startswith("u"):
        return rest
    is_other = context.logical_xor(context.lesser(rest, zero), context.lesser(b, zero))
    is_moved = context.logical_and(is_other, context.not_equal(rest, zero))
    return context.where(is_moved, context.add(rest, b), rest)


@rule("Pow", 7, 12, 13, 15)
def power(context: ConversionContext, x: MLOperand, y: Value) -> MLOperand:
    """Return a base of one data type to the power of an exponent of another: the result has the base's."""
    if isinstance(y, np.ndarray):
        is_of_integers = x.data_type in INTEGER_RANGES
        if not (is_of_integers and y.dtype.kind == "f" and np.any(y != np.trunc(y))):  # no power is between integers
            return context.pow(x, context.constant(_exponent(y, x)))
    y = context.operand(y)
    if x.data_type in INTEGER_RANGES and y.data_type not in INTEGER_RANGES:
        return _floats_cut_off(context, context.pow(context.cast(x, "float32"), context.cast(y, "float32")), x)
    return context.pow(x, context.cast(y, x.data_type))


def _floats_cut_off(context: ConversionContext, power: MLOperand, base: MLOperand) -> MLOperand:
    """Truncate float powers to integers, but round those that differ from an integer by rounding only."""
    nearest = context.round_even(power)
    room = context.mul(context.abs(nearest), context.number(ROUNDING, power))
    is_near = context.lesser_or_equal(context.abs(context.sub(power, nearest)), room)
    return context.cast(context.where(is_near, nearest, power), base.data_type)


def _exponent(exponent: StaticValue, base: MLOperand) -> StaticValue:
    """Return a static exponent in the base's data type."""
    if exponent.dtype.kind not in "iuf":
        refuse("the data type of input Y", exponent.dtype.name, "a type of integers or floats")
    if base.data_type in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[base.data_type]
        if np.any(exponent < lowest) or np.any(exponent > highest):
            refuse("input Y", "an exponent that is no integer of the base's data type", base.data_type)
    return exponent.astype(base.data_type)
