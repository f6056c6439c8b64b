"""Axes and other lists of integers, as ONNX writes them."""

import math
from collections.abc import Iterable

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import StaticValue


def integers(name: str, value: StaticValue) -> tuple[int, ...]:
    """Return a static list of integers, or a single one.

    Raises:
        Refused: it is something else.
    """
    if value.ndim > 1 or value.dtype.kind not in "iu":
        refuse(name, f"{value.dtype.name} {list(value.shape)}", "a list of integers")
    return tuple(value.reshape(-1).tolist())


def numbers(name: str, value: StaticValue) -> tuple[float, ...]:
    """Return a static list of floats.

    Raises:
        Refused: it is something else.
    """
    if value.ndim != 1 or value.dtype.kind != "f":
        refuse(name, f"{value.dtype.name} {list(value.shape)}", "a list of numbers")
    return tuple(float(item) for item in value)


def scalar(name: str, value: StaticValue) -> int | float:
    """Return a static single number.

    Raises:
        Refused: it is something else.
    """
    if value.size != 1 or value.dtype.kind not in "biuf":
        refuse(name, f"{value.dtype.name} {list(value.shape)}", "a single number")
    number: int | float = value.item()
    return number


def whole(name: str, value: StaticValue) -> int:
    """Return the integer part of a static single number.

    Raises:
        Refused: it is something else, or has none.
    """
    number = scalar(name, value)
    if not math.isfinite(number):
        refuse(name, number, "a finite number")
    return int(number)


def integer(name: str, value: StaticValue) -> int:
    """Return a static single integer.

    Raises:
        Refused: it is something else.
    """
    if value.size != 1 or value.dtype.kind not in "iu":
        refuse(name, f"{value.dtype.name} {list(value.shape)}", "a single integer")
    return int(value.item())


def counted(axis: int, rank: int, name: str = "axis") -> int:
    """Return an axis counted from the first; ONNX counts negative ones from the last.

    Raises:
        Refused: there is no such axis.
    """
    if not -rank <= axis < rank:
        refuse(name, axis, f"from {-rank} to {rank - 1}")
    return axis % rank


def counted_all(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from the first.

    Raises:
        Refused: one is not there, or is given twice.
    """
    given = tuple(axes)
    if len(given) > rank:
        refuse("the number of axes", len(given), f"at most {rank}, that of the dimensions")
    for axis in given:
        if not -rank <= axis < rank:
            counted(axis, rank, f"axes {list(given)}: {axis}")
    result = tuple([axis % rank for axis in given])
    if len(set(result)) != len(result):
        refuse("axes", given, "without duplicates")
    return result


def check_rank(name: str, operand: MLOperand, *allowed: int) -> None:
    """Refuse an operand of another rank.

    Raises:
        Refused: it is one.
    """
    if operand.rank not in allowed:
        refuse(f"the rank of {name}", operand.rank, " or ".join(map(str, allowed)))
