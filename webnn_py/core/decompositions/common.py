"""The table of decompositions, and their helpers: constants, parts, float16 that is computed in float32."""

from array import array
from collections.abc import Sequence
from functools import wraps
from importlib import import_module
from typing import Any, Final, TypeVar

from webnn_py.core.descriptors import MLOperandDataType
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.declaration import Decomposition
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder, OperatorMethods
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.registry import CATEGORIES
from webnn_py.core.operators.windows import InputLayout, Slide, image_axes

DECOMPOSED: Final[dict[str, Decomposition]] = {}
"""The decompositions so far, by the operators' names; an operator's category is imported when one is asked for."""

DecompositionT = TypeVar("DecompositionT", bound=Decomposition)

_CODES: Final = {"float32": "f", "int32": "i", "int64": "q"}
"""How the module ``array`` writes numbers of a data type."""

GREATEST: Final = (2 - 2**-23) * 2.0**127
"""The greatest finite float32."""

Slides = tuple[Slide, Slide]
"""How windows slide along the height and along the width of images."""


def decomposition(function: DecompositionT) -> DecompositionT:
    """Enter the decomposition of the operator of its name."""
    DECOMPOSED[function.__name__] = function
    return function


def decomposition_of(name: str, category: str) -> Decomposition | None:
    """Return the decomposition of an operator; None for a primitive, and for an operator of another package."""
    if category in CATEGORIES:
        import_module(f"webnn_py.core.decompositions.{category}")
    return DECOMPOSED.get(name)


def number(builder: Builder, value: MLNumber, like: MLOperand) -> MLOperand:
    """Return a scalar constant of the operand's data type."""
    return builder.constant(value, data_type=like.data_type)


def polynomial(builder: Builder, factors: Sequence[float], x: MLOperand) -> MLOperand:
    """Return a polynomial of x, given its factors from that of the highest power on."""
    result = number(builder, factors[0], x)
    for factor in factors[1:]:
        result = builder.add(builder.mul(result, x), number(builder, factor, x))
    return result


def along(
    builder: Builder, values: Sequence[float], axis: int, rank: int, data_type: MLOperandDataType = "int32"
) -> MLOperand:
    """Return a constant whose ``values`` are along one of ``rank`` axes; it broadcasts along the others."""
    shape = [len(values) if index == axis else 1 for index in range(rank)]
    data = array(_CODES[data_type], values).tobytes()
    return builder.constant(data, data_type=data_type, shape=shape)


def joined(builder: OperatorMethods, parts: Sequence[MLOperand], axis: int) -> MLOperand:
    """Return the parts one after the other along an axis."""
    return parts[0] if len(parts) == 1 else builder.concat(parts, axis)


def filled(builder: Builder, value: MLNumber, data_type: MLOperandDataType, shape: Sequence[int]) -> MLOperand:
    """Return a tensor of one value."""
    return builder.expand(builder.constant(value, data_type=data_type), shape)


def padded(builder: Builder, input: MLOperand, axis: int, begin: int, end: int, value: MLNumber) -> MLOperand:
    """Return the input with a value repeated before and after its elements along an axis."""
    shape = list(input.shape)
    parts = [input]
    for count, place in ((begin, 0), (end, 2)):
        if count:
            shape[axis] = count
            parts.insert(place, filled(builder, value, input.data_type, shape))
    return joined(builder, parts, axis)


def cut(builder: OperatorMethods, input: MLOperand, axis: int, begin: int, end: int) -> MLOperand:
    """Return the part of the input from one place along an axis to another, which may be all of it."""
    starts, sizes = [0] * input.rank, list(input.shape)
    starts[axis], sizes[axis] = begin, end - begin
    return input if sizes[axis] == input.shape[axis] else builder.slice(input, starts, sizes)


def one_of(builder: OperatorMethods, input: MLOperand, axis: int, place: int) -> MLOperand:
    """Return the part of the input at one place of an axis, without this axis."""
    part = cut(builder, input, axis, place, place + 1)
    return builder.reshape(part, [*input.shape[:axis], *input.shape[axis + 1 :]])


def stacked(builder: OperatorMethods, parts: Sequence[MLOperand], axis: int) -> MLOperand:
    """Return parts of one shape one after the other along a new axis."""
    shape = list(parts[0].shape)
    shape.insert(axis, 1)
    return joined(builder, [builder.reshape(part, shape) for part in parts], axis)


def channels_first(builder: Builder, input: MLOperand, layout: InputLayout) -> MLOperand:
    return input if layout == "nchw" else builder.transpose(input, permutation=image_axes(layout))


def laid_out(builder: Builder, output: MLOperand, layout: InputLayout) -> MLOperand:
    return output if layout == "nchw" else builder.transpose(output, permutation=[0, 2, 3, 1])


def widened(function: Decomposition) -> Any:
    """Enter a decomposition that computes float16 in float32 and rounds once; options are rounded to float16 before."""

    @wraps(function)
    def wide(builder: Builder, *operands: object, **options: object) -> MLOperand | list[MLOperand]:
        if not any(_is_narrow(value) for value in (*operands, *options.values())):
            return function(builder, *operands, **options)

        def widen(value: object) -> object:
            if isinstance(value, float):
                return cast_number(value, "float16")
            return builder.cast(value, "float32") if isinstance(value, MLOperand) and _is_narrow(value) else value

        drawn = function(builder, *map(widen, operands), **{name: widen(value) for name, value in options.items()})
        if isinstance(drawn, list):
            return [_narrow(builder, operand) for operand in drawn]
        return _narrow(builder, drawn)

    return decomposition(wide)


def _is_narrow(value: object) -> bool:
    return isinstance(value, MLOperand) and value.data_type == "float16"


def _narrow(builder: Builder, operand: MLOperand) -> MLOperand:
    return builder.cast(operand, "float16") if operand.data_type == "float32" else operand
