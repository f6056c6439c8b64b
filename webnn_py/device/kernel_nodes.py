"""What is remembered of the nodes that a kernel computes, once the graph itself is gone."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from webnn_py.graph import Node


@attrs.frozen
class KernelNode:
    """A node that a kernel computes.

    Attributes:
        operator: its name in the specification.
        label: the label that the script gave; of nodes that a device draws in another's place, what that was.
    """

    operator: str
    label: str

    @classmethod
    def of(cls, node: Node) -> KernelNode:
        """What is remembered of a node."""
        return cls(node.operator.spec_name, node.label)


def remembered(nodes: Iterable[Node]) -> tuple[KernelNode, ...]:
    """What is remembered of some nodes, in their order."""
    return tuple(map(KernelNode.of, nodes))
