"""Element-wise logical operators. ONNX's truth is a boolean; WebNN's is made of it, and it of WebNN's, by casts."""

from webnn_py.graph import Node
from webnn_py.onnx_export.body import BOOL, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import COMPUTED, chosen, compared
from webnn_py.onnx_export.table import rule
from webnn_py.operators import logical

NATIVE = (*COMPUTED, "float16")


@rule(logical.equal)
def equal(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Equal."""
    return body.number(compared(body, "Equal", a, b, native=NATIVE))


@rule(logical.not_equal)
def not_equal(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Not Equal."""
    return body.number(body.node("Not", compared(body, "Equal", a, b, native=NATIVE)))


@rule(logical.greater)
def greater(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Greater."""
    return body.number(compared(body, "Greater", a, b, native=NATIVE))


@rule(logical.greater_or_equal)
def greater_or_equal(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """GreaterOrEqual."""
    return body.number(compared(body, "GreaterOrEqual", a, b, native=NATIVE))


@rule(logical.lesser)
def lesser(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Less."""
    return body.number(compared(body, "Less", a, b, native=NATIVE))


@rule(logical.lesser_or_equal)
def lesser_or_equal(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """LessOrEqual."""
    return body.number(compared(body, "LessOrEqual", a, b, native=NATIVE))


@rule(logical.logical_not)
def logical_not(body: Body, node: Node, a: OnnxTensor) -> OnnxTensor:
    """Not."""
    return body.number(body.twin("Not", body.truth(a)))


@rule(logical.logical_and)
def logical_and(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """And."""
    return body.number(body.twin("And", body.truth(a), body.truth(b)))


@rule(logical.logical_or)
def logical_or(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Or."""
    return body.number(body.twin("Or", body.truth(a), body.truth(b)))


@rule(logical.logical_xor)
def logical_xor(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Xor."""
    return body.number(body.twin("Xor", body.truth(a), body.truth(b)))


@rule(logical.is_nan)
def is_nan(body: Body, node: Node, a: OnnxTensor) -> OnnxTensor:
    """IsNaN."""
    return body.number(body.twin("IsNaN", a, data_type=BOOL))


@rule(logical.is_infinite)
def is_infinite(body: Body, node: Node, a: OnnxTensor) -> OnnxTensor:
    """IsInf."""
    return body.number(body.twin("IsInf", a, data_type=BOOL))


@rule(logical.where)
def where(body: Body, node: Node, condition: OnnxTensor, true_value: OnnxTensor, false_value: OnnxTensor) -> OnnxTensor:
    """Where."""
    return chosen(body, body.truth(condition), true_value, false_value)
