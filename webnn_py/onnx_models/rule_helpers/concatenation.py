"""Tensors side by side and parts of tensors, static ones and operands alike."""

from collections.abc import Sequence

import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused


def stacked(context: ConversionContext, pieces: Sequence[Value], axis: int, name: str) -> Value:
    """Stack tensors along a new axis.

    Args:
        context: what to build with.
        pieces: the tensors, one at least.
        axis: the place of the new axis; negative ones count from the end.
        name: what the pieces are, in words.

    Raises:
        Refused: they have not the same shape, or there is no such axis.
    """
    shape = tuple(pieces[0].shape)
    if any(tuple(piece.shape) != shape for piece in pieces):
        shapes = sorted({tuple(piece.shape) for piece in pieces})
        raise Refused(f"the parts of {name} have the shapes {shapes[:5]}; they must be the same")
    axis = counted(axis, len(shape) + 1, f"the axis of {name}")
    static = [piece for piece in pieces if isinstance(piece, np.ndarray)]
    if len(static) == len(pieces):
        context.expenses.add_bytes(sum(piece.nbytes for piece in static))
        return np.stack(static, axis)
    long = [*shape[:axis], 1, *shape[axis:]]
    operands = [context.reshape(context.operand(piece), long) for piece in pieces]
    return operands[0] if len(operands) == 1 else context.concat(operands, axis)


def joined(context: ConversionContext, pieces: Sequence[Value], axis: int, name: str) -> Value:
    """Concatenate tensors along an axis; those without elements add nothing.

    Raises:
        Refused: they do not fit together, or there is no such axis.
    """
    axis = counted(axis, len(pieces[0].shape), f"the axis of {name}")
    others = {tuple(size for place, size in enumerate(piece.shape) if place != axis) for piece in pieces}
    if len(others) > 1 or any(len(piece.shape) != len(pieces[0].shape) for piece in pieces):
        raise Refused(f"the parts of {name} differ in more than the size of axis {axis}; they must not")
    static = [piece for piece in pieces if isinstance(piece, np.ndarray)]
    if len(static) == len(pieces):
        context.expenses.add_bytes(sum(piece.nbytes for piece in static))
        return np.concatenate(static, axis)
    present = [context.operand(piece) for piece in pieces if not isinstance(piece, np.ndarray) or piece.size]
    return present[0] if len(present) == 1 else context.concat(present, axis)


def cut(context: ConversionContext, x: MLOperand, axis: int, begin: int, end: int) -> MLOperand:
    """Return the part of an operand from one place along an axis to another, which may be all of it."""
    if end - begin == x.shape[axis]:
        return x
    starts, sizes = [0] * x.rank, list(x.shape)
    starts[axis], sizes[axis] = begin, end - begin
    return context.slice(x, starts, sizes)


def one_of(context: ConversionContext, x: MLOperand, axis: int, place: int) -> MLOperand:
    """Return the part of an operand at one place of an axis, without this axis."""
    part = cut(context, x, axis, place, place + 1)
    return context.reshape(part, [*x.shape[:axis], *x.shape[axis + 1 :]])
