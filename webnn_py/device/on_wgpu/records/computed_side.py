"""A side of a product that its kernel computes as it reads it."""

from __future__ import annotations

import attrs

from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.graph import Node


@attrs.frozen(eq=False)
class ComputedSide:
    """A side that no kernel writes.

    Attributes:
        node: the element-wise node that computes its elements.
        layout: how to look at that node's result, as if it lay dense.
        nodes: that node and the views behind it.
    """

    node: Node
    layout: Layout
    nodes: tuple[Node, ...]
