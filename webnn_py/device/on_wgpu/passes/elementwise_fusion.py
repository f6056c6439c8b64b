"""Element-wise fusion: nodes that are computed by the kernel of a node that reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeGuard

from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar
from webnn_py.device.on_wgpu.records.table import entry_of
from webnn_py.device.on_wgpu.records.variants import KernelVariant
from webnn_py.graph import Graph, Node, Output, Value

MOST_FUSED: Final = 100


class ElementwiseFusion:
    """The element-wise nodes of a graph, each with the node in whose kernel it is computed.

    Attributes:
        nodes_reading: returns the nodes that read a value.
        inlined: the element-wise nodes that are computed by the element-wise kernel that reads them.
        deferred: those that another kernel alone reads, which may compute them as it reads them.
    """

    def __init__(self, graph: Graph, written: Collection[Value], max_buffers: int) -> None:
        """Fuse the graph's nodes.

        Args:
            graph: the nodes.
            written: values that have to be written to memory, whatever reads them.
            max_buffers: how many buffers a kernel can bind.
        """
        self._written = written
        self._max_buffers = max_buffers
        self.nodes_reading = graph.nodes_reading
        self._roots = self._fused(graph)
        self.inlined = {node for node, root in self._roots.items() if node is not root}
        self.deferred = {node for node, root in self._roots.items() if node is root and self._may_be_computed(node)}

    def _fused(self, graph: Graph) -> dict[Node, Node]:
        """For each element-wise node the one in whose kernel it is computed: itself, or where all that reads it is.

        A kernel computes at most :data:`MOST_FUSED` nodes and binds no more buffers than it can.
        """
        roots: dict[Node, Node] = {}
        leaves: dict[Node, set[Value]] = {}
        sizes: dict[Node, int] = {}
        for node in reversed(graph.nodes):
            if entry_of(node).expression is None:
                continue
            bound = {value for value in node.inputs if constant_scalar(value) is None}
            root = self._root_of_readers(node.results[0], roots)
            if root is not None and KernelVariant.ELEMENTWISE_FUSION.is_on:
                read = leaves[root] - {node.results[0]} | bound
                if sizes[root] < MOST_FUSED and len(read) < self._max_buffers:
                    roots[node], leaves[root] = root, read
                    sizes[root] += 1
                    continue
            roots[node], leaves[node], sizes[node] = node, bound, 1
        return roots

    def _root_of_readers(self, value: Value, roots: Mapping[Node, Node]) -> Node | None:
        """The same where these roots are known so far."""
        readers = self.nodes_reading(value)
        if value in self._written or any(reader not in roots for reader in readers):
            return None
        if any(reader.outputs[0].shape != value.descriptor.shape for reader in readers):
            return None
        found = {roots[reader] for reader in readers}
        return found.pop() if len(found) == 1 else None

    def root_of_readers(self, value: Value) -> Node | None:
        """The node in whose kernel all that reads a value is computed, element by element, if there is one."""
        return self._root_of_readers(value, self._roots)

    def has_own_kernel(self, node: Node) -> bool:
        """Whether a node gets a kernel when its turn comes, and not only when what reads it asks for that."""
        return node not in self.inlined and node not in self.deferred

    def _may_be_computed(self, node: Node) -> bool:
        """Whether all that reads a node's result is one operand that kernels may compute as they read it."""
        value = node.results[0]
        readers = self.nodes_reading(value)
        if value in self._written or len(readers) != 1:
            return False
        name = entry_of(readers[0]).fuses
        return name is not None and readers[0].operands[name] is value

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """Whether a value is computed by the element-wise kernel that reads it."""
        return isinstance(value, Output) and value.node in self.inlined
