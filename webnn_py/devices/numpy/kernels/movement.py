"""Operators that move elements, on arrays. Where strides suffice, the result is a view; all others copy once."""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter, methodcaller
from types import EllipsisType

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import movement
from webnn_py.core.operators.casting import cast_number
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run, View, in_order, kernel, scalar, view

Window = tuple[slice | EllipsisType, ...]
"""An index; the ellipsis makes the selection an array, not a scalar, at rank 0."""


@view(movement.reshape, otherwise=lambda _node: lambda x, output: np.copyto(output.reshape(x.shape), x))
def reshape(node: Node) -> View:
    # numpy refuses it where the operand is a view with axes that do not merge.
    return methodcaller("reshape", node.outputs[0].shape, copy=False)


@view(movement.transpose)
def transpose(node: Node) -> View:
    permutation = node.options["permutation"]
    return methodcaller("transpose") if permutation is None else methodcaller("transpose", permutation)


@view(movement.expand)
def expand(node: Node) -> View:
    shape = node.outputs[0].shape
    return lambda array: np.broadcast_to(array, shape)


@view(movement.slice_)
def slice_(node: Node) -> View:
    starts, sizes = node.options["starts"], node.options["sizes"]
    strides = node.options["strides"] or (1,) * len(starts)
    windows = zip(starts, sizes, strides, strict=True)
    return _window(slice(start, start + size, stride) for start, size, stride in windows)


@view(movement.reverse)
def reverse(node: Node) -> View:
    rank, axes = node.outputs[0].rank, node.options["axes"]
    axes = range(rank) if axes is None else axes
    return _window(slice(None, None, -1 if axis in axes else 1) for axis in range(rank))


def _window(slices: Iterator[slice]) -> View:
    window: Window = (*slices, ...)
    return itemgetter(window)


@kernel(movement.concat)
def concat(node: Node) -> Kernel:
    axis = node.options["axis"]

    def join(*arrays: Array) -> None:
        np.concatenate(arrays[:-1], axis, out=arrays[-1])

    return join


@kernel(movement.tile)
def tile(node: Node) -> Kernel:
    sizes = node.operand("input").shape
    once = [number for size in sizes for number in (1, size)]
    copies = [number for pair in zip(node.options["repetitions"], sizes, strict=True) for number in pair]
    return lambda x, output: np.copyto(output.reshape(copies), x.reshape(once))


@kernel(movement.pad)
def pad(node: Node) -> Kernel:
    """Copy the input into the middle; then fill what is around it, axis by axis, with what is there already."""
    sizes, mode, data_type = node.operand("input").shape, node.options["mode"], node.outputs[0].data_type
    value = scalar(cast_number(node.options["value"], data_type), data_type)
    beginning, ending = node.options["beginning_padding"], node.options["ending_padding"]
    middle = tuple(slice(begin, begin + size) for begin, size in zip(beginning, sizes, strict=True))
    window: Window = (*middle, ...)

    def prepare(input: Array, output: Array) -> Run:
        copies = [partial(np.copyto, output[window], input)]
        for axis, (begin, end) in enumerate(zip(beginning, ending, strict=True)):
            lines = output[(slice(None),) * (axis + 1) + middle[axis + 1 :]].swapaxes(0, axis)
            inner = lines[middle[axis]]
            if mode == "constant":
                low = high = value
            elif mode == "edge":
                low, high = inner[:1], inner[-1:]
            else:
                low, high = inner[begin:0:-1], inner[::-1][1 : end + 1]
            if begin:
                copies.append(partial(np.copyto, lines[:begin], low))
            if end:
                copies.append(partial(np.copyto, lines[-end:], high))
        return in_order(copies)

    return PreparedKernel(prepare)


@kernel(movement.triangular)
def triangular(node: Node) -> Kernel:
    """Mask the bits: one pass, whatever the data type, and NaN becomes zero like the rest."""
    *_, rows, columns = node.outputs[0].shape
    bits = np.dtype(f"u{np.dtype(node.outputs[0].data_type).itemsize}")
    distance = np.arange(1 - rows, columns)  # from the main diagonal: column - row
    diagonal = node.options["diagonal"]
    kept = distance >= diagonal if node.options["upper"] else distance <= diagonal
    every_bit = np.where(kept, ~bits.type(0), bits.type(0))
    # Each row of the mask is the one below it, shifted by one: windows of one vector, the last row first.
    mask = np.lib.stride_tricks.sliding_window_view(every_bit, columns)[::-1]

    def keep(input: Array, output: Array) -> None:
        np.bitwise_and(input.view(bits), mask, out=output.view(bits))

    return keep
