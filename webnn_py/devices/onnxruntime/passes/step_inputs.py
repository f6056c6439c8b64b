"""Find the value of which the steps of a loop read consecutive parts."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from webnn_py.core.graph import Constant, Output, Value
from webnn_py.core.operators.indexing import gather
from webnn_py.core.operators.movement import reshape, slice_, split
from webnn_py.devices.rewriting.passes import ReadConstant


@attrs.frozen
class _Part:
    """A part of a value.

    Attributes:
        whole: the value.
        axis: the axis along which it is cut into parts of one size.
        count: the number of parts.
        place: the index of the part.
    """

    whole: Value
    axis: int
    count: int
    place: int


def whole_of(values: Sequence[Value], contents: ReadConstant) -> tuple[Value, bool] | None:
    """Return the value whose consecutive parts are exactly the given values, all of one shape.

    Args:
        values: the values.
        contents: returns the values of constants.

    Returns:
        The value, and whether its parts are in reverse order; None where there is no such value.
    """
    parts = [_part(value, contents) for value in values]
    first = parts[0]
    if (
        first is None
        or first.count != len(values)
        or any(size > 1 for size in first.whole.descriptor.shape[: first.axis])
    ):
        return None
    for is_backward in (False, True):
        places = range(len(values))[:: -1 if is_backward else 1]
        if parts == [_Part(first.whole, first.axis, first.count, place) for place in places]:
            return first.whole, is_backward
    return None


def _part(value: Value, contents: ReadConstant) -> _Part | None:
    if not isinstance(value, Output):
        return None
    node = value.node
    operator, whole = node.operator, node.inputs[0]
    if operator is reshape:
        return _part(whole, contents)
    if operator is split:
        return _Part(whole, node.options["axis"], len(node.results), value.index)
    if operator is gather:
        return _row(whole, node.inputs[1], node.options["axis"], contents)
    return _window(whole, **node.options) if operator is slice_ else None


def _row(whole: Value, index: Value, axis: int, contents: ReadConstant) -> _Part | None:
    """Return the part that a gather reads with a constant scalar index; None for other indices."""
    if not isinstance(index, Constant) or index.descriptor.shape:
        return None
    return _Part(whole, axis, whole.descriptor.shape[axis], int(contents(index)))


def _window(whole: Value, starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int] | None) -> _Part | None:
    """Return the part that a slice reads; None unless it is a whole one of equal windows along one axis."""
    shape = whole.descriptor.shape
    cut = [axis for axis, size in enumerate(sizes) if size < shape[axis]]
    if len(cut) != 1 or any(stride > 1 for stride in strides or ()):
        return None
    (axis,) = cut
    start, size = starts[axis], sizes[axis]
    return None if shape[axis] % size or start % size else _Part(whole, axis, shape[axis] // size, start // size)
