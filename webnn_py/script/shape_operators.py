"""The operators of the explainer on dynamic shapes, which take shapes as operands.

See docs/proposals/dynamic_shapes_explainer.md. Builders have them where
``open_ml(experimental={"dynamic-shapes-explainer"})`` asks for them. Each is drawn with operators of the specification:
a shape that is an operand is resolved to sizes when it is drawn, and the static operator takes these.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from webnn_py.descriptors import MLOperandDataType, converted, unsigned_longs
from webnn_py.errors import InvalidStateError
from webnn_py.message_text import in_brackets, listed, shown
from webnn_py.named_sizes.expressions import SymbolicSize
from webnn_py.operators.casting import INTEGER_RANGES
from webnn_py.operators.idl import operand
from webnn_py.operators.methods import OperatorMethods
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.resampling import InterpolationMode
from webnn_py.script.shape_values import MOST, integers, remainder, truncated_remainder

if TYPE_CHECKING:
    from webnn_py.script.dynamic_shapes import DimensionNames


class ShapeBuilder(OperatorMethods):
    """The members of a builder that these operators use."""

    @abstractmethod
    def constant(self, value: Any, *, data_type: Any = None, shape: Any = None) -> MLOperand:
        """Return a constant."""

    @abstractmethod
    def _shapes(self, method: str) -> DimensionNames:
        """Return the names of the builder's dimensions; raises ``NotSupportedError`` where there are none."""


# --- shapes as data ----------------------------------------------------------------------------------------


def shape(builder: ShapeBuilder, input: MLOperand, *, label: str = "") -> MLOperand:
    """Return an operand's shape as a tensor of uint32, one element for each dimension.

    Args:
        builder: draws it.
        input: an operand of rank 1 or more.
        label: a name for messages.
    """
    names = builder._shapes("shape")
    sizes = list(_operand_of("shape", "input", input, label).shape)
    if not sizes:
        raise TypeError(f"shape(){in_brackets(label)}: input is a scalar, and an empty shape is no tensor")
    parts = [_size(builder, size) for size in sizes]
    result = builder.concat(parts, 0, label=label) if len(parts) > 1 else builder.identity(parts[0], label=label)
    names.know(result, integers(sizes))
    return result


def _size(builder: ShapeBuilder, size: Any) -> MLOperand:
    """Return a size as data: a sum of so many ones."""
    if type(size) is not SymbolicSize:
        return builder.constant(int(size).to_bytes(4, "little"), data_type="uint32", shape=[1])
    count: list[Any] = [size]
    ones = builder.expand(builder.constant(1, data_type="uint32"), count)
    return builder.reduce_sum(ones, keep_dimensions=True)


