"""Which element-wise nodes are computed by the kernel of another node: of one that reads them, or that they read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeGuard

from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar, readers_of
from webnn_py.device.on_wgpu.records.table import entry_of
from webnn_py.graph import Graph, Node, Output, Value

MOST_FUSED: Final = 100


class ElementwiseFusion:
    """The element-wise nodes of a graph, each with the node in whose kernel it is computed.

    Attributes:
        readers: the nodes that read a value.
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
        self.readers = readers_of(graph)
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
            if root is not None:
                read = leaves[root] - {node.results[0]} | bound
                if sizes[root] < MOST_FUSED and len(read) < self._max_buffers:
                    roots[node], leaves[root] = root, read
                    sizes[root] += 1
                    continue
            roots[node], leaves[node], sizes[node] = node, bound, 1
        return roots

    def _root_of_readers(self, value: Value, roots: Mapping[Node, Node]) -> Node | None:
        """The node in whose kernel all that reads a value is computed, element by element, if there is one."""
        readers = self.readers.get(value, [])
        if value in self._written or any(reader not in roots for reader in readers):
            return None
        if any(reader.outputs[0].shape != value.descriptor.shape for reader in readers):
            return None
        found = {roots[reader] for reader in readers}
        return found.pop() if len(found) == 1 else None

    def has_own_kernel(self, node: Node) -> bool:
        """Whether a node gets a kernel when its turn comes, and not only when what reads it asks for that."""
        return node not in self.inlined and node not in self.deferred

    # --- before a node that is not element-wise --------------------------------------------------------------

    def _may_be_computed(self, node: Node) -> bool:
        """Whether all that reads a node's result is one operand that kernels may compute as they read it."""
        value = node.results[0]
        readers = self.readers.get(value, [])
        if value in self._written or len(readers) != 1:
            return False
        name = entry_of(readers[0]).fuses
        return name is not None and readers[0].operands[name] is value

    # --- behind a node that is not element-wise --------------------------------------------------------------

    def take_epilogue(self, value: Value, is_ready: Callable[[Value], bool], spare_buffers: int) -> Node | None:
        """The last of the element-wise nodes that a value's own kernel may compute as well; None if there is none.

        These nodes alone read the value, have its shape, and all that they read besides lies ready, in at most
        ``spare_buffers``. The node that is returned is no longer inlined in another.
        """
        node = self._root_of_readers(value, self._roots)
        while node is not None:
            operands = self._ready_operands(node, value, is_ready)
            if operands is not None and len(operands) <= spare_buffers:
                self.inlined.discard(node)
                return node
            inner = [item.node for item in node.inputs if self.is_inlined(item)]
            node = next((item for item in inner if self._contains_readers(item, value)), None)
        return None

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """Whether a value is computed by the element-wise kernel that reads it."""
        return isinstance(value, Output) and value.node in self.inlined

    def _within(self, node: Node) -> set[Node]:
        """The nodes that a node's kernel computes."""
        nodes, stack = set(), [node]
        while stack:
            current = stack.pop()
            if current not in nodes:
                nodes.add(current)
                stack += [item.node for item in current.inputs if self.is_inlined(item)]
        return nodes

    def _contains_readers(self, node: Node, value: Value) -> bool:
        """Whether a node's kernel computes all that reads a value, and nothing else reads what lies between."""
        within = self._within(node)
        between = [value, *(inner.results[0] for inner in within - {node})]
        return all(within.issuperset(self.readers[item]) for item in between)

    def _ready_operands(self, node: Node, value: Value, is_ready: Callable[[Value], bool]) -> set[Value] | None:
        """What a node's kernel binds besides ``value``, or None where one of them is not written yet."""
        operands = set()
        for inner in self._within(node):
            for item in inner.inputs:
                if item is value or self.is_inlined(item):
                    continue
                if not is_ready(item):
                    return None
                if constant_scalar(item) is None:
                    operands.add(item)
        return operands
