"""Integers that a drawing computes from shapes: the "shape computation" of the explainer on dynamic shapes.

A chain of operators begins at ``shape()`` and constants. While it is drawn, its few integers are computed, too, with
sizes in the place of numbers. Where they depend on a size in another way than by arithmetic, and the bounds of its
names do not tell, there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from webnn_py.named_sizes.decisions import UnknownSizeError
from webnn_py.named_sizes.expressions import SymbolicSize
from webnn_py.named_sizes.values import has_size
from webnn_py.operators.casting import INTEGER_RANGES
from webnn_py.operators.declaration import Arguments, Operator
from webnn_py.operators.operand import MLOperand

Integers = np.ndarray[Any, np.dtype[np.object_]]
"""Numbers and sizes."""

MOST: Final = 64
"""The most integers of an operand that are computed: a shape, or some."""

_BYTE: Final = 255


def integers(values: object) -> Integers:
    """Return an array of numbers and sizes."""
    return np.array(values, dtype=object)


def evaluated(
    operator: Operator[..., Any], arguments: Arguments, known: Callable[[MLOperand], Integers | None]
) -> list[Integers] | None:
    """Return the integers of an operator's results; None where they do not follow from shapes and constants.

    Args:
        operator: the operator.
        arguments: its arguments.
        known: returns the integers of an operand.
    """
    function = _FUNCTIONS.get(operator.name)
    if function is None:
        return None
    operands: dict[str, Any] = {}
    for name, operand in arguments.operands.items():
        found = [known(item) for item in (operand if isinstance(operand, tuple) else (operand,))]
        if any(item is None for item in found):
            return None
        operands[name] = found if isinstance(operand, tuple) else found[0]
    options = arguments.options()
    if any(map(has_size, options.values())):
        return None
    try:
        result = function(**operands, **options)
    except UnknownSizeError:
        return None
    return result if isinstance(result, list) else [result]


def fits(values: Integers, data_type: str) -> bool:
    """Return whether integers are as few as shapes have, and numbers of a data type, which wraps no others around.

    The largest values of names are only compared with 8-bit types: names without bounds exceed the others.
    """
    if data_type not in INTEGER_RANGES or values.size > MOST:
        return False
    lowest, highest = INTEGER_RANGES[data_type]  # type: ignore[index]  # it is among them
    return all(
        low >= lowest and (high <= highest or (low < high and highest > _BYTE)) for low, high in map(_ends, values.flat)
    )


# --- arithmetic ------------------------------------------------------------------------------------------------


def _ends(value: Any) -> tuple[int, int]:
    return (value.low, value.high) if type(value) is SymbolicSize else (int(value), int(value))


def _is_below(left: Any, right: Any) -> bool:
    low, high = _ends(left - right)
    if high < 0 or low >= 0:
        return high < 0
    raise UnknownSizeError(f"whether {left} is less than {right} is known at dispatch only")


def _is_equal(left: Any, right: Any) -> bool:
    low, high = _ends(left - right)
    if low == high or low > 0 or high < 0:
        return low == high == 0
    raise UnknownSizeError(f"whether {left} is {right} is known at dispatch only")


def _quotient(left: Any, right: Any) -> Any:
    """Divide as integers are divided by ``div``: toward 0."""
    if type(left) is int and type(right) is int and right:
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if _ends(left)[0] >= 0 and _ends(right)[0] > 0:
        return left // right
    raise UnknownSizeError(f"{left} / {right} is rounded as its sign says")


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder that has the sign of the divisor.

    Raises:
        UnknownSizeError: the divisor may be 0.
    """
    low, high = _ends(right)
    if low <= 0 <= high:
        raise UnknownSizeError(f"{right} may be 0")
    return left % right


def truncated_remainder(left: Any, right: Any) -> Any:
    """Return the remainder that has the sign of the dividend; raises as :func:`remainder`."""
    return left - _quotient(left, right) * right


def _elementwise(function: Callable[..., Any], *names: str) -> Callable[..., Integers]:
    applied = np.frompyfunc(function, len(names), 1)
    return lambda **given: integers(applied(*(given[name] for name in names)))


def _comparison(holds: Callable[[Any, Any], bool]) -> Callable[..., Integers]:
    return _elementwise(lambda a, b: int(holds(a, b)), "a", "b")


def _reduction(combine: Callable[..., Any]) -> Callable[..., Integers]:
    def reduce(input: Integers, *, axes: Sequence[int] | None, keep_dimensions: bool) -> Integers:
        over = tuple(range(input.ndim)) if axes is None else tuple(axes)
        return integers(combine(input, axis=over, keepdims=keep_dimensions) if over else input)

    return reduce


def _window(input: Integers, starts: Any, sizes: Any, strides: Any) -> Integers:
    steps = (1,) * input.ndim if strides is None else strides
    return input[tuple(slice(a, a + size, step) for a, size, step in zip(starts, sizes, steps, strict=True))]


def _pieces(input: Integers, splits: Any, axis: int) -> list[Integers]:
    ends = splits if isinstance(splits, int) else np.cumsum(splits)[:-1]
    return [integers(piece) for piece in np.split(input, ends, axis)]


def _chosen(condition: Any, true_value: Any, false_value: Any) -> Any:
    if type(condition) is SymbolicSize:
        raise UnknownSizeError(f"whether {condition} is 0 is known at dispatch only")
    return true_value if condition else false_value


def _joined(inputs: Sequence[Integers], axis: int) -> Integers:
    return np.concatenate(inputs, axis)


def _reshaped(input: Integers, new_shape: Sequence[int]) -> Integers:
    return input.reshape(new_shape)


def _expanded(input: Integers, new_shape: Sequence[int]) -> Integers:
    return np.broadcast_to(input, new_shape)


def _transposed(input: Integers, permutation: Sequence[int] | None) -> Integers:
    return input.transpose(permutation)


def _gathered(input: Integers, indices: Integers, axis: int) -> Integers:
    return integers(np.take(input, indices.astype(np.int64), axis))


def _itself(input: Integers, data_type: str = "") -> Integers:
    return input


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": _elementwise(lambda a, b: a + b, "a", "b"),
    "sub": _elementwise(lambda a, b: a - b, "a", "b"),
    "mul": _elementwise(lambda a, b: a * b, "a", "b"),
    "div": _elementwise(_quotient, "a", "b"),
    "max": _elementwise(lambda a, b: b if _is_below(a, b) else a, "a", "b"),
    "min": _elementwise(lambda a, b: a if _is_below(a, b) else b, "a", "b"),
    "neg": _elementwise(lambda item: -item, "input"),
    "abs": _elementwise(lambda item: -item if _is_below(item, 0) else item, "input"),
    "equal": _comparison(_is_equal),
    "not_equal": _comparison(lambda a, b: not _is_equal(a, b)),
    "lesser": _comparison(_is_below),
    "greater": _comparison(lambda a, b: _is_below(b, a)),
    "lesser_or_equal": _comparison(lambda a, b: not _is_below(b, a)),
    "greater_or_equal": _comparison(lambda a, b: not _is_below(a, b)),
    "where": _elementwise(_chosen, "condition", "true_value", "false_value"),
    "identity": _itself,
    "cast": _itself,
    "concat": _joined,
    "slice": _window,
    "split": _pieces,
    "reshape": _reshaped,
    "expand": _expanded,
    "transpose": _transposed,
    "gather": _gathered,
    "reduce_sum": _reduction(np.sum),
    "reduce_product": _reduction(np.prod),
}
"""The operators of chains, and their results: more than ONNX's data propagation, and no floats."""
