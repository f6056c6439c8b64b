"""Element types: ONNX's by number, WebNN's by name."""

import math

from onnx import TensorProto, helper

from webnn_py.descriptors import DATA_TYPES, MLOperandDataType, operand_data_type
from webnn_py.operators.casting import INTEGER_RANGES
from webnn_py.operators.rules import refuse


def type_name(element_type: int) -> str:
    """The name of an ONNX element type: numpy's name where numpy has one."""
    if element_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return str(TensorProto.DataType.Name(element_type)).lower()
    try:
        return str(helper.tensor_dtype_to_np_dtype(element_type).name)
    except KeyError:
        return f"type {element_type}"


def data_type_name(element_type: int) -> str:
    """The WebNN data type of an ONNX element type; a type that WebNN lacks keeps its name.

    Booleans are ``uint8``, 0 or 1, as WebNN's own logical operators have them.
    """
    name = type_name(element_type)
    return "uint8" if name == "bool" else name


def webnn_data_type(subject: str, element_type: int) -> MLOperandDataType:
    """The WebNN data type of an ONNX element type.

    Raises:
        Refused: WebNN has no such type.
    """
    name = data_type_name(element_type)
    if name not in DATA_TYPES:
        refuse(subject, name, f"bool or one of {', '.join(DATA_TYPES)}")
    return operand_data_type(name)


def extreme(data_type: MLOperandDataType, *, lowest: bool) -> float:
    """The lowest or the highest value of a data type, which for floats is infinite."""
    if data_type in INTEGER_RANGES:
        return INTEGER_RANGES[data_type][0 if lowest else 1]
    return -math.inf if lowest else math.inf