def range_(
    builder: ShapeBuilder, start: MLOperand, limit: MLOperand, delta: MLOperand, *, label: str = ""
) -> MLOperand:
    """Return the numbers from ``start`` on, ``delta`` apart, before ``limit``.

    Args:
        builder: draws it.
        start: the first, of one element.
        limit: where they end, of one element and the data type of ``start``; it is not among them.
        delta: the step, in the same form: positive or negative, and known when it is drawn.
        label: a name for messages.
    """
    names = builder._shapes("range")
    first, end, step = (
        _resolved(builder, "range", name, item, label)
        for name, item in (("start", start), ("limit", limit), ("delta", delta))
    )
    if not len(first) == len(end) == len(step) == 1 or type(step[0]) is not int or not step[0]:
        what = f"{listed(first)}, {listed(end)}, {listed(step)}"
        raise TypeError(
            f"range(){in_brackets(label)}: start, limit and delta are {what}; they must have one element each, and "
            "delta must be a number other than 0"
        )
    data_type = start.data_type
    if not data_type == limit.data_type == delta.data_type:
        types = f"{data_type}, {limit.data_type} and {delta.data_type}"
        raise TypeError(
            f"range(){in_brackets(label)}: start, limit and delta are {types}; they must have one data type"
        )
    count: Any = -((first[0] - end[0]) // step[0])
    if type(count) is int and count < 1:
        raise TypeError(f"range(){in_brackets(label)}: there is no number from {first[0]} to {end[0]} by {step[0]}")
    ones = builder.expand(builder.constant(1, data_type=data_type), [count])
    places = builder.cumulative_sum(ones, 0, exclusive=True)
    begin, by = (builder.reshape(item, []) for item in (start, delta))
    result = builder.add(begin, builder.mul(places, by), label=label)
    if type(count) is int and count <= MOST:
        names.know(result, integers([first[0] + index * step[0] for index in range(count)]))
    return result


def modulus_floor(builder: ShapeBuilder, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
    """Return the remainders of a / b that have the sign of ``b``.

    Args:
        builder: draws it.
        a: the dividends.
        b: the divisors, of the same data type; they broadcast.
        label: a name for messages.
    """
    names = builder._shapes("modulus_floor")
    rest = _remainder(builder, a, b, is_floored=True, label=label)
    names.know_of(rest, remainder, a, b)
    return rest


def modulus_truncate(builder: ShapeBuilder, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
    """Return the remainders of a / b that have the sign of ``a``.

    Args:
        builder: draws it.
        a: the dividends.
        b: the divisors, of the same data type; they broadcast.
        label: a name for messages.
    """
    names = builder._shapes("modulus_truncate")
    rest = _remainder(builder, a, b, is_floored=False, label=label)
    names.know_of(rest, truncated_remainder, a, b)
    return rest


def _remainder(builder: ShapeBuilder, a: MLOperand, b: MLOperand, *, is_floored: bool, label: str) -> MLOperand:
    quotient = builder.div(a, b, label=label)
    data_type: MLOperandDataType = a.data_type
    if data_type not in INTEGER_RANGES:
        whole = (
            builder.floor(quotient)
            if is_floored
            else builder.mul(builder.sign(quotient), builder.floor(builder.abs(quotient)))
        )
        return builder.sub(a, builder.mul(whole, b), label=label)
    rest = builder.sub(a, builder.mul(quotient, b), label=label)
    if not is_floored or INTEGER_RANGES[data_type][0] == 0:
        return rest
    zero = builder.constant(0, data_type=data_type)
    differs = builder.not_equal(builder.lesser(rest, zero), builder.lesser(b, zero))
    is_adjusted = builder.logical_and(builder.not_equal(rest, zero), differs)
    return builder.where(is_adjusted, builder.add(rest, b), rest, label=label)


# --- ranks -------------------------------------------------------------------------------------------------


def squeeze(
    builder: ShapeBuilder, input: MLOperand, *, axes: Sequence[int] | None = None, label: str = ""
) -> MLOperand:
    """Return the input without dimensions of 1.

    Args:
        builder: draws it.
        input: any operand.
        axes: the dimensions to leave out; all of size 1 when absent, where none is known at dispatch only: the rank
            would be, too.
        label: a name for messages.
    """
    builder._shapes("squeeze")
    shape: list[Any] = list(_operand_of("squeeze", "input", input, label).shape)
    start = f"squeeze(){in_brackets(label)}: "
    if axes is None:
        unsure = [size for size in shape if type(size) is SymbolicSize and size.low <= 1]
        if unsure:
            raise TypeError(f"{start}whether {unsure[0]} is 1 is known at dispatch only; name the axes")
        left_out = {axis for axis, size in enumerate(shape) if size == 1}
    else:
        left_out = set(_axes("squeeze", axes, len(shape), label))
        for axis in left_out:
            if shape[axis] != 1:
                raise TypeError(f"{start}dimension {axis} of {listed(tuple(shape))} is {shape[axis]}; it must be 1")
    return builder.reshape(input, [size for axis, size in enumerate(shape) if axis not in left_out], label=label)


def unsqueeze(builder: ShapeBuilder, input: MLOperand, axes: Sequence[int], *, label: str = "") -> MLOperand:
    """Return the input with dimensions of 1.

    Args:
        builder: draws it.
        input: any operand.
        axes: where they are in the result, each once.
        label: a name for messages.
    """
    builder._shapes("unsqueeze")
    rest = list(_operand_of("unsqueeze", "input", input, label).shape)
    places = converted(f"unsqueeze(){in_brackets(label)}: axes", unsigned_longs, axes)
    rank = len(rest) + len(places)
    inserted = set(_axes("unsqueeze", places, rank, label))
    sizes = iter(rest)
    return builder.reshape(input, [1 if axis in inserted else next(sizes) for axis in range(rank)], label=label)


def _axes(method: str, given: object, rank: int, label: str) -> tuple[int, ...]:
    axes = converted(f"{method}(){in_brackets(label)}: axes", unsigned_longs, given)
    if any(axis >= rank for axis in axes) or len({*axes}) < len(axes):
        words = f"axes are {listed(axes)}; they must be distinct, and less than {rank}"
        raise TypeError(f"{method}(){in_brackets(label)}: {words}")
    return axes


def reshape_to2d(builder: ShapeBuilder, input: MLOperand, *, axis: int = 1, label: str = "") -> MLOperand:
    """Return the input as a matrix.

    Args:
        builder: draws it.
        input: any operand.
        axis: the first dimension that belongs to the columns; those before it are the rows.
        label: a name for messages.
    """
    builder._shapes("reshape_to2d")
    shape = _operand_of("reshape_to2d", "input", input, label).shape
    (place,) = _axes("reshape_to2d", [axis], len(shape) + 1, label)
    return builder.reshape(input, [math.prod(shape[:place]), math.prod(shape[place:])], label=label)


# --- shapes as operands ------------------------------------------------------------------------------------


def reshape_dynamic(builder: ShapeBuilder, input: MLOperand, new_shape: MLOperand, *, label: str = "") -> MLOperand:
    """Do what ``reshape()`` does, with the shape as an operand.

    Args:
        builder: draws it.
        input: the elements.
        new_shape: a vector of integers, computed from ``shape()`` and constants.
        label: a name for messages.
    """
    sizes = _resolved(builder, "reshape_dynamic", "new_shape", new_shape, label)
    return builder.reshape(input, sizes, label=label)


def expand_dynamic(builder: ShapeBuilder, input: MLOperand, new_shape: MLOperand, *, label: str = "") -> MLOperand:
    """Do what ``expand()`` does, with the shape as an operand.

    Args:
        builder: draws it.
        input: the elements.
        new_shape: a vector of integers, computed from ``shape()`` and constants.
        label: a name for messages.
    """
    sizes = _resolved(builder, "expand_dynamic", "new_shape", new_shape, label)
    return builder.expand(input, sizes, label=label)


def slice_dynamic(  # noqa: PLR0913 - the arguments of slice()
    builder: ShapeBuilder,
    input: MLOperand,
    starts: MLOperand,
    sizes: MLOperand,
    *,
    strides: Sequence[int] | None = None,
    label: str = "",
) -> MLOperand:
    """Do what ``slice()`` does, with starts and sizes as operands.

    Args:
        builder: draws it.
        input: the elements.
        starts: a vector of integers, computed from ``shape()`` and constants.
        sizes: a vector of integers, computed in the same way.
        strides: as for ``slice()``.
        label: a name for messages.
    """
    begins = _resolved(builder, "slice_dynamic", "starts", starts, label)
    lengths = _resolved(builder, "slice_dynamic", "sizes", sizes, label)
    return builder.slice(input, begins, lengths, strides=strides, label=label)


def pad_dynamic(
    builder: ShapeBuilder, input: MLOperand, beginning_padding: MLOperand, ending_padding: MLOperand, *, label: str = ""
) -> MLOperand:
    """Do what ``pad()`` does with zeros, with the paddings as operands.

    Args:
        builder: draws it.
        input: the elements.
        beginning_padding: a vector of integers, computed from ``shape()`` and constants.
        ending_padding: a vector of integers, computed in the same way.
        label: a name for messages.
    """
    before = _resolved(builder, "pad_dynamic", "beginning_padding", beginning_padding, label)
    after = _resolved(builder, "pad_dynamic", "ending_padding", ending_padding, label)
    return builder.pad(input, before, after, label=label)


def split_dynamic(
    builder: ShapeBuilder, input: MLOperand, splits: MLOperand, *, axis: int = 0, label: str = ""
) -> list[MLOperand]:
    """Do what ``split()`` does, with the sizes of the pieces as an operand.

    Args:
        builder: draws it.
        input: the elements.
        splits: a vector of integers, computed from ``shape()`` and constants.
        axis: as for ``split()``.
        label: a name for messages.
    """
    return builder.split(input, _resolved(builder, "split_dynamic", "splits", splits, label), axis=axis, label=label)


def resample2d_dynamic(  # noqa: PLR0913 - the options of resample2d()
    builder: ShapeBuilder,
    input: MLOperand,
    *,
    mode: InterpolationMode = "nearest-neighbor",
    scales: Sequence[float] | None = None,
    sizes: MLOperand | None = None,
    axes: Sequence[int] | None = None,
    label: str = "",
) -> MLOperand:
    """Do what ``resample2d()`` does, with the sizes as an operand.

    Args:
        builder: draws it.
        input: the image.
        mode: as for ``resample2d()``, and so all but ``sizes``.
        scales: by how much to stretch.
        sizes: a vector of two integers, computed from ``shape()`` and constants.
        axes: the two axes.
        label: a name for messages.
    """
    builder._shapes("resample2d_dynamic")
    new = None if sizes is None else _resolved(builder, "resample2d_dynamic", "sizes", sizes, label)
    return builder.resample2d(input, mode=mode, scales=scales, sizes=new, axes=axes, label=label)


def tile_dynamic(builder: ShapeBuilder, input: MLOperand, repetitions: MLOperand, *, label: str = "") -> MLOperand:
    """Do what ``tile()`` does, with the repetitions as an operand.

    Args:
        builder: draws it.
        input: the elements.
        repetitions: a vector of integers, computed from ``shape()`` and constants.
        label: a name for messages.
    """
    return builder.tile(input, _resolved(builder, "tile_dynamic", "repetitions", repetitions, label), label=label)


# --- operands ----------------------------------------------------------------------------------------------


def _operand_of(method: str, name: str, value: object, label: str) -> MLOperand:
    return converted(f"{method}(){in_brackets(label)}: {name}", operand, value)


def _resolved(builder: ShapeBuilder, method: str, name: str, value: object, label: str) -> list[Any]:
    """Return the integers of a vector; of a scalar, too, where ``range()`` takes it.

    Raises:
        TypeError: it is no operand of integers, or depends on what is no shape.
        NotSupportedError: the proposal was not asked for.
    """
    names = builder._shapes(method)
    given = _operand_of(method, name, value, label)
    start = f"{method}(){in_brackets(label)}: "
    rank = given.rank if method == "range" else 1
    if given.data_type not in INTEGER_RANGES or given.rank != rank:
        raise TypeError(f"{start}{name} is {given._descriptor}; it must be integers, of rank {rank}")
    found = names.known(given)
    if found is None:
        raise TypeError(
            f"{start}cannot resolve {name}, which is {shown(given)}: it must be computed from shape() and "
            "constants, and comparisons in it must be decided by the bounds of sizes"
        )
    return list(found.reshape(-1))


OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    "range": range_,
    **{
        function.__name__: function
        for function in (
            shape,
            modulus_floor,
            modulus_truncate,
            squeeze,
            unsqueeze,
            reshape_to2d,
            reshape_dynamic,
            expand_dynamic,
            slice_dynamic,
            pad_dynamic,
            split_dynamic,
            resample2d_dynamic,
            tile_dynamic,
        )
    },
}
"""The explainer's operators by their Python names."""


def call(name: str, builder: ShapeBuilder, /, *args: Any, **kwargs: Any) -> Any:
    """Draw one of :data:`OPERATORS`; what the operators refuse that it is drawn with names it, too."""
    names, function = builder._shapes(name), OPERATORS[name]
    start = f"{name}(){in_brackets(kwargs.get('label'))}: "
    try:
        bound = signature(function).bind(builder, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{start}{error}") from None
    for parameter, value in bound.arguments.items():
        if type(value) is MLOperand and not names.has(value):
            raise TypeError(f"{start}{parameter} belongs to another builder")
    try:
        return function(*bound.args, **bound.kwargs)
    except (TypeError, InvalidStateError) as error:
        text = str(error)
        raise type(error)(text if text.startswith(f"{name}()") else f"{start}{text}") from error.__cause__
