"""Products of matrices of 8-bit integers, as onnxruntime has them."""

from __future__ import annotations

from typing import Final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand


def integer_matmul(
    a: MLOperand, b: MLOperand, a_zero_point: MLOperand | None = None, b_zero_point: MLOperand | None = None
) -> MLOperandDescriptor:
    """Compute (a - a_zero_point) · (b - b_zero_point), of 8-bit integers, in int32; b is one constant matrix."""
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
    """Compute ((a - a_zero_point) · (b - b_zero_point)) · (a_scale · b_scale), of 8-bit integers, in float32.

    Scales and zero points are constants: one element, or one for each column of a single matrix b.
    """
    del b_scale, a_zero_point, b_zero_point
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return MLOperandDescriptor(a_scale.data_type, (*batch, a.shape[-2], b.shape[-1]))


SCALED_MATMUL: Final = Operator(scaled_matmul, "matmul", {})
