"""Element-wise logical operators. ONNX's results are booleans and WebNN's uint8, which casts convert."""

from webnn_py.graph import Node
from webnn_py.onnx_export.body import BOOL, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import COMPUTED, chosen, compared
from webnn_py.onnx_export.table import Rule, rule
from webnn_py.operators import logical

NATIVE = (*COMPUTED, "float16")


@rule(logical.not_equal)
def not_equal(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Write Not of Equal."""
    return body.number(body.node("Not", compared(body, "Equal", a, b, native=NATIVE)))


def _comparison(name: str) -> Rule:
    def write(body: Body, node: Node, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
        return body.number(compared(body, name, a, b, native=NATIVE))

    return write


def _of_truths(name: str) -> Rule:
    def write(body: Body, node: Node, **operands: OnnxTensor) -> OnnxTensor:
        return body.number(body.twin(name, *map(body.truth, operands.values())))

    return write


def _test(name: str) -> Rule:
    def write(body: Body, node: Node, a: OnnxTensor) -> OnnxTensor:
        return body.number(body.twin(name, a, data_type=BOOL))

    return write


for _operator, _rule in (
    (logical.equal, _comparison("Equal")),
    (logical.greater, _comparison("Greater")),
    (logical.greater_or_equal, _comparison("GreaterOrEqual")),
    (logical.lesser, _comparison("Less")),
    (logical.lesser_or_equal, _comparison("LessOrEqual")),
    (logical.logical_not, _of_truths("Not")),
    (logical.logical_and, _of_truths("And")),
    (logical.logical_or, _of_truths("Or")),
    (logical.logical_xor, _of_truths("Xor")),
    (logical.is_nan, _test("IsNaN")),
    (logical.is_infinite, _test("IsInf")),
):
    rule(_operator)(_rule)


@rule(logical.where)
def where(body: Body, node: Node, condition: OnnxTensor, true_value: OnnxTensor, false_value: OnnxTensor) -> OnnxTensor:
    """Write Where."""
    return chosen(body, body.truth(condition), true_value, false_value)
