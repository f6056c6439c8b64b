"""Groups of the nodes that one kernel computes: what the passes over kernels take and return."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import TypeGuard

import attrs

from webnn_py.core.graph import Graph, Node, Output, Value
from webnn_py.devices.wgpu.records.attention import Attention
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.graph_queries import nodes_within
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.left_to_readers import ComputedSide
from webnn_py.devices.wgpu.records.table import entry_of


class ElementwiseGroups:
    """The element-wise nodes of a graph, each with the node in whose kernel it is computed, its root.

    Args:
        graph: the graph.
        written: values that are written to memory, whatever reads them.
        roots: the root of each element-wise node, which may be the node itself.

    Attributes:
        nodes_reading: returns the nodes that read a value.
        roots: the same as the argument.
        inlined: the nodes that the element-wise kernel of another node computes. Epilogue fusion removes those that
            become the last of an epilogue.
        deferred: the roots that one node of another kind alone reads, whose kernel may compute them as it reads them.
    """

    def __init__(self, graph: Graph, written: Collection[Value], roots: Mapping[Node, Node]) -> None:
        self._written = written
        self.nodes_reading = graph.nodes_reading
        self.roots = roots
        self.inlined = {node for node, root in roots.items() if node is not root}
        self.deferred = {node for node, root in roots.items() if node is root and self._may_be_computed(node)}

    def copy(self) -> ElementwiseGroups:
        """Return a copy that epilogue fusion may change."""
        made = copy(self)
        made.inlined = set(self.inlined)
        return made

    def _may_be_computed(self, node: Node) -> bool:
        """Return whether one operand that kernels may compute as they read it is all that reads a node's result."""
        value = node.results[0]
        readers = self.nodes_reading(value)
        if value in self._written or len(readers) != 1:
            return False
        name = entry_of(readers[0]).fuses
        return name is not None and readers[0].operands[name] is value

    def root_of_readers(self, value: Value, roots: Mapping[Node, Node] | None = None) -> Node | str:
        """Return the root of all nodes that read a value; the reason if there is none, "" if one is not element-wise.

        Args:
            value: the value.
            roots: the roots as far as they are known; all roots by default.
        """
        roots = self.roots if roots is None else roots
        readers = self.nodes_reading(value)
        if value in self._written or not readers or any(reader not in roots for reader in readers):
            return ""
        if any(reader.outputs[0].shape != value.descriptor.shape for reader in readers):
            return "it is broadcast"
        found = {roots[reader] for reader in readers}
        return found.pop() if len(found) == 1 else "several kernels read it"

    def is_inlined(self, value: Value) -> TypeGuard[Output]:
        """Return whether the element-wise kernel that reads a value computes it."""
        return isinstance(value, Output) and value.node in self.inlined

    def within(self, *starts: Node) -> list[Node]:
        """Return nodes and those inlined in their kernels, each once, behind those that it reads."""
        return nodes_within(starts, self.is_inlined)


@attrs.frozen(eq=False, slots=False)
class KernelGroups:
    """The nodes of a graph, grouped by the node in whose turn their kernel is written.

    Attributes:
        graph: the graph.
        features: what kernels may use.
        written: the values that are written to output buffers, each with its buffer.
        elementwise: the groups of element-wise nodes.
        attentions: each attention that one kernel computes, by its last product.
        sides: the sides of products that the products' kernels compute.
    """

    graph: Graph
    features: Features
    written: Mapping[Value, Buffer]
    elementwise: ElementwiseGroups
    attentions: Mapping[Node, Attention] = attrs.field(factory=dict)
    sides: Mapping[Value, ComputedSide] = attrs.field(factory=dict)

    @classmethod
    def from_graph(cls, graph: Graph, features: Features) -> KernelGroups:
        """Return the groups of a graph in which each node is alone."""
        written: dict[Value, Buffer] = {}
        for name, value in graph.outputs.items():
            written.setdefault(value, Buffer("output", value.descriptor.byte_length, name))
        for value, buffer in list(written.items()):
            for reshaped in reshaped_from(value):
                written.setdefault(reshaped, buffer)
        roots = {node: node for node in graph.nodes if entry_of(node).expression is not None}
        return cls(graph, features, written, ElementwiseGroups(graph, written, roots))

    @cached_property
    def taken(self) -> set[Node]:
        """The nodes that kernels of attention, or of products that compute a side, compute besides their last node."""
        fused: list[Attention | ComputedSide] = [*self.attentions.values(), *self.sides.values()]
        return {node for group in fused for node in group.nodes}

    @property
    def nodes(self) -> list[Node]:
        """The last node of each group."""
        return [node for node in self.graph.nodes if node not in self.elementwise.inlined and node not in self.taken]


def reshaped_from(value: Value) -> Iterator[Output]:
    """Yield the results of kernels of which a value is only another shape, nearest first."""
    while isinstance(value, Output) and len(value.node.results) == 1:
        rule, operand = entry_of(value.node).layout, next(iter(value.node.inputs), None)
        if rule is None or not isinstance(operand, Output):
            return
        layout = rule(value.node, Layout.dense(operand.descriptor.shape))
        is_whole = operand.descriptor.byte_length == value.descriptor.byte_length
        if not (is_whole and isinstance(layout, Layout) and layout.is_dense):
            return
        yield operand
        value = operand
