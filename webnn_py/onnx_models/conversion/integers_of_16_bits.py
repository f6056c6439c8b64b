"""Integers of 16 bits that are computed when the graph runs: WebNN has none, and int32 carries them.

QuantizeLinear makes them, DequantizeLinear takes them, and between the two they are at most moved: no other operator
gets to see that they are wider than they should be.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from onnx import NodeProto, helper

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.conversion.node_conversion import results_of
from webnn_py.onnx_models.conversion.scopes import Converted, ShortIntegers, tensor_of
from webnn_py.onnx_models.reading.element_types import type_name
from webnn_py.onnx_models.reading.functions import OWN_DOMAINS

TYPES: Final = ("int16", "uint16")
CARRIER: Final = "int32"

DOMAINS: Final = (*OWN_DOMAINS, "com.microsoft")
"""The domains of the two operators; onnxruntime's are for models of before opset 21."""

MOVING: Final = frozenset(
    {
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
"""Operators that move the elements of their first input unchanged."""


def short_results(
    node: NodeProto, values: Sequence[Converted], opsets: Mapping[str, int], context: ConversionContext
) -> Sequence[Converted] | None:
    """Return the results of a node that makes, takes or moves such integers; None for any other node.

    Raises:
        Refused: it cannot be converted.
    """
    first = values[0] if values else None
    if node.op_type == "QuantizeLinear" and node.domain in DOMAINS:
        data_type = _type_made(node, values)
        return None if data_type is None else [_quantized(node, values, data_type, opsets, context)]
    if not isinstance(first, ShortIntegers):
        return None
    others = [None if value is None else tensor_of(value) for value in values[1:]]
    if node.op_type == "DequantizeLinear" and node.domain in DOMAINS:
        _check_zero_point(others[1] if len(others) > 1 else None, first.data_type)
        return results_of(node, [first.operand, *others], opsets, context)
    if node.op_type in MOVING and node.domain in OWN_DOMAINS:
        moved = results_of(node, [first.operand, *others], opsets, context)
        return [_carried(value, first.data_type) for value in moved]
    return None


def _type_made(node: NodeProto, values: Sequence[Converted]) -> str | None:
    """Return the type of 16 bits to which a node quantizes while the graph runs, if it does."""
    if not any(isinstance(value, MLOperand) for value in values):
        return None
    zero_point = values[2] if len(values) > 2 else None
    if isinstance(zero_point, np.ndarray):
        return zero_point.dtype.name if zero_point.dtype.name in TYPES else None
    asked = next((item.i for item in node.attribute if item.name == "output_dtype"), 0)
    types: dict[int, str] = {helper.np_dtype_to_tensor_dtype(np.dtype(name)): name for name in TYPES}
    return types.get(asked) if zero_point is None else None


def _quantized(
    node: NodeProto,
    values: Sequence[Converted],
    data_type: str,
    opsets: Mapping[str, int],
    context: ConversionContext,
) -> Converted:
    """Quantize to int32, and clamp to the range of the integers of 16 bits."""
    x, scale, *rest = [None if value is None else tensor_of(value) for value in values]
    plain = NodeProto()
    plain.CopyFrom(node)
    for index, item in enumerate(node.attribute):
        if item.name == "output_dtype":
            if item.i and type_name(item.i) != data_type:
                refuse("attribute output_dtype", type_name(item.i), f"{data_type}, that of the zero point, or absent")
            del plain.attribute[index]
    given = rest[0] if rest else None
    if isinstance(given, np.ndarray):
        zero_point = given.astype(CARRIER)
    else:
        zero_point = np.zeros(() if scale is None else scale.shape, CARRIER)
    context.reserve(zero_point.nbytes)
    (whole, *_) = results_of(plain, [x, scale, zero_point], opsets, context)
    bounds = np.iinfo(data_type)
    operand = context.operand(tensor_of(whole))
    return ShortIntegers(context.clamp(operand, min_value=bounds.min, max_value=bounds.max), data_type)


def _carried(value: Value | None, data_type: str) -> Converted:
    return ShortIntegers(value, data_type) if isinstance(value, MLOperand) else value


def _check_zero_point(value: Value | None, data_type: str) -> None:
    if value is None:
        return
    given = value.dtype.name if isinstance(value, np.ndarray) else value.data_type
    if given != data_type:
        refuse("the data type of input x_zero_point", given, f"{data_type}, that of input x")
