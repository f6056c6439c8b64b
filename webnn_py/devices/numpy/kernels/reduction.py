"""Reductions on arrays: numpy's own, of float16 in float32, rounded once."""

from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from webnn_py.core.graph import Node
from webnn_py.core.operators import reduction
from webnn_py.devices.numpy.routines.blocks import passes
from webnn_py.devices.numpy.table import Array, Kernel, elements, kernel, kernels, scalar

MOST_ZEROS = 2**12
"""The most means that are multiplied by zeros to test whether they are finite."""


def reduce_with(node: Node, ufunc: np.ufunc) -> Kernel:
    """Make the kernel that reduces the operand by a ufunc."""
    axes, keep = reduced_axes(node), node.options["keep_dimensions"]
    data_type = np.dtype(node.outputs[0].data_type)

    def reduce(input: Array, output: Array) -> None:
        ufunc.reduce(input, axis=axes, dtype=data_type, out=output, keepdims=keep)

    def reduce_in_float32(input: Array, output: Array) -> None:
        np.copyto(output, ufunc.reduce(input, axis=axes, dtype=np.float32, keepdims=keep), casting="same_kind")

    return reduce_in_float32 if data_type == np.float16 else reduce


def reduced_axes(node: Node) -> tuple[int, ...]:
    """Return the axes that a node reduces."""
    axes: tuple[int, ...] | None = node.options["axes"]
    return tuple(range(node.operand("input").rank)) if axes is None else axes


kernels(reduce_with, {reduction.reduce_sum: np.add, reduction.reduce_max: np.maximum, reduction.reduce_min: np.minimum})
kernels(reduce_with, {reduction.reduce_product: np.multiply}, work=passes(4))


@kernel(reduction.reduce_mean, work=elements)
def reduce_mean(node: Node) -> Kernel:
    axes, keep = reduced_axes(node), node.options["keep_dimensions"]
    shape, data_type = node.operand("input").shape, node.outputs[0].data_type
    count = prod(shape[axis] for axis in axes)
    sums = reduce_with(node, np.add)
    divisor, zeros = scalar(count, "float32"), np.zeros(min(node.outputs[0].element_count, MOST_ZEROS), np.float32)
    is_little = zeros.size == node.outputs[0].element_count

    def mean_in(working: npt.DTypeLike, input: Array, output: Array) -> None:
        total = np.add.reduce(input, axis=axes, dtype=working, keepdims=keep)
        np.copyto(output, np.divide(total, count, dtype=working), casting="same_kind")

    def mean(input: Array, output: Array) -> None:
        sums(input, output)
        np.divide(output, divisor, out=output)
        # The dot product by zeros, one call of BLAS, is 0, or NaN where a mean is not finite.
        if (np.vdot(output, zeros) != 0) if is_little else not np.isfinite(output).all():
            mean_in(np.float64, input, output)  # it may be within the range of float32 where the sum is not

    return mean if data_type == "float32" else partial(mean_in, np.float32)
