"""Tensors side by side, static ones and operands alike."""

from collections.abc import Sequence

import numpy as np

from webnn_py.core.decompositions import common
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import counted


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
    return common.stacked(context, [context.operand(piece) for piece in pieces], axis)


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
    return common.joined(context, present, axis)
