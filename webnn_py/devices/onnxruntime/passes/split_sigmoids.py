"""Compute the sigmoids of several parts of a value at once, before it is split, as recurrent networks draw their gates.

On a GPU a kernel of a few thousand elements takes as long as one of a few, and an exact sigmoid is three of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webnn_py.core.graph import Graph, Node, Value
from webnn_py.core.operators import activation, movement
from webnn_py.devices.rewriting.node_rules import NodeRule, of_operators

MOST: Final = 2**16
"""The most elements that are split: of more, those whose sigmoid nothing reads take longer than the kernels saved."""


def sigmoids_before_splits(graph: Graph) -> NodeRule | None:
    """Return the rule that moves sigmoids of two or more parts before their split; None where a graph has none.

    The parts themselves stay, for their other readers.
    """
    by_split = {node: _sigmoids_of_parts(graph, node) for node in graph.nodes}
    found = {node: sigmoids for node, sigmoids in by_split.items() if len({*sigmoids.values()}) > 1}
    if not found:
        return None

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        sigmoids = found.get(node)
        if sigmoids is None:
            return None
        first, whole = next(iter(sigmoids)), current.operand("input")
        drawn = (*current.drawn, *(place for one in sigmoids for place in one.drawn))
        operands = {"input": current.operands["input"]}
        made = Node(first.operator, operands, first.options, (whole,), first.label, drawn).results[0]
        parts = Node(node.operator, {"input": made}, current.options, current.outputs, current.label, drawn)
        return {one.results[0]: parts.results[index] for one, index in sigmoids.items()}

    return of_operators(replace, movement.split)


def _sigmoids_of_parts(graph: Graph, node: Node) -> Mapping[Node, int]:
    """Return the sigmoids that read a part of a small split value of float32, with the number of the part."""
    if node.operator is not movement.split or node.outputs[0].data_type != "float32":
        return {}
    if node.operand("input").element_count > MOST:
        return {}
    return {
        reader: part.index
        for part in node.results
        for reader in graph.nodes_reading(part)
        if reader.operator is activation.sigmoid
    }
