"""Nodes of the device's own in place of several that a graph says the same with: fewer calls, the same bits.

Folded batch normalizations and factors of convolutions alone round elsewhere. A zero that is pooled may have the other
sign, and the mean of one negative zero is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from webnn_py.device.folding import folded
from webnn_py.device.on_numpy.passes.dynamic_quantization import DynamicDifferences
from webnn_py.device.on_numpy.passes.gated_cells import GatedCell
from webnn_py.device.on_numpy.passes.integer_casts import uncast
from webnn_py.device.on_numpy.passes.matching import UnlikeError, check
from webnn_py.device.on_numpy.passes.pooled_convolutions import pooled_early
from webnn_py.device.on_numpy.passes.requantization import requantization
from webnn_py.device.on_numpy.passes.widened_constants import PRODUCTS, WidenedConstants
from webnn_py.device.on_numpy.table import constant_array
from webnn_py.device.plan import split_constant
from webnn_py.device.reshapes import is_reshape, keeps_one_element, reshape
from webnn_py.graph import Graph, Node, Value
from webnn_py.rewriting.walk import rewrite


def simplified(graph: Graph) -> Graph:
    """The graph with such nodes, and with what scales convolutions in their filters."""
    graph = folded(graph, lambda constant: constant_array(constant.data))
    if not any(map(_may_begin, graph.nodes)):
        return graph
    uses = Counter(value for node in graph.nodes for value in node.inputs)
    uses.update(graph.outputs.values())
    quantizations: dict[Value, Node] = {}
    wide = WidenedConstants({result for node in split_constant(graph)[0] for result in node.results})

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        name = node.operator.name
        try:
            if name == "sub":
                return _differences(node, current, quantizations)
            if name == "mul":
                return _cell(node, current)
            value = _in_its_place(node, current, uses, wide)
        except UnlikeError:
            return None
        return None if value is None else {node.results[0]: value}

    return rewrite(graph, replace)


def _may_begin(node: Node) -> bool:
    """Whether there may be something to simplify where such a node is."""
    if node.operator.name in PRODUCTS:
        return node.outputs[0].data_type == "float16"
    if keeps_one_element(node.operator):
        return is_reshape(node)
    return node.operator.name in ("quantize_linear", "split", "max_pool2d")


def _in_its_place(node: Node, current: Node, uses: Mapping[Value, int], wide: WidenedConstants) -> Value | None:
    """What gives what this node does; None where nothing is looked for."""
    name = node.operator.name
    if name == "cast":
        return uncast(current)
    if keeps_one_element(node.operator):
        return _of_one(current)
    if name in PRODUCTS:
        return wide.product(current)
    if name == "max_pool2d":
        return pooled_early(node, current, uses).results[0]
    if name == "dequantize_linear" and uses[node.operands["input"]] == 1:  # type: ignore[index]  # no sequence
        return requantization(current).results[0]
    return None


def _of_one(node: Node) -> Value:
    """What a reduction of single elements gives: these, by a view, which pictures and profiles tell of."""
    check(is_reshape(node))
    return reshape(node.inputs[0], node.outputs[0].shape, node).results[0]


def _differences(node: Node, current: Node, made: dict[Value, Node]) -> Mapping[Value, Value]:
    """Quantization by the range of the elements, which several products may have in common."""
    found = DynamicDifferences.at(current)
    one = made.setdefault(found.quantized.scale, found.node(node.label))
    differences, scale = one.results
    return {node.results[0]: differences, DynamicDifferences.at(node).quantized.scale: scale}


def _cell(node: Node, current: Node) -> Mapping[Value, Value]:
    hidden, cell = GatedCell.at(current).node(node.label).results
    return {node.results[0]: hidden, GatedCell.at(node).following: cell}
