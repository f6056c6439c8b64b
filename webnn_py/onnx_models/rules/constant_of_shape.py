"""Tensors of one value."""

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np
from onnx import TensorProto

from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.reading.tensors import tensor_array
from webnn_py.onnx_models.rule_helpers.axes import integers
from webnn_py.onnx_models.rule_table.declaration import rule

LARGE: Final = 16 << 20
"""A tensor of one value of at least this many bytes is no shape, and the device fills it."""

TOO_LARGE: Final = 2 << 30
"""A tensor of at least this many bytes is refused."""

MOST_SHARED: Final = 128
"""Equal tensors of at most this many elements are one array, and so one constant."""


@lru_cache(1024)
def _filled(shape: tuple[int, ...], dtype: np.dtype[Any], element: bytes) -> StaticValue:
    filled = np.full(shape, np.frombuffer(element, dtype)[0])
    filled.flags.writeable = False
    return filled


@rule("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def filled(context: ConversionContext, input: StaticValue, *, value: TensorProto | None = None) -> Value:
    """Return a large tensor that has one value everywhere; a small one is computed while building."""
    element = np.zeros(1, np.float32) if value is None else tensor_array(value)
    shape = integers("input input", input)
    length = math.prod(shape) * element.itemsize
    is_plain = element.size == 1 and element.dtype.kind in "biuf" and input.ndim == 1
    if is_plain and min(shape, default=1) >= 1 and length < LARGE:
        context.reserve(length)
        fill = _filled if math.prod(shape) <= MOST_SHARED else _filled.__wrapped__
        return fill(shape, element.dtype, element.tobytes())
    if min(shape, default=0) < 1 or element.size != 1 or not LARGE <= length < TOO_LARGE:
        refuse(
            "the length of the tensor", length, f"from {LARGE:,} to {TOO_LARGE - 1:,} bytes to be filled by the device"
        )
    return context.expand(context.constant(element.reshape([])), shape)
