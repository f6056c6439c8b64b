"""Element-wise logical operators. ONNX's results are booleans and WebNN's uint8, which casts convert."""

from webnn_py.core.graph import Node
from webnn_py.core.operators import logical
from webnn_py.onnx_export.body import BOOL, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import COMPUTED, chosen, compared
from webnn_py.onnx_export.table import rule, rules

NATIVE = (*COMPUTED, "float16")


@rule(logical.not_equal)
def not_equal(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Write Not of Equal."""
    return body.number(body.node("Not", compared(body, "Equal", a, b, native=NATIVE)))


def _comparison(body: Body, node: Node, operator: str, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    return body.number(compared(body, operator, a, b, native=NATIVE))


def _of_truths(body: Body, node: Node, operator: str, *operands: OnnxTensor) -> OnnxTensor:
    return body.number(body.twin(operator, *map(body.truth, operands)))


def _test(body: Body, node: Node, operator: str, a: OnnxTensor) -> OnnxTensor:
    return body.number(body.twin(operator, a, data_type=BOOL))


rules(
    _comparison,
    {
        logical.equal: "Equal",
        logical.greater: "Greater",
        logical.greater_or_equal: "GreaterOrEqual",
        logical.lesser: "Less",
        logical.lesser_or_equal: "LessOrEqual",
    },
)
rules(
    _of_truths,
    {logical.logical_not: "Not", logical.logical_and: "And", logical.logical_or: "Or", logical.logical_xor: "Xor"},
)
rules(_test, {logical.is_nan: "IsNaN", logical.is_infinite: "IsInf"})


@rule(logical.where)
def where(body: Body, node: Node, condition: OnnxTensor, true_value: OnnxTensor, false_value: OnnxTensor) -> OnnxTensor:
    """Write Where."""
    return chosen(body, body.truth(condition), true_value, false_value)
