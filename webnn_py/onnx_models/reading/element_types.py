"""Element types: ONNX's by number, WebNN's by name."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from onnx import TensorProto, helper

from webnn_py.core.descriptors import DATA_TYPES, MLOperandDataType, operand_data_type
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.onnx_models.problems import RefusedWithWayOut

NARROW_FLOAT64: Final[Mapping[str, str]] = {"float64": "float32"}
"""The replacements of types that WebNN lacks, where the caller allows them."""

NARROW_INT64: Final[Mapping[str, str]] = {"int64": "int32", "uint64": "uint32"}
"""The replacements of types that some devices lack, where the caller allows them."""

_WAYS_OUT: Final[Mapping[str, str]] = {
    name: f"allow {name} → {narrower}: OnnxModel.load(…, {option}=True)"
    for option, types in (("narrow_float64", NARROW_FLOAT64), ("narrow_int64", NARROW_INT64))
    for name, narrower in types.items()
}

CAN_BE_NARROWED: Final = frozenset(_WAYS_OUT)
"""The names of those types."""

EXACTLY: Final[Mapping[str, str]] = {}
"""No type stands for another."""


@cache
def type_name(element_type: int) -> str:
    """Return the name of an ONNX element type: numpy's name where numpy has one."""
    if element_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return str(TensorProto.DataType.Name(element_type)).lower()
    try:
        return str(helper.tensor_dtype_to_np_dtype(element_type).name)
    except KeyError:
        return f"type {element_type}"


def is_of_numpy(element_type: int) -> bool:
    """Return whether the element type exists, and numpy's arrays can have it; strings are none."""
    name = type_name(element_type)
    return name not in ("undefined", "string") and not name.startswith("type ")


def has_numbers(element_type: int) -> bool:
    """Return whether numpy's own arrays have the element type, and it is one of numbers or booleans."""
    name = type_name(element_type)
    return name == "bool" or name in DATA_TYPES or name in CAN_BE_NARROWED or name in ("int16", "uint16")


def data_type_name(element_type: int, narrowing: Mapping[str, str] = EXACTLY) -> str:
    """Return the WebNN data type of an ONNX element type; a type that WebNN lacks keeps its name.

    Booleans are ``uint8``, 0 or 1, as WebNN's own logical operators have them.

    Args:
        element_type: ONNX's number of the type.
        narrowing: which types others stand for, by their names.
    """
    name = type_name(element_type)
    return "uint8" if name == "bool" else narrowing.get(name, name)


def webnn_data_type(
    subject: str,
    element_type: int,
    narrowing: Mapping[str, str] = EXACTLY,
    supported: Sequence[str] = DATA_TYPES,
) -> MLOperandDataType:
    """Return the WebNN data type of an ONNX element type.

    Raises:
        Refused: it is none of those that are supported.
    """
    name = data_type_name(element_type, narrowing)
    if name == "string":
        raise RefusedWithWayOut(f"{subject} is string; WebNN has no tensors of strings, so this cannot run", "")
    if name not in supported:
        raise RefusedWithWayOut(
            f"{subject} is {name}; it must be bool or one of {', '.join(supported)}", _WAYS_OUT.get(name, "")
        )
    return operand_data_type(name)


def extreme(data_type: MLOperandDataType, *, lowest: bool) -> float:
    """Return the lowest or the highest value of a data type, which for floats is infinite."""
    if data_type in INTEGER_RANGES:
        return INTEGER_RANGES[data_type][0 if lowest else 1]
    return -math.inf if lowest else math.inf
