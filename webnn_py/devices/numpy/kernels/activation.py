"""Activation functions on arrays.

``clip`` with both bounds stands for max and min with a number: numpy vectorizes it, but not ``maximum`` with a scalar.
"""

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import activation
from webnn_py.core.operators.activation import clamp_bounds
from webnn_py.core.operators.casting import cast_number
from webnn_py.devices.numpy.routines import special
from webnn_py.devices.numpy.routines.blocks import (
    BLOCK_BYTES,
    Index,
    float_blocks,
    float_blocks_with,
    float_ufunc,
    in_blocks,
    passes,
)
from webnn_py.devices.numpy.routines.float16 import float32, narrow
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, kernel, kernels, scalar

ZERO, ONE, THREE, SIX, MINUS_THREE = (scalar(number, "float32") for number in (0, 1, 3, 6, -3))
INFINITY = scalar(np.inf, "float32")


def option(node: Node, name: str) -> Array:
    """Return a numeric option, cast to the operand's data type, for computing in float32."""
    # spec: * option
    return scalar(cast_number(node.options[name], node.outputs[0].data_type), "float32")


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


@kernel(activation.hard_sigmoid)
def hard_sigmoid(node: Node) -> Kernel:
    alpha, beta = option(node, "alpha"), option(node, "beta")

    def compute(x: Array, y: Array) -> None:
        np.multiply(x, alpha, out=y)
        np.add(y, beta, out=y)
        y.clip(ZERO, ONE, out=y)

    return float_blocks(node, compute)


def hard_swish(x: Array, y: Array, factor: Array) -> None:
    x.clip(MINUS_THREE, INFINITY, out=factor)  # not x: -Infinity times 0 would be NaN
    np.add(factor, THREE, out=y)
    y.clip(ZERO, SIX, out=y)
    np.divide(y, SIX, out=y)
    np.multiply(y, factor, out=y)


@kernel(activation.leaky_relu)
def leaky_relu(node: Node) -> Kernel:
    alpha = option(node, "alpha")
    if alpha == 0:
        return relu(node)  # Infinity · 0 is NaN
    higher_or_lower: Callable[..., Array] = np.maximum if alpha <= 1 else np.minimum

    def compute(x: Array, y: Array) -> None:
        np.multiply(x, alpha, out=y)
        higher_or_lower(x, y, out=y)

    return float_blocks(node, compute)


@kernel(activation.prelu, work=passes(2))
def prelu(node: Node) -> Kernel:
    data_type = node.outputs[0].data_type
    in_type = "float32" if data_type == "float16" else data_type
    lowest, highest = (scalar(bound, in_type) for bound in clamp_bounds(in_type, None, None))
    zero = scalar(0, in_type)

    def compute(x: Array, slope: Array, y: Array, positive: Array) -> None:
        x.clip(lowest, zero, out=y)
        np.multiply(y, slope, out=y)
        x.clip(zero, highest, out=positive)
        np.add(y, positive, out=y)

    return float_blocks(node, compute, in_type) if data_type == "float16" else in_blocks(node, compute, in_type)


kernels(float_blocks_with(np.float32), {activation.hard_swish: hard_swish}, work=passes(2))
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
