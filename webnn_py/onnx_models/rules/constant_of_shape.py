"""Tensors of one value."""

import math
from typing import Final

import numpy as np
from onnx import TensorProto

from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.reading.tensors import tensor_array
from webnn_py.onnx_models.rule_table.declaration import Integers, rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

LARGE: Final = 16 << 20
"""A tensor of one value of at least this many bytes is no shape, and the device fills it."""

TOO_LARGE: Final = 2 << 30
"""A tensor of at least this many bytes is refused."""


@rule("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def filled(context: ConversionContext, shape: Integers, *, value: TensorProto | None = None) -> MLOperand:
    """Return a large tensor that has one value everywhere; a small one is computed while building."""
    element = np.zeros(1, np.float32) if value is None else tensor_array(value)
    if not all(isinstance(size, int) for size in shape):
        return context.expand(context.constant(element.reshape([])), shape)
    length = math.prod(shape) * element.itemsize
    if min(shape, default=0) < 1 or element.size != 1 or not LARGE <= length < TOO_LARGE:
        refuse(
            "the length of the tensor", length, f"from {LARGE:,} to {TOO_LARGE - 1:,} bytes to be filled by the device"
        )
    return context.expand(context.constant(element.reshape([])), shape)
