"""Records of the nodes that kernels compute, for timings and pictures."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from webnn_py.device.kernel_nodes import remembered
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.graph import Node


def with_nodes(kernels: Sequence[Kernel], nodes: Sequence[Node]) -> list[Kernel]:
    """Return the kernels that compute some nodes, each with all of them; only the largest counts their operations."""
    records = remembered(nodes)
    other = tuple(attrs.evolve(node, flops=0) for node in records)
    largest = max(kernels, key=lambda kernel: kernel.bytes_moved, default=None)
    drawn = tuple(sorted({place for node in nodes for place in node.drawn}))
    return [attrs.evolve(kernel, nodes=records if kernel is largest else other, drawn=drawn) for kernel in kernels]
