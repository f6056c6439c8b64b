"""A product in parts that the kernel behind it adds up as it reads them."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.graph import Value


@attrs.frozen(eq=False)
class PartialSums:
    """Parts of the sums of a product, contiguous, each as long as the product.

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
