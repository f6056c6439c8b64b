"""Normalization."""

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import normalization
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.normalization import layer_axes
from webnn_py.onnx_export.body import Array, Body, OnnxTensor
from webnn_py.onnx_export.image_layouts import channels_first, laid_out
from webnn_py.onnx_export.table import Written, rule


def _epsilon(node: Node) -> float:
    return float(cast_number(node.options["epsilon"], node.outputs[0].data_type))


def _given(**operands: OnnxTensor | None) -> dict[str, OnnxTensor]:
    return {name: operand for name, operand in operands.items() if operand is not None}


def _or_filled(operand: OnnxTensor | None, value: float, data_type: str, *sizes: int) -> OnnxTensor | Array:
    """Return an operand that ONNX must be given."""
    return np.full(sizes, value, data_type) if operand is None else operand


@rule(normalization.batch_normalization)
def batch_normalization(
    body: Body,
    node: Node,
    input: OnnxTensor,
    mean: OnnxTensor,
    variance: OnnxTensor,
    scale: OnnxTensor | None = None,
    bias: OnnxTensor | None = None,
) -> Written:
    """Write BatchNormalization, where the channels are the second axis; others are decomposed."""
    if not body.computes("BatchNormalization", input.data_type) or input.rank < 2 or node.options["axis"] != 1:
        return body.decomposed(node, _given(input=input, mean=mean, variance=variance, scale=scale, bias=bias))
    channels = input.shape[1]
    weights = _or_filled(scale, 1, input.data_type, channels), _or_filled(bias, 0, input.data_type, channels)
    return body.twin("BatchNormalization", input, *weights, mean, variance, epsilon=_epsilon(node))


@rule(normalization.instance_normalization)
def instance_normalization(
    body: Body, node: Node, input: OnnxTensor, scale: OnnxTensor | None = None, bias: OnnxTensor | None = None
) -> Written:
    """Write InstanceNormalization, with the channels first, which is read back with reshapes around it."""
    if not body.computes("InstanceNormalization", input.data_type):
        return body.decomposed(node, _given(input=input, scale=scale, bias=bias))
    layout = node.options["layout"]
    channels = input.shape[1 if layout == "nchw" else 3]
    images = channels_first(body, input, layout)
    weights = _or_filled(scale, 1, input.data_type, channels), _or_filled(bias, 0, input.data_type, channels)
    output = body.node("InstanceNormalization", images, *weights, epsilon=_epsilon(node))
    return laid_out(body, output, layout)


@rule(normalization.layer_normalization)
def layer_normalization(
    body: Body, node: Node, input: OnnxTensor, scale: OnnxTensor | None = None, bias: OnnxTensor | None = None
) -> Written:
    """Write LayerNormalization, where the axes are the last ones in their order; others are decomposed."""
    axes = layer_axes(node.options["axes"], input.rank)
    first = input.rank - len(axes)
    if not body.computes("LayerNormalization", input.data_type) or not axes or axes != tuple(range(first, input.rank)):
        return body.decomposed(node, _given(input=input, scale=scale, bias=bias))
    weights = _or_filled(scale, 1, input.data_type, *input.shape[first:])
    return body.twin("LayerNormalization", input, weights, bias, axis=first, epsilon=_epsilon(node))
