"""Sides of products that the product's kernel computes as it reads them: weights of four bits, which so stay packed."""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.core.descriptors import FOUR_BITS
from webnn_py.core.graph import Node, Output, Value
from webnn_py.core.operators import conversion, matrix
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, RefusedRule, fused_into
from webnn_py.devices.wgpu.passes.kernel_groups import KernelGroups
from webnn_py.devices.wgpu.records.layout import Layout, is_gemm_readable
from webnn_py.devices.wgpu.records.left_to_readers import ComputedSide
from webnn_py.devices.wgpu.records.table import entry_of

COMPUTED_SIDES: Final = "gemm-computed-sides"


def compute_sides(groups: KernelGroups, context: PassContext) -> KernelGroups:
    """Return the groups with dequantized sides in the kernels of the products that read them."""
    taken = groups.taken | {*groups.attentions}
    found: dict[Value, ComputedSide] = {}
    for node in groups.graph.nodes:
        if node.operator not in (matrix.matmul, matrix.gemm) or node in taken:
            continue
        for value in (node.operands["a"], node.operands["b"]):
            nodes = _dequantization(value, groups) if isinstance(value, Output) else []
            layout = _layout(nodes)
            if layout is not None and isinstance(value, Output):
                found[value] = ComputedSide(nodes[0], layout, tuple(nodes))
                context.applied.append(AppliedRule(COMPUTED_SIDES, fused_into(nodes, node)))
            elif nodes:
                reason = "a product cannot read it through the views behind it"
                context.refused.append(RefusedRule(COMPUTED_SIDES, fused_into(nodes, node), reason))
    return attrs.evolve(groups, sides=found) if found else groups


def _dequantization(value: Value, groups: KernelGroups) -> list[Node]:
    """Return the node that dequantizes four bits and the views behind it of which a value is the last, if it is one."""
    nodes: list[Node] = []
    while isinstance(value, Output) and value not in groups.written:
        node = value.node
        if len(groups.elementwise.nodes_reading(value)) != 1:
            break
        nodes.insert(0, node)
        if node.operator is conversion.dequantize_linear:
            is_packed = node.operand("input").data_type in FOUR_BITS and node.outputs[0].data_type == "float32"
            return nodes if is_packed else []
        if entry_of(node).layout is None:
            break
        value = next(iter(node.inputs))
    return []


def _layout(nodes: list[Node]) -> Layout | None:
    """Return the layout in which a product reads what is dequantized; None where it cannot."""
    if not nodes:
        return None
    layout = Layout.dense(nodes[0].outputs[0].shape)
    for view in nodes[1:]:
        rule = entry_of(view).layout
        seen = None if rule is None else rule(view, layout)
        if not isinstance(seen, Layout):
            return None
        layout = seen
    return layout if is_gemm_readable(layout) else None
