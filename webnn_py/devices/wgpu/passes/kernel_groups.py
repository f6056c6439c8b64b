"""Groups of the nodes that one kernel computes: what the passes over kernels take and return.

Epilogue fusion, of element-wise nodes that the kernel of their operand computes before it stores, is decided while
kernels are written, since a kernel's writer knows how many buffers it can still bind, and the walk which operands are
computed by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import TypeGuard

import attrs

from webnn_py.core.graph import Graph, Node, Output, Value
from webnn_py.devices.rewriting.passes import PassContext
from webnn_py.devices.rewriting.report import AppliedRule, RefusedRule, fused_into
from webnn_py.devices.wgpu.records.attention import Attention
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.graph_queries import constant_scalar, nodes_within
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.left_to_readers import ComputedSide
from webnn_py.devices.wgpu.records.table import entry_of
from webnn_py.devices.wgpu.records.variants import KernelVariant


class ElementwiseGroups:
    """The element-wise nodes of a graph, each with the node in whose kernel it is computed, its root.

    Args:
        graph: the graph.
        written: values that are written to memory, whatever reads them.
        roots: the root of each element-wise node, which may be the node itself.

    Attributes:
        nodes_reading: returns the nodes that read a value.
        roots: the same as the argument.
        inlined: the nodes that the element-wise kernel of another node computes. :meth:`take_epilogue` removes those
            that become the last of an epilogue.
        deferred: the roots that one node of another kind alone reads, whose kernel may compute them as it reads them.
    """

    def __init__(self, graph: Graph, written: Collection[Value], roots: Mapping[Node, Node]) -> None:
        self._written = written
        self.nodes_reading = graph.nodes_reading
        self.roots = roots
        self.inlined = {node for node, root in roots.items() if node is not root}
        self.deferred = {node for node, root in roots.items() if node is root and self._may_be_computed(node)}

    def copy(self) -> ElementwiseGroups:
        """Return a copy that :meth:`take_epilogue` may change."""
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

    def take_epilogue(
        self, value: Output, context: PassContext, is_ready: Callable[[Value], bool], spare_buffers: int
    ) -> Node | None:
        """Return the last of the element-wise nodes that a value's own kernel may compute; None if there is none.

        These nodes alone read the value and have its shape, and their other operands are ready, in at most
        ``spare_buffers``. The node that is returned is no longer inlined in another.
        """
        root = self.root_of_readers(value)
        if not isinstance(root, Node) or not KernelVariant.EPILOGUE_FUSION.is_on:
            return None
        node: Node | None = root
        reason = ""
        while node is not None:
            within = self.within(node)
            read = {item for inner in within for item in inner.inputs}
            operands = {item for item in read if item is not value and not self.is_inlined(item)}
            if not all(map(is_ready, operands)):
                reason = reason or "an operand is computed later"
            elif sum(constant_scalar(item) is None for item in operands) > spare_buffers:
                reason = reason or "too many buffers"
            else:
                self.inlined.discard(node)
                context.applied.append(AppliedRule(KernelVariant.EPILOGUE_FUSION, fused_into(within, value.node)))
                return node
            inner = [item.node for item in node.inputs if self.is_inlined(item)]
            node = next((item for item in inner if self._contains_readers(item, value)), None)
        context.refused.append(RefusedRule(KernelVariant.EPILOGUE_FUSION, fused_into([root], value.node), reason))
        return None

    def _contains_readers(self, node: Node, value: Value) -> bool:
        """Return whether a node's kernel computes all readers of a value, and all readers of values in between."""
        within = set(self.within(node))
        between = [value, *(inner.results[0] for inner in within - {node})]
        return all(within.issuperset(self.nodes_reading(item)) for item in between)


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
