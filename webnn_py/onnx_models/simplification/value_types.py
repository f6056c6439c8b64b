"""The types of a model's values: shapes, as far as they are known, and lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import TypeProto, helper

from webnn_py.onnx_models.reading.element_types import is_of_numpy


def of_known_sizes(declared: TypeProto) -> TypeProto:
    """Return a type whose negative sizes are unknown: ONNX's inference takes them as sizes, and can end the process."""
    if all(item.dim_value >= 0 for item in declared.tensor_type.shape.dim):
        return declared
    sized = TypeProto()
    sized.CopyFrom(declared)
    for item in sized.tensor_type.shape.dim:
        if item.dim_value < 0:
            item.ClearField("dim_value")
    return sized


def of_shape(declared: TypeProto, shape: Sequence[int | str] | None) -> TypeProto:
    """Return a type with another shape; None keeps its own, "?" is a dimension that stays open."""
    if shape is None:
        return declared
    sizes = [None if size == "?" else size for size in shape]
    fixed: TypeProto = helper.make_tensor_type_proto(declared.tensor_type.elem_type, sizes)
    return fixed


def has_shape(declared: TypeProto) -> bool:
    """Return whether it is a tensor type with a shape, which may have open dimensions."""
    return bool(declared.HasField("tensor_type") and declared.tensor_type.HasField("shape"))


def fixed_shape(declared: TypeProto | None) -> tuple[int, ...] | None:
    """Return the shape of a tensor type; None where a dimension is open."""
    if declared is None or not has_shape(declared):
        return None
    dimensions = declared.tensor_type.shape.dim
    if not all(item.HasField("dim_value") and item.dim_value >= 0 for item in dimensions):
        return None
    return tuple(item.dim_value for item in dimensions)


def byte_length(declared: TypeProto | None) -> int | None:
    """Return the bytes of a tensor; None where they are not known."""
    shape = fixed_shape(declared)
    if declared is None or shape is None or not is_of_numpy(declared.tensor_type.elem_type):
        return None
    return math.prod(shape) * helper.tensor_dtype_to_np_dtype(declared.tensor_type.elem_type).itemsize
