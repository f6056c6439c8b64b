"""Element-wise fusion: nodes that are computed by the kernel of a node that reads them."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, RefusedRule, fused_into, place_of
from webnn_py.devices.wgpu.passes.kernel_groups import ElementwiseGroups, KernelGroups
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar

ELEMENTWISE_FUSION: Final = "elementwise-fusion"

MOST_FUSED: Final = 100
"""The most nodes that one kernel computes."""


def fuse_elementwise(groups: KernelGroups, context: PassContext) -> KernelGroups:
    """Return the groups with each element-wise node in the kernel of all that reads it, if that is one.

    A kernel computes at most :data:`MOST_FUSED` nodes and binds no more buffers than the adapter can.
    """
    most_bound = groups.features.max_storage_buffers
    fused: dict[Node, list[Node]] = {}  # by their root
    roots: dict[Node, Node] = {}
    bound: dict[Node, set[Value]] = {}
    for node in reversed(groups.graph.nodes):
        if node not in groups.elementwise.roots:
            continue
        value = node.results[0]
        read = {operand for operand in node.inputs if constant_scalar(operand) is None}
        root = groups.elementwise.root_of_readers(value, roots)
        if isinstance(root, Node):
            both = bound[root] - {value} | read
            if len(fused[root]) < MOST_FUSED - 1 and len(both) < most_bound:
                roots[node], bound[root] = root, both
                fused[root].append(node)
                continue
            root = "a kernel would compute too many nodes" if len(both) < most_bound else "too many buffers"
        if root:
            context.refused.append(RefusedRule(ELEMENTWISE_FUSION, place_of(node), root))
        roots[node], bound[node], fused[node] = node, read, []
    context.applied.extend(
        AppliedRule(ELEMENTWISE_FUSION, fused_into(reversed(nodes), root))
        for root, nodes in reversed(fused.items())
        if nodes
    )
    if not context.applied:
        return groups
    return attrs.evolve(groups, elementwise=ElementwiseGroups(groups.graph, groups.written, roots))
