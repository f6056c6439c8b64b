"""Epilogue fusion: element-wise nodes that the kernel of their operand computes before it stores."""

from __future__ import annotations

from collections.abc import Callable

from webnn_py.device.on_wgpu.passes.elementwise_fusion import ElementwiseFusion
from webnn_py.device.on_wgpu.records.graph_queries import constant_scalar
from webnn_py.device.on_wgpu.records.variants import KernelVariant
from webnn_py.graph import Node, Value


class EpilogueFusion:
    """Takes nodes out of the element-wise kernels that would compute them, one producer after the other."""

    def __init__(self, fusion: ElementwiseFusion) -> None:
        self._fusion = fusion

    def take(self, value: Value, is_ready: Callable[[Value], bool], spare_buffers: int) -> Node | None:
        """The last of the element-wise nodes that a value's own kernel may compute as well; None if there is none.

        These nodes alone read the value, have its shape, and all that they read besides lies ready, in at most
        ``spare_buffers``. The node that is returned is no longer inlined in another.
        """
        node = self._fusion.root_of_readers(value)
        if node is not None and not KernelVariant.EPILOGUE_FUSION.is_on:
            return None
        while node is not None:
            operands = self._ready_operands(node, value, is_ready)
            if operands is not None and len(operands) <= spare_buffers:
                self._fusion.inlined.discard(node)
                return node
            inner = [item.node for item in node.inputs if self._fusion.is_inlined(item)]
            node = next((item for item in inner if self._contains_readers(item, value)), None)
        return None

    def _within(self, node: Node) -> set[Node]:
        """The nodes that a node's kernel computes."""
        nodes, stack = set(), [node]
        while stack:
            current = stack.pop()
            if current not in nodes:
                nodes.add(current)
                stack += [item.node for item in current.inputs if self._fusion.is_inlined(item)]
        return nodes

    def _contains_readers(self, node: Node, value: Value) -> bool:
        """Whether a node's kernel computes all that reads a value, and nothing else reads what lies between."""
        within = self._within(node)
        between = [value, *(inner.results[0] for inner in within - {node})]
        return all(within.issuperset(self._fusion.nodes_reading(item)) for item in between)

    def _ready_operands(self, node: Node, value: Value, is_ready: Callable[[Value], bool]) -> set[Value] | None:
        """Return the other operands that a node's kernel binds; None where one of them is not written yet."""
        operands = set()
        for inner in self._within(node):
            for item in inner.inputs:
                if item is value or self._fusion.is_inlined(item):
                    continue
                if not is_ready(item):
                    return None
                if constant_scalar(item) is None:
                    operands.add(item)
        return operands
