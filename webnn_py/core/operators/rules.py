"""Shape rules and checks that several operators share."""

import math
from collections.abc import Iterable, Sequence
from typing import NoReturn

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.message_text import listed, shown
from webnn_py.core.operators.operand import MLOperand


class Refused(Exception):  # noqa: N818 - not an error of its own: the builder turns it into a TypeError
    """A rule's refusal, in words; the builder puts the operator and the label in front."""


def refuse(subject: str, given: object, allowed: str) -> NoReturn:
    """Refuse an argument: ``subject`` is ``given``, and must be ``allowed``."""
    text = given if isinstance(given, str) else listed(given) if isinstance(given, tuple) else shown(given)
    raise Refused(f"{subject} is {text}; it must be {allowed}")


def same(operand: MLOperand) -> MLOperandDescriptor:
    """Return an output of the operand's own data type and shape."""
    # spec: copy an MLOperand 1-5, 7
    return MLOperandDescriptor(operand.data_type, operand.shape)


def output(data_type: MLOperandDataType, shape: Iterable[int]) -> MLOperandDescriptor:
    """Return an output of the given data type and shape."""
    # spec: create an MLOperandDescriptor 1-4
    return MLOperandDescriptor(data_type, tuple(shape))


def check_axis(axis: int, operand: MLOperand, name: str = "axis") -> None:
    """Refuse an axis that the operand has not."""
    if axis >= operand.rank:
        refuse(name, axis, f"less than the rank, {operand.rank}, of the shape {listed(operand.shape)}")


def check_axes(axes: Sequence[int], operand: MLOperand, name: str = "axes") -> None:
    """Refuse axes that the operand has not, and axes given twice."""
    for axis in axes:
        if axis >= operand.rank:
            check_axis(axis, operand, f"{name} {listed(axes)}: {axis}")
    if len(set(axes)) != len(axes):
        refuse(name, tuple(axes), "without duplicates")


def check_shape(name: str, operand: MLOperand | None, expected: Sequence[int]) -> None:
    """Refuse an operand that is there and has not exactly the expected shape."""
    if operand is not None and operand.shape != tuple(expected):
        refuse(f"the shape of {name}", operand.shape, listed(expected))


def check_length(name: str, values: Sequence[object] | None, length: int) -> None:
    """Refuse a sequence that is there and has not exactly ``length`` items."""
    if values is not None and len(values) != length:
        refuse(f"the length of {name} {listed(values)}", len(values), str(length))


def check_positive(name: str, values: Sequence[int]) -> None:
    """Refuse a sequence that contains a zero."""
    if 0 in values:
        refuse(name, tuple(values), "at least 1 everywhere")


def broadcast(a: Sequence[int], b: Sequence[int], names: tuple[str, str] = ("a", "b")) -> tuple[int, ...]:
    """Bidirectional broadcast of two shapes."""
    # spec: bidirectionally broadcasting 1-7
    rank = max(len(a), len(b))
    left = (1,) * (rank - len(a)) + tuple(a)
    right = (1,) * (rank - len(b)) + tuple(b)
    # spec: bidirectionally broadcasting 9-9.3; bidirectionally broadcastable 0
    if any(x != y and x != 1 and y != 1 for x, y in zip(left, right, strict=True)):
        raise Refused(
            f"the shapes of {names[0]} and {names[1]} are {listed(a)} and {listed(b)}; "
            "they must broadcast: each pair of dimensions equal, or one of them 1"
        )
    # spec: bidirectionally broadcasting 8, 9.4, 10
    return tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))


def check_broadcast_to(name: str, shape: Sequence[int], target: Sequence[int]) -> None:
    """Refuse a shape that does not broadcast, unidirectionally, to ``target``."""
    # spec: unidirectionally broadcasting 1-2, 4-5
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    fits = (size in (wanted, 1) for size, wanted in zip(padded, target, strict=False))
    # spec: unidirectionally broadcasting 3, 7-7.3; unidirectionally broadcastable 0
    if len(shape) > len(target) or not all(fits):
        refuse(f"the shape of {name}", tuple(shape), f"broadcastable to {listed(target)}")


def reduced_shape(operand: MLOperand, axes: Sequence[int] | None, *, keep_dimensions: bool) -> tuple[int, ...]:
    """Return the spec's "calculate reduction output shape"."""
    # spec: calculate reduction output sizes 1-2
    if axes is None:
        axes = range(operand.rank)
    # spec: calculate reduction output sizes 3
    check_axes(axes, operand)
    # spec: calculate reduction output sizes 4
    if keep_dimensions:
        return tuple(1 if axis in axes else size for axis, size in enumerate(operand.shape))
    # spec: calculate reduction output sizes 5-6
    return tuple(size for axis, size in enumerate(operand.shape) if axis not in axes)


def floor_or_refuse(name: str, size: float) -> int:
    """Return an output size rounded down; refused when nothing is left."""
    rounded = math.floor(size)
    if rounded < 1:
        refuse(name, rounded, "at least 1")
    return rounded
