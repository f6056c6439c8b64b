"""Small sigmoids side by side as one: each is four nodes, and what detects things ends in one for each size of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from webnn_py.device.on_onnxruntime.gating import gates
from webnn_py.graph import Graph, Node, Value
from webnn_py.operators import activation
from webnn_py.operators.movement import MAX_TENSOR_COUNT
from webnn_py.rewriting.builder import RewriteBuilder
from webnn_py.rewriting.walk import rewrite

FEWEST: Final = 3
"""So many are fewer nodes as one, with those that join and cut."""

MOST_ELEMENTS: Final = 2**12
"""Of one of them, in the mean: to copy more takes longer than the calls that are saved."""


def joined_sigmoids(graph: Graph) -> Graph:
    """The graph with one sigmoid for several that do not wait for each other, and differ in one axis at most.

    Gates of quantized networks stay as they are.
    """
    kept = gates(graph)
    kinds: dict[tuple[str, int], list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.operator is activation.sigmoid and node.results[0] not in kept:
            kinds[node.outputs[0].data_type, node.outputs[0].rank].append(node)
    group = _side_by_side(graph, next((nodes for nodes in kinds.values() if len(nodes) >= FEWEST), ()))
    axis = _axis(group)
    if axis is None:
        return graph
    joined = _joined(group, axis)
    results: dict[Value, Value] = {node.results[0]: value for node, value in zip(group, joined, strict=True)}
    return rewrite(graph, lambda node, _current: results if node is group[0] else None)


def _axis(nodes: Sequence[Node]) -> int | None:
    """The axis along which what nodes read can be joined, if that is worth its while."""
    shapes = [node.outputs[0].shape for node in nodes]
    differing = [axis for axis, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1]
    is_worth_it = FEWEST <= len(nodes) <= MAX_TENSOR_COUNT and sum(map(math.prod, shapes)) <= MOST_ELEMENTS * len(nodes)
    if not is_worth_it or len(differing) > 1 or not shapes[0]:
        return None
    return differing[0] if differing else 0


def _side_by_side(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    """Those of some nodes that depend on none of the others that are kept."""
    wanted, behind, found = set(nodes), set[Value](), list[Node]()
    for node in graph.nodes if wanted else ():
        is_behind = not behind.isdisjoint(node.inputs)
        if node in wanted and not is_behind:
            found.append(node)
        if is_behind or node in wanted:
            behind.update(node.results)
    return found


def _joined(nodes: Sequence[Node], axis: int) -> Sequence[Value]:
    """What each of some nodes gives, along an axis of one node of all their operands."""
    builder = RewriteBuilder(nodes[0].label, tuple([place for node in nodes for place in node.drawn]))
    operands = [builder.operand(node.inputs[0]) for node in nodes]
    sizes = [node.outputs[0].shape[axis] for node in nodes]
    pieces = builder.split(builder.sigmoid(builder.concat(operands, axis)), sizes, axis=axis)
    return [builder.value(piece) for piece in pieces]
