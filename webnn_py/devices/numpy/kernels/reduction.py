"""Reductions on arrays: numpy's own, of float16 in float32, rounded once."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from webnn_py.core.graph import Node
from webnn_py.core.operators import reduction
from webnn_py.devices.numpy.routines.blocks import Index, passes, tiles
from webnn_py.devices.numpy.routines.float16 import float32
from webnn_py.devices.numpy.scratch import allowance
from webnn_py.devices.numpy.table import Array, Kernel, elements, kernel, kernels, scalar

SIDE_BY_SIDE = 64
"""The adjacent columns from which on they are accumulated together, row by row."""

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


def place_of(node: Node, search: Callable[..., Array]) -> Kernel:
    """Make the kernel of np.argmin or np.argmax, for some rows at a time: it copies those that are not contiguous."""
    data_type = np.dtype(node.operand("input").data_type)
    order, kept = axis_last(node)
    in_float16, row_bytes = data_type == np.float16, np.dtype(np.intp).itemsize
    if in_float16 or order[-1] < len(kept):
        row_bytes += node.operand("input").shape[order[-1]] * max(4, data_type.itemsize)
    blocks = list(tiles(kept, max(1, allowance(node) // row_bytes))) if kept else [(...,)]

    def find(input: Array, output: Array) -> None:
        rows, places = input.transpose(order), output.reshape(kept)
        for block in blocks:
            some = float32(rows[block]) if in_float16 else rows[block]
            np.copyto(places[block], search(some, axis=-1), casting="same_kind")

    return find


def axis_last(node: Node) -> tuple[list[int], tuple[int, ...]]:
    """Return the axes of the operand, that of the option last, and the sizes of the others."""
    shape, axis = node.operand("input").shape, node.options["axis"]
    others = [other for other in range(len(shape)) if other != axis]
    return [*others, axis], tuple(shape[other] for other in others)


kernels(place_of, {reduction.arg_min: np.argmin, reduction.arg_max: np.argmax}, work=passes(2))


@kernel(reduction.cumulative_sum, work=passes(8))
def cumulative_sum(node: Node) -> Kernel:
    """Accumulate floats in float64, so that no error adds up along the axis."""
    data_type, exclusive = np.dtype(node.outputs[0].data_type), node.options["exclusive"]
    working = np.dtype(np.float64) if data_type.kind == "f" else data_type
    order, kept = axis_last(node)
    step = -1 if node.options["reversed"] else 1
    most = max(1, allowance(node) // (2 * working.itemsize))
    if prod(kept[order[-1] :]) >= SIDE_BY_SIDE:
        scan = partial(scan_side_by_side, list(tiles(kept, most)), working)
    else:
        scan = partial(scan_rows, most, working)

    def accumulate(input: Array, output: Array) -> None:
        values, sums = (array.transpose(order)[..., ::step] for array in (input, output))
        if exclusive:
            sums[..., 0] = 0
            values, sums = values[..., :-1], sums[..., 1:]
        if sums.size:
            scan(values, sums)

    return accumulate


def scan_side_by_side(blocks: Sequence[Index], working: np.dtype[Any], values: Array, sums: Array) -> None:
    """Accumulate along the last axis, many rows at once."""
    for block in blocks:
        some, results = values[block], sums[block]
        total = np.zeros(some.shape[:-1], working)
        for place in range(some.shape[-1]):
            np.add(total, some[..., place], out=total)
            np.copyto(results[..., place], total, casting="same_kind")


def scan_rows(most: int, working: np.dtype[Any], values: Array, sums: Array) -> None:
    """Accumulate along the last axis, some rows at a time, or one row in pieces."""
    total: Array | int = 0
    for block in tiles(values.shape, most):
        some = values[block].astype(working)
        if block[-1].start:  # the piece before ends where this one begins
            np.add(some[..., 0], total, out=some[..., 0])
        np.add.accumulate(some, axis=-1, dtype=working, out=some)
        np.copyto(sums[block], some, casting="same_kind")
        total = some[..., -1]
