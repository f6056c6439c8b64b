"""Which nodes the kernels compute that one node's turn brings forth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from webnn_py.device.kernel_nodes import remembered
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.graph import Node, Output, Value


def nodes_computed(starts: Iterable[Node], is_inlined: Callable[[Value], bool]) -> list[Node]:
    """Nodes, and what is computed within their kernels, each behind those that it reads, once."""
    nodes: dict[Node, None] = {}
    for start in starts:
        stack = [(start, False)]
        while stack:
            node, has_operands = stack.pop()
            if has_operands:
                nodes[node] = None
            elif node not in nodes:
                stack.append((node, True))
                inner = [value for value in node.inputs if isinstance(value, Output) and is_inlined(value)]
                stack += [(value.node, False) for value in reversed(inner)]
    return list(nodes)


def with_nodes(kernels: Sequence[Kernel], nodes: Sequence[Node]) -> list[Kernel]:
    """The kernels of some nodes, each with all of them; only the largest has their operations."""
    told = remembered(nodes)
    other = tuple(attrs.evolve(node, flops=0) for node in told)
    largest = max(kernels, key=lambda kernel: kernel.bytes_moved, default=None)
    drawn = tuple(sorted({place for node in nodes for place in node.drawn}))
    return [attrs.evolve(kernel, nodes=told if kernel is largest else other, drawn=drawn) for kernel in kernels]
