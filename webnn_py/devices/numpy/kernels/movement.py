"""Operators that move elements, on arrays. Where strides suffice, the result is a view; all others copy once."""

from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from operator import itemgetter, methodcaller
from types import EllipsisType

import numpy as np

from webnn_py.core.graph import Node
from webnn_py.core.operators import movement
from webnn_py.core.operators.casting import cast_number
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run, View, in_order, kernel, scalar, view

Slices = tuple[slice, ...]
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


@kernel(movement.split)
def split(node: Node) -> Kernel:
    axis = node.options["axis"]
    ends = accumulate(descriptor.shape[axis] for descriptor in node.outputs)
    before = (slice(None),) * axis
    pieces = [
        (*before, slice(end - descriptor.shape[axis], end)) for end, descriptor in zip(ends, node.outputs, strict=True)
    ]

    def cut(input: Array, *outputs: Array) -> None:
        for piece, output in zip(pieces, outputs, strict=True):
            np.copyto(output, input[piece])

    return cut


@kernel(movement.tile)
def tile(node: Node) -> Kernel:
    sizes, repetitions = node.operand("input").shape, node.options["repetitions"]
    copies = tuple(number for pair in zip(repetitions, sizes, strict=True) for number in pair)
    once = tuple(number for size in sizes for number in (1, size))

    def repeat(input: Array, output: Array) -> None:
        np.copyto(output.reshape(copies), input.reshape(once))

    return repeat


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


@kernel(movement.pad)
def pad(node: Node) -> Kernel:
    padding = (node.options["beginning_padding"], node.options["ending_padding"])
    shape, mode = node.operand("input").shape, node.options["mode"]
    inner = tuple(slice(begin, begin + size) for begin, size in zip(padding[0], shape, strict=True))
    middle: Window = (*inner, ...)
    margins = list(_margins(inner, *padding, mode))
    data_type = node.outputs[0].data_type
    value = scalar(cast_number(node.options["value"], data_type), data_type)

    def prepare(input: Array, output: Array) -> Run:
        copies = [partial(np.copyto, output[middle], input)]
        for margin, source in margins:
            copies.append(partial(np.copyto, output[margin], value if mode == "constant" else output[source]))
        return in_order(copies)

    return PreparedKernel(prepare)


def _margins(
    inner: Slices, beginning: tuple[int, ...], ending: tuple[int, ...], mode: movement.PaddingMode
) -> Iterator[tuple[Slices, Slices]]:
    """Yield windows of the output that are padding, and the windows that they repeat, in an order to fill them.

    Axis by axis: a margin spans all of the axes before its own, which are padded already, and the inner part of the
    axes after it.
    """
    for axis, (begin, end) in enumerate(zip(beginning, ending, strict=True)):
        before, after = (slice(None),) * axis, inner[axis + 1 :]
        first, stop = inner[axis].start, inner[axis].stop
        if mode == "reflection":
            last = stop - 2  # the slice of ``end`` elements from there downward has no stop if it ends at 0
            low, high = slice(first + begin, first, -1), slice(last, last - end if last >= end else None, -1)
        else:
            low, high = slice(first, first + 1), slice(stop - 1, stop)
        if begin:
            yield (*before, slice(0, begin), *after), (*before, low, *after)
        if end:
            yield (*before, slice(stop, stop + end), *after), (*before, high, *after)
