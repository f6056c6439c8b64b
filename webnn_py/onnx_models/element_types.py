"""Element types: ONNX's by number, WebNN's by name."""

from typing import Final

from onnx import TensorProto, helper

from webnn_py.descriptors import DATA_TYPES, MLOperandDataType, operand_data_type
from webnn_py.onnx_models.problems import RefusedWithWayOut

NARROWING: Final = "allow float64 → float32: OnnxModel.load(…, narrow_float64=True)"


def type_name(element_type: int) -> str:
    """The name of an ONNX element type: numpy's name where numpy has one."""
    if element_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return str(TensorProto.DataType.Name(element_type)).lower()
    try:
        return str(helper.tensor_dtype_to_np_dtype(element_type).name)
    except KeyError:
        return f"type {element_type}"


def data_type_name(element_type: int, *, narrow_float64: bool = False) -> str:
    """The WebNN data type of an ONNX element type; a type that WebNN lacks keeps its name.

    Booleans are ``uint8``, 0 or 1, as WebNN's own logical operators have them.
    """
    name = type_name(element_type)
    if name == "float64" and narrow_float64:
        return "float32"
    return "uint8" if name == "bool" else name


def webnn_data_type(subject: str, element_type: int, *, narrow_float64: bool = False) -> MLOperandDataType:
    """The WebNN data type of an ONNX element type.

    Raises:
        Refused: WebNN has no such type.
    """
    name = data_type_name(element_type, narrow_float64=narrow_float64)
    if name not in DATA_TYPES:
        raise RefusedWithWayOut(
            f"{subject} is {name}; it must be bool or one of {', '.join(DATA_TYPES)}",
            NARROWING if name == "float64" else "",
        )
    return operand_data_type(name)
