"""Records of the nodes that a kernel computes, which outlive the graph."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from webnn_py.device.records.flops import flops
from webnn_py.graph import Node


@attrs.frozen
class KernelNode:
    """The record of a node that a kernel computes.

    Attributes:
        operator: its name in the specification.
        label: the label that the script gave; for nodes that a device creates, that of the replaced node.
        flops: its arithmetic operations, as :func:`~webnn_py.device.records.flops.flops` counts them; if several
            kernels compute the node together, they are counted for the kernel that moves most bytes.
    """

    operator: str
    label: str
    flops: int

    @classmethod
    def of(cls, node: Node) -> KernelNode:
        """Return the record of a node."""
        return cls(node.operator.spec_name, node.label, flops(node))


def remembered(nodes: Iterable[Node]) -> tuple[KernelNode, ...]:
    """Return the records of some nodes, in their order."""
    return tuple(map(KernelNode.of, nodes))
