"""Activation functions on arrays.

``clip`` with both bounds stands for max and min with a number: numpy vectorizes it, but not ``maximum`` with a scalar.
"""

from collections.abc import Iterator
from math import prod

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import activation
from webnn_py.core.operators.activation import clamp_bounds
from webnn_py.devices.numpy.routines import special
from webnn_py.devices.numpy.routines.blocks import (
    BLOCK_BYTES,
    Index,
    float_blocks,
    float_blocks_with,
    float_ufunc,
    passes,
)
from webnn_py.devices.numpy.routines.float16 import float32, narrow
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, kernel, kernels, scalar


@kernel(activation.clamp)
def clamp(node: Node) -> Kernel:
    data_type = node.outputs[0].data_type
    return clipping(node, *clamp_bounds(data_type, node.options["min_value"], node.options["max_value"]))


@kernel(activation.relu)
def relu(node: Node) -> Kernel:
    return clipping(node, *clamp_bounds(node.outputs[0].data_type, 0, None))


def clipping(node: Node, lowest: float, highest: float) -> Kernel:
    data_type = node.outputs[0].data_type
    bounds = scalar(lowest, data_type), scalar(highest, data_type)
    return lambda x, y: x.clip(*bounds, out=y)


kernels(float_ufunc, {activation.tanh: np.tanh}, work=passes(3))
kernels(float_blocks, {activation.sigmoid: PreparedKernel(special.prepare_sigmoid)}, work=passes(5))
kernels(float_blocks_with(np.float32, np.float32), {activation.gelu: special.gelu}, work=passes(16))


# --- softmax ---------------------------------------------------------------------------------------------------

SHORTEST_RUN = 512
"""Contiguous runs of elements are not cut shorter than this: overheads would outweigh the cache's speed."""


@kernel(activation.softmax, work=passes(8))
def softmax(node: Node) -> Kernel:
    """Make the kernel, which sees its input as [outer, axis, inner] and takes it in blocks of whole rows."""
    shape, axis = node.outputs[0].shape, node.options["axis"]
    form = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    blocks = list(softmax_blocks(form, BLOCK_BYTES // 8))
    in_float16 = node.outputs[0].data_type == "float16"

    def run(input: Array, output: Array) -> None:
        x, y = input.reshape(form), output.reshape(form)
        for block in blocks:
            if in_float16:
                wide = float32(x[block])
                stable_softmax(wide, wide)
                narrow(wide, y[block])
            else:
                stable_softmax(x[block], y[block])

    return run


def softmax_blocks(form: tuple[int, int, int], limit: int) -> Iterator[Index]:
    """Cut [outer, axis, inner] into blocks of about ``limit`` elements that hold the axis whole."""
    outer, length, inner = form
    width = min(max(SHORTEST_RUN, limit // length), inner)
    rows = max(1, limit // (length * width))
    for start in range(0, outer, rows):
        for left in range(0, inner, width):
            yield slice(start, start + rows), slice(None), slice(left, left + width)


def stable_softmax(x: Array, y: Array) -> None:
    """Fill ``y`` with the softmax of ``x`` along the middle axis, less its maximum so that no exponential overflows."""
    np.subtract(x, np.maximum.reduce(x, axis=1, keepdims=True), out=y)
    np.exp(y, out=y)
    np.divide(y, np.add.reduce(y, axis=1, keepdims=True), out=y)
