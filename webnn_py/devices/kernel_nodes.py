"""Records of the nodes that a kernel computes, which outlive the graph."""

from __future__ import annotations

from collections.abc import Iterable

from webnn_py.core.device.backend import KernelNode
from webnn_py.core.graph import Node
from webnn_py.devices.flops import flops


def remembered(nodes: Iterable[Node]) -> tuple[KernelNode, ...]:
    """Return the records of some nodes, in their order."""
    return tuple(KernelNode(node.operator.spec_name, node.label, flops(node)) for node in nodes)
