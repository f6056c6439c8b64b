"""The walk over a graph that replaces nodes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from webnn_py.graph import Graph, Node, Value
from webnn_py.operators.declaration import Operator

Replace = Callable[[Node, Node], Mapping[Value, Value] | None]
"""(a node, the same node with its replaced operands) → the replacements of values that this node or later nodes of the
graph give; None where the node stays."""


@attrs.frozen
class NodeRule:
    """A function that replaces nodes of some operators.

    Attributes:
        replace: the function.
        is_for: whether it may replace a node of an operator; it is not called for others.
    """

    replace: Replace
    is_for: Callable[[Operator[..., Any]], bool]


def of_operators(replace: Replace, *operators: Operator[..., Any]) -> NodeRule:
    """Return the rule for nodes of these operators."""
    return NodeRule(replace, operators.__contains__)


def first_of(rules: Sequence[NodeRule]) -> Replace:
    """Return a function that tries rules in order until one replaces the node."""
    by_operator: dict[Operator[..., Any], list[Replace]] = {}

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        chosen = by_operator.get(node.operator)
        if chosen is None:
            chosen = by_operator[node.operator] = [rule.replace for rule in rules if rule.is_for(node.operator)]
        for replace_it in chosen:
            if (built := replace_it(node, current)) is not None:
                return built
        return None

    return replace


def rewrite(graph: Graph, replace: Replace, replaced: dict[Value, Value] | None = None) -> Graph:
    """Return the graph with other nodes in place of some.

    Args:
        graph: the graph.
        replace: returns the replacements for a node's results.
        replaced: an empty dictionary to record each replaced value with its replacement, if ``replace`` reads it.
    """
    replaced = {} if replaced is None else replaced
    is_changed = False
    stay = replaced.keys().isdisjoint  # the view of the keys follows the dictionary
    for node in graph.nodes:
        current = node if stay(node.inputs) else with_operands(node, replaced)
        built = replace(node, current)
        is_changed = is_changed or built is not None
        if current is not node:
            for result, same in zip(node.results, current.results, strict=True):
                replaced.setdefault(result, same)
        if built is not None:
            replaced.update(built)
    if not is_changed:
        return graph
    rewritten = Graph.reaching({name: replaced.get(value, value) for name, value in graph.outputs.items()})
    # Inputs that nothing reads any more stay inputs.
    return Graph({**graph.inputs, **rewritten.inputs}, rewritten.outputs, rewritten.nodes)


def with_operands(node: Node, replaced: Mapping[Value, Value]) -> Node:
    """Return the node with its replaced operands."""
    operands: dict[str, Value | tuple[Value, ...]] = {}
    for name, value in node.operands.items():  # a loop, as a comprehension that holds ``replaced`` takes twice as long
        if isinstance(value, tuple):
            operands[name] = tuple([replaced.get(item, item) for item in value])
        else:
            operands[name] = replaced.get(value, value)
    return Node(node.operator, operands, node.options, node.outputs, node.label, node.drawn)
