"""Fuse dynamic quantization, which graphs spell out in fourteen operators, into the one operator that ONNX has for it.

Build time grows with the number of nodes. onnxruntime's result is the same to the last bit for finite numbers that are
not all tiny.
"""

from __future__ import annotations

from collections.abc import Mapping

from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.operators import conversion, reduction
from webnn_py.core.operators.operand import MLOperand
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE, dynamic_quantize
from webnn_py.devices.rewriting.dynamic_quantization import DynamicQuantization, recognized
from webnn_py.devices.rewriting.node_rules import NodeRule, of_operators


def dynamic_quantizations(graph: Graph) -> NodeRule | None:
    """Return the rule that replaces each dynamic quantization of a graph by one node; None where there is none."""
    found: dict[Node, DynamicQuantization] = {}
    for node in graph.nodes:
        there = recognized(node) if node.operator is conversion.quantize_linear else None
        if there is not None:
            found[next(item for item in there.nodes if item.operator.name == "reduce_min")] = there
    if not found:
        return None

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        there = found.get(node)
        if there is None:
            return None
        outputs = tuple(dynamic_quantize(MLOperand.from_descriptor(node.operand("input"))))
        made = Node(DYNAMIC_QUANTIZE, current.operands, {}, outputs, there.quantization.label, there.drawn)
        results = (there.quantization.results[0], there.scale, there.zero_point)
        return dict(zip(results, made.results, strict=True))

    return of_operators(replace, reduction.reduce_min)
