"""Web IDL conversions: an argument of an operator's method, converted as its annotation says.

The annotation of a parameter names its IDL type:

=============================================  ==================================
``MLOperand``, ``Sequence[MLOperand]``          the same
``int``, ``Sequence[int]``                      ``[EnforceRange] unsigned long``, a sequence of it
``Long``                                        ``[EnforceRange] long``
``float``                                       ``double`` (finite)
``Sequence[float]``                             ``sequence<float>`` (finite, rounded to binary32)
``MLNumber``                                    ``(bigint or unrestricted double)``
``bool``, ``str``, ``Literal[...]``             ``boolean``, ``USVString``, an enumeration
``MLOperandDataTypeLike``                       ``MLOperandDataType``, or numpy's dtype of that name
``Any``                                         anything, as it is
=============================================  ==================================

``... | None`` with the default None is a member that may be absent. Every refusal is a ``TypeError`` whose text
begins with what the argument "is"; the caller puts operator, label and parameter name in front.
"""

import math
import numbers
import operator
import struct
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from webnn_py.core.descriptors import (
    MLOperandDataTypeLike,
    operand_data_type,
    sequence_of,
    size_or_axis,
    string,
    unsigned_longs,
)
from webnn_py.core.handle import forgotten_await
from webnn_py.core.message_text import nearest, plain, shown
from webnn_py.core.operators.operand import MLOperand

Long = Annotated[int, "[EnforceRange] long"]
"""A signed 32-bit integer."""

MLNumber = Annotated[int | float, "(bigint or unrestricted double)"]
"""A number of any size: integers are exact, floats may be NaN or infinite."""

Converter = Callable[[object], object]


def long(value: object) -> int:
    """``[EnforceRange] long``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"is {shown(value)}; it must be an integer")
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise TypeError(f"is {shown(number)}; it must be from {-(2**31)} to {2**31 - 1}")
    return number


def double(value: object) -> float:
    """``double``: finite."""
    number = _nearest_double(ml_number(value))
    if not math.isfinite(number):
        raise TypeError(f"is {shown(value)}; it must be finite")
    return number


def _nearest_double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an int or a fraction
        return math.inf if value > 0 else -math.inf


def ml_number(value: object) -> int | float:
    """``MLNumber``: an integer of any size, or a float that may be NaN or infinite."""
    if type(value) is int or type(value) is float:  # as nearly all are
        return value
    if isinstance(value, bool):
        raise TypeError(f"is {value!r}; it must be a number, not a bool")
    if isinstance(value, numbers.Integral):
        return operator.index(value)
    if isinstance(value, numbers.Real):
        return _nearest_double(value)
    raise TypeError(f"is {shown(value)}; it must be a number")


def boolean(value: object) -> bool:
    """``boolean``; unlike Web IDL, nothing else is taken for true or false."""
    if isinstance(value, bool):
        return value
    raise TypeError(f"is {shown(value)}; it must be True or False")


def usv_string(value: object) -> str:
    """``USVString``: lone surrogates become U+FFFD."""
    if type(value) is str and value.isascii():
        return value
    text = string(value)
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def operand(value: object) -> MLOperand:
    """Return an ``MLOperand``; whose it is, is checked later."""
    if type(value) is not MLOperand:
        raise TypeError(f"is {shown(value)}; it must be an MLOperand{forgotten_await(value)}")
    return value


def operands(values: object) -> tuple[MLOperand, ...]:
    """``sequence<MLOperand>``."""
    return sequence_of(values, operand, "MLOperands")


def floats(values: object) -> tuple[float, ...]:
    """``sequence<float>``: finite, each rounded to binary32."""
    return sequence_of(values, _binary32, "numbers")


def _binary32(value: object) -> float:
    number = double(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise TypeError(f"is {shown(value)}; it must fit into 32 bits") from None


def enumeration(allowed: tuple[str, ...]) -> Callable[[object], str]:
    """Return the conversion to one of some strings."""

    def convert(value: object) -> str:
        if isinstance(value, str) and plain(value) in allowed:
            return plain(value)
        raise TypeError(f"is {shown(value)}; it must be one of {', '.join(allowed)}{nearest(value, allowed)}")

    return convert


_CONVERTERS: dict[object, Converter] = {
    MLOperand: operand,
    Sequence[MLOperand]: operands,
    int: size_or_axis,
    Long: long,
    Sequence[int]: unsigned_longs,
    int | Sequence[int]: lambda value: unsigned_longs(value) if isinstance(value, Iterable) else size_or_axis(value),
    float: double,
    MLNumber: ml_number,
    Sequence[float]: floats,
    bool: boolean,
    str: usv_string,
    MLOperandDataTypeLike: operand_data_type,
    Any: lambda value: value,
}


def converter(annotation: object) -> tuple[Converter, bool]:
    """Return the conversion that ``annotation`` names, and whether the argument may be absent (None)."""
    optional = False
    if get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation):
        optional = True
        present = [item for item in get_args(annotation) if item is not type(None)]
        annotation = Union[tuple(present)]  # noqa: UP007 - rebuilt from a tuple
    if annotation in _CONVERTERS:
        return _CONVERTERS[annotation], optional
    if get_origin(annotation) is Literal:
        return enumeration(get_args(annotation)), optional
    if get_origin(annotation) is Sequence and get_origin(get_args(annotation)[0]) is Literal:
        allowed = get_args(get_args(annotation)[0])
        return lambda values: sequence_of(values, enumeration(allowed), ", ".join(allowed)), optional
    raise NotImplementedError(f"no Web IDL type is known for the annotation {annotation!r}")
