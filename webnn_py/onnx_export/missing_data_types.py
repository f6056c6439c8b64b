"""Data types that onnxruntime's processor kernels lack, computed in others with the same result."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.onnx_export.body import BOOL, Array, Body, OnnxTensor

WIDER: Final = {
    "float16": "float32",
    "int8": "int32",
    "uint8": "int32",
    "uint32": "int64",
    "uint64": "int64",
}
"""The types to compute in: their low bits are right even where numbers wrap around, and floats are rounded once."""

FLOAT: Final = ("float32",)
COMPUTED: Final = ("float32", "int32", "int64")
"""The types in which onnxruntime 1.20 adds, multiplies and compares."""

LOWEST: Final[Mapping[str, Array]] = {"uint32": np.array(-(2**31), np.int32), "uint64": np.array(-(2**63), np.int64)}
"""The summand that flips the highest bit of an unsigned integer, in the signed type of its size."""

SIGNED: Final = {"uint32": "int32", "uint64": "int64"}


def widened(body: Body, operator: str, *inputs: OnnxTensor, native: tuple[str, ...], **attributes: Any) -> OnnxTensor:
    """Write an operator in a wider data type where there is no kernel for that of the inputs; sums may wrap around."""
    data_type = inputs[0].data_type
    if data_type in native or body.computes(operator, data_type):
        return body.twin(operator, *inputs, **attributes)
    wide = (body.cast(item, WIDER[data_type]) for item in inputs)
    return body.cast(body.node(operator, *wide, **attributes), data_type)


def computed(body: Body, node: Node, operator: str, *inputs: OnnxTensor, native: tuple[str, ...] = FLOAT) -> OnnxTensor:
    """Write an operator that alone means the node's, in a wider data type where there is no kernel for that."""
    return widened(body, operator, *inputs, native=native)


def ordered(body: Body, x: OnnxTensor) -> OnnxTensor:
    """Numbers of a type with kernels, in the same order; of large unsigned ones, with the highest bit turned over."""
    if x.data_type not in LOWEST:
        return body.cast(x, WIDER.get(x.data_type, x.data_type))
    return body.node("Add", body.cast(x, SIGNED[x.data_type]), LOWEST[x.data_type])


def unordered(body: Body, x: OnnxTensor, data_type: str) -> OnnxTensor:
    """Undo :func:`ordered`."""
    return body.cast(body.node("Add", x, LOWEST[data_type]) if data_type in LOWEST else x, data_type)


def compared(body: Body, operator: str, *inputs: OnnxTensor, native: tuple[str, ...]) -> OnnxTensor:
    """Return a comparison, as a boolean."""
    if inputs[0].data_type in native:
        return body.twin(operator, *inputs, data_type=BOOL)
    return body.node(operator, *(ordered(body, item) for item in inputs), data_type=BOOL)


def extreme(body: Body, operator: str, *inputs: OnnxTensor) -> OnnxTensor:
    """Max or Min; of integers of 64 bits by a comparison: onnxruntime 1.31 mistakes some beyond the range of 32."""
    if not inputs[0].data_type.endswith("64"):
        return widened(body, operator, *inputs, native=("float32", "float16", "int32", "uint32"))
    comparison = {"Max": "Greater", "Min": "Less"}[operator]
    is_first = body.node(comparison, *(ordered(body, item) for item in inputs), data_type=BOOL)
    return chosen(body, is_first, *inputs)


def chosen(body: Body, condition: OnnxTensor, true_value: OnnxTensor, false_value: OnnxTensor) -> OnnxTensor:
    """Write a Where of any data type."""
    data_type = true_value.data_type
    if data_type in ("float32", "float16", "int32", "int64", "uint8"):
        return body.twin("Where", condition, true_value, false_value, data_type=data_type)
    values = (body.cast(item, WIDER[data_type]) for item in (true_value, false_value))
    return body.cast(body.node("Where", condition, *values, data_type=WIDER[data_type]), data_type)


def shape(*sizes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Sizes, axes or the like, as ONNX takes them."""
    return np.array(sizes, np.int64)
