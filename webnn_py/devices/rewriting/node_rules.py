"""Functions that replace nodes, by the operators that they are for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.core.graph_rewriting import Replace
from webnn_py.core.operators.declaration import Operator


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
