"""Equal computations of positions and masks, made one: each layer of a decoder draws its own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.graph_rewriting import rewrite, with_operands
from webnn_py.core.operators import indexing
from webnn_py.core.operators.limits import FLOATS
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, place_of

EQUAL_NODES: Final = "equal-nodes"

MOST_ELEMENTS: Final = 2**20
"""The elements up to which a result is kept until its last reader, rather than computed again."""

MOST_FLOATS: Final = 16
"""The same for floats, which each reader computes for nothing where they are not broadcast."""

MOST_BYTES: Final = 2**14
"""The bytes up to which constants are compared by their contents."""


def merge_equal_nodes(graph: Graph, context: PassContext) -> Graph:
    """Return the graph with one node in place of equal ones that compute integers or a few floats, or gather floats."""
    leaders = _leaders(graph)
    followers: dict[Node, list[Node]] = {}
    for node, leader in leaders.items():
        followers.setdefault(leader, []).append(node)
    if not followers:
        return graph
    made: dict[Node, Node] = {}

    def replace(node: Node, current: Node) -> dict[Value, Value] | None:
        if node in followers:
            drawn = (*node.drawn, *(place for other in followers[node] for place in other.drawn))
            made[node] = Node(node.operator, current.operands, node.options, node.outputs, node.label, drawn)
            context.applied.append(AppliedRule(EQUAL_NODES, place_of(node)))
            return dict(zip(node.results, made[node].results, strict=True))
        if node in leaders:
            return dict(zip(node.results, made[leaders[node]].results, strict=True))
        return None

    return rewrite(graph, replace)


def _leaders(graph: Graph) -> dict[Node, Node]:
    """Return each node that an earlier one equals, and that one."""
    same: dict[Value, Value] = {}
    first: dict[Hashable, Node] = {}
    leaders: dict[Node, Node] = {}
    for node in graph.nodes:
        if not _is_merged(node):
            continue
        leader = first.setdefault(_key(node, same), node)
        if leader is not node:
            leaders[node] = leader
            same.update(zip(node.results, leader.results, strict=True))
    return leaders


def _is_merged(node: Node) -> bool:
    most = MOST_ELEMENTS if node.operator is indexing.gather else MOST_FLOATS
    return all(item.element_count <= (most if item.data_type in FLOATS else MOST_ELEMENTS) for item in node.outputs)


def _key(node: Node, same: dict[Value, Value]) -> Hashable:
    current = with_operands(node, same)
    operands = [
        (name, *map(_identity, value)) if isinstance(value, tuple) else (name, _identity(value))
        for name, value in current.operands.items()
    ]
    return node.operator, tuple(operands), repr(sorted(node.options.items())), node.outputs


def _identity(value: Value) -> Hashable:
    """Return what equal values have in common: small constants their contents, others are themselves."""
    data = value.data if isinstance(value, Constant) else None
    if isinstance(data, np.ndarray) and data.nbytes <= MOST_BYTES:
        return value.descriptor, data.tobytes()
    return value
