"""Element-wise unary operators."""

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import unary
from webnn_py.onnx_export.body import BOOL, Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import computed
from webnn_py.onnx_export.table import rule, rules


def _exact(body: Body, node: Node, operator: str, x: OnnxTensor) -> OnnxTensor:
    """Write an operator that rounds nothing, so that float16 can be left to whoever runs the model."""
    return body.twin(operator, x)


rules(
    _exact,
    {
        unary.abs_: "Abs",
        unary.ceil: "Ceil",
        unary.floor: "Floor",
        unary.identity: "Identity",
        unary.neg: "Neg",
        unary.round_even: "Round",
    },
)
rules(
    computed,
    {
        unary.cos: "Cos",
        unary.erf: "Erf",
        unary.exp: "Exp",
        unary.log: "Log",
        unary.reciprocal: "Reciprocal",
        unary.sin: "Sin",
        unary.sqrt: "Sqrt",
        unary.tan: "Tan",
    },
)


@rule(unary.sign)
def sign(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Sign, which of NaN is NaN in ONNX."""
    if not input.data_type.startswith("float"):
        return body.twin("Sign", input)
    is_nan = body.node("IsNaN", input, data_type=BOOL)
    zero = np.array(0, input.data_type)
    return body.node("Where", is_nan, zero, body.node("Sign", input), data_type=input.data_type)
