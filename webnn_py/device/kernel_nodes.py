"""What is remembered of the nodes that a kernel computes, once the graph itself is gone."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from webnn_py.device.flops import flops
from webnn_py.graph import Node
from webnn_py.named_sizes.values import largest


@attrs.frozen
class KernelNode:
    """A node that a kernel computes.

    Attributes:
        operator: its name in the specification.
        label: the label that the script gave; of nodes that a device draws in another's place, what that was.
        flops: the arithmetic operations that it takes, as :func:`~webnn_py.device.flops.flops` counts them; of a node
            that several kernels compute together, the one that moves most bytes has them.
    """

    operator: str
    label: str
    flops: int

    @classmethod
    def of(cls, node: Node) -> KernelNode:
        """What is remembered of a node."""
        return cls(node.operator.spec_name, node.label, largest(flops(node)))


def remembered(nodes: Iterable[Node]) -> tuple[KernelNode, ...]:
    """What is remembered of some nodes, in their order."""
    return tuple(map(KernelNode.of, nodes))
