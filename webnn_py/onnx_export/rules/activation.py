"""Activation functions. Options are numbers of the operand's data type."""

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import activation
from webnn_py.core.operators.activation import clamp_bounds
from webnn_py.core.operators.casting import cast_number
from webnn_py.onnx_export.body import Body, OnnxTensor
from webnn_py.onnx_export.missing_data_types import FLOAT, shape, widened
from webnn_py.onnx_export.table import Written, rule, rules


def _option(node: Node, name: str) -> float:
    return float(cast_number(node.options[name], node.outputs[0].data_type))


def _function(body: Body, node: Node, operator: str, x: OnnxTensor) -> OnnxTensor:
    options = {name: _option(node, name) for name in ("alpha", "beta") if name in node.options}
    return widened(body, operator, x, native=FLOAT, **options)


rules(
    _function,
    {
        activation.elu: "Elu",
        activation.gelu: "Gelu",
        activation.hard_sigmoid: "HardSigmoid",
        activation.hard_swish: "HardSwish",
        activation.leaky_relu: "LeakyRelu",
        activation.sigmoid: "Sigmoid",
        activation.softplus: "Softplus",
        activation.softsign: "Softsign",
        activation.tanh: "Tanh",
    },
)


@rule(activation.clamp)
def clamp(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Clip; what is no bound is given as infinity, since by default the greatest number is."""
    lowest, highest = clamp_bounds(node.outputs[0].data_type, node.options["min_value"], node.options["max_value"])
    if input.data_type in ("int64", "uint64"):
        return body.decomposed(node, {"input": input})
    are_given = node.options["min_value"] is not None and node.options["max_value"] is not None
    write = body.twin if are_given else body.node
    return write("Clip", input, *(np.array(bound, input.data_type) for bound in (lowest, highest)))


@rule(activation.linear)
def linear(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Return a product and a sum."""
    alpha, beta = (np.array(_option(node, name), np.float32) for name in ("alpha", "beta"))
    product = body.node("Mul", body.cast(input, "float32"), alpha)
    return body.cast(body.node("Add", product, beta), input.data_type)


@rule(activation.prelu)
def prelu(body: Body, node: Node, input: OnnxTensor, slope: OnnxTensor) -> Written:
    """Write PRelu, in which the slope broadcasts, but not the input."""
    if not input.data_type.startswith("float"):
        return body.decomposed(node, {"input": input, "slope": slope})
    wanted = node.outputs[0].shape
    elements = input if input.shape == wanted else body.node("Expand", input, shape(*wanted))
    return widened(body, "PRelu", elements, slope, native=FLOAT)


@rule(activation.relu)
def relu(body: Body, node: Node, input: OnnxTensor) -> Written:
    """Relu; of integers in others, since onnxruntime 1.31 refuses a Clip of integers behind it."""
    if input.data_type.startswith("float"):
        return body.twin("Relu", input)
    return body.decomposed(node, {"input": input})


@rule(activation.softmax)
def softmax(body: Body, node: Node, input: OnnxTensor) -> OnnxTensor:
    """Softmax."""
    return widened(body, "Softmax", input, native=FLOAT, axis=node.options["axis"])
