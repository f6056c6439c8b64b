"""Fuse convolutions and products with the bias and activation behind them into the one node that onnxruntime runs.

This saves onnxruntime's own fusion, which infers all shapes again.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Final

import attrs

from webnn_py.onnx_export.body import Array
from webnn_py.onnx_export.node_passes import WrittenNodes
from webnn_py.onnx_export.nodes import MICROSOFT, OnnxNode
from webnn_py.rewriting.passes import PassContext
from webnn_py.rewriting.report import AppliedRule

FUSED: Final[Mapping[str, str]] = {"Conv": "FusedConv", "Gemm": "FusedGemm"}
"""The operators with an activation, by the operators without one."""

ACTIVATIONS: Final = frozenset({"LeakyRelu", "Relu"})

WITHOUT_BIAS: Final = 2
"""The number of inputs of a convolution without a bias."""


def fuse_activations(written: WrittenNodes, context: PassContext) -> WrittenNodes:
    """Fuse each bias and activation into the convolution or product before it, whose result has no other reader.

    Only the CPU provider has such operators.
    """
    reads = Counter(chain.from_iterable([node.read for node in written.nodes]))
    reads.update(written.outputs)
    found: list[OnnxNode] = []
    places: dict[str, int] = {}
    transposed: set[str] = set()
    for node in written.nodes:
        place = _place_before(node, places)
        one = None if place is None else _as_one(found[place], node, written.constants)
        if one is None or place is None:
            place, one = len(found), node
            found.append(node)
        else:
            context.applied.append(AppliedRule(f"{node.operator} into {found[place].operator}", node.place))
        found[place] = one
        # onnxruntime folds a Transpose into Gemm, but not into FusedGemm.
        may_be_fused = one.operator != "Gemm" or transposed.isdisjoint(one.inputs)
        if one.operator == "Transpose":
            transposed.add(one.outputs[0])
        elif one.operator in FUSED and reads[one.outputs[0]] == 1 and may_be_fused:
            places[one.outputs[0]] = place
    return attrs.evolve(written, nodes=found) if context.applied else written


def _place_before(node: OnnxNode, places: Mapping[str, int]) -> int | None:
    """Return the index of the convolution or product that a bias or an activation reads."""
    if node.operator in ACTIVATIONS:
        return places.get(node.inputs[0])
    if node.operator == "Add":
        return places.get(node.inputs[0], places.get(node.inputs[1]))
    return None


def _as_one(before: OnnxNode, node: OnnxNode, constants: dict[str, Array]) -> OnnxNode | None:
    return _biased(before, node, constants) if node.operator == "Add" else _fused(before, node)


def _biased(convolution: OnnxNode, add: OnnxNode, constants: dict[str, Array]) -> OnnxNode | None:
    """Return a convolution with the added constant as its bias; None where that is not one number for each filter."""
    if convolution.operator != "Conv" or len(convolution.inputs) != WITHOUT_BIAS:
        return None
    name = add.inputs[1] if add.inputs[0] == convolution.outputs[0] else add.inputs[0]
    bias, filters = constants.get(name), constants.get(convolution.inputs[1])
    if bias is None or filters is None or bias.shape != (1, filters.shape[0], *(1,) * (filters.ndim - 2)):
        return None
    of_filters = f"{name}/filters"
    constants[of_filters] = bias.reshape(-1)
    inputs = [*convolution.inputs, of_filters]
    return OnnxNode("Conv", inputs, add.outputs, convolution.attributes, convolution.name)


def _fused(node: OnnxNode, activation: OnnxNode) -> OnnxNode:
    operator = FUSED[node.operator]
    attributes = (*node.attributes, ("activation", activation.operator))
    for name, value in activation.attributes:  # the slope of LeakyRelu
        attributes += (("activation_params", (value,)) if node.operator == "Conv" else (f"activation_{name}", value),)
    return OnnxNode(operator, node.inputs, activation.outputs, attributes, node.name, MICROSOFT)
