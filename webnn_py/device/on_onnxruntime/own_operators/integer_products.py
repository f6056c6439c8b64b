"""Products of matrices of integers of 8 bits, as onnxruntime has them."""

from __future__ import annotations

from typing import Final

import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand


def integer_matmul(
    a: MLOperand, b: MLOperand, a_zero_point: MLOperand | None = None, b_zero_point: MLOperand | None = None
) -> MLOperandDescriptor:
    """(a - a_zero_point) · (b - b_zero_point) of integers of 8 bits, in int32; b is one constant matrix."""
    return MLOperandDescriptor("int32", (*a.shape[:-1], b.shape[-1]))


INTEGER_MATMUL: Final = Operator(integer_matmul, "matmul", {})


def scaled_matmul(
    a: MLOperand,
    b: MLOperand,
    a_scale: MLOperand,
    b_scale: MLOperand,
    a_zero_point: MLOperand,
    b_zero_point: MLOperand,
) -> MLOperandDescriptor:
    """((a - a_zero_point) · (b - b_zero_point)) · (a_scale · b_scale), of integers of 8 bits, in float32.

    Scales and zero points are constants: of one element, or, of a single matrix b, one for each column.
    """
    del b_scale, a_zero_point, b_zero_point
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return MLOperandDescriptor(a_scale.data_type, (*batch, a.shape[-2], b.shape[-1]))


SCALED_MATMUL: Final = Operator(scaled_matmul, "matmul", {})
