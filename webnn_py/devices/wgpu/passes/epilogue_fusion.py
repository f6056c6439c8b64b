"""Epilogue fusion: element-wise nodes that the kernel of their operand computes before it stores.

It is decided while kernels are written, since a kernel's writer knows how many buffers it can still bind, and the walk
which operands are computed by then.
"""

from __future__ import annotations

from collections.abc import Callable

from webnn_py.core.graph import Node, Output, Value
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, RefusedRule, fused_into
from webnn_py.devices.wgpu.passes.kernel_groups import ElementwiseGroups
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar
from webnn_py.devices.wgpu.records.variants import KernelVariant

EPILOGUE_FUSION = KernelVariant.EPILOGUE_FUSION


def take_epilogue(
    value: Output,
    groups: ElementwiseGroups,
    context: PassContext,
    is_ready: Callable[[Value], bool],
    spare_buffers: int,
) -> Node | None:
    """Return the last of the element-wise nodes that a value's own kernel may compute; None if there is none.

    These nodes alone read the value and have its shape, and their other operands are ready, in at most
    ``spare_buffers``. The node that is returned is no longer inlined in another.
    """
    root = groups.root_of_readers(value)
    if not isinstance(root, Node) or not EPILOGUE_FUSION.is_on:
        return None
    node: Node | None = root
    reason = ""
    while node is not None:
        read = {item for inner in groups.within(node) for item in inner.inputs}
        operands = {item for item in read if item is not value and not groups.is_inlined(item)}
        if not all(map(is_ready, operands)):
            reason = reason or "an operand is computed later"
        elif sum(constant_scalar(item) is None for item in operands) > spare_buffers:
            reason = reason or "too many buffers"
        else:
            groups.inlined.discard(node)
            context.applied.append(AppliedRule(EPILOGUE_FUSION, fused_into(groups.within(node), value.node)))
            return node
        inner = [item.node for item in node.inputs if groups.is_inlined(item)]
        node = next((item for item in inner if _contains_readers(groups, item, value)), None)
    context.refused.append(RefusedRule(EPILOGUE_FUSION, fused_into([root], value.node), reason))
    return None


def _contains_readers(groups: ElementwiseGroups, node: Node, value: Value) -> bool:
    """Return whether a node's kernel computes all readers of a value, and all readers of values in between."""
    within = set(groups.within(node))
    between = [value, *(inner.results[0] for inner in within - {node})]
    return all(within.issuperset(groups.nodes_reading(item)) for item in between)
