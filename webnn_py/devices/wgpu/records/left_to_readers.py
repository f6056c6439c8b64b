"""Values that no kernel writes, since the kernel that reads them computes them."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.layout import Layout


@attrs.frozen(eq=False)
class ComputedSide:
    """A side of a product, which its kernel computes as it reads it.

    Attributes:
        node: the element-wise node that computes its elements.
        layout: how to look at that node's result, as if it lay dense.
        nodes: that node and the views behind it.
    """

    node: Node
    layout: Layout
    nodes: tuple[Node, ...]


@attrs.frozen(eq=False)
class PartialSums:
    """Parts of the sums of a product, contiguous and each as long as it, which the kernel behind it adds up.

    Attributes:
        product: what they are together.
        buffer: where they lie: dense, in float32.
        parts: how many there are.
        distance: the elements from the begin of a part to that of the next.
        add_up: emits the kernel that adds them up, and computes the element-wise nodes behind the product.
    """

    product: Value
    buffer: Buffer
    parts: int
    distance: int
    add_up: Callable[[], None]
