"""The gather and scatter families on arrays.

All five select rows of the input, reshaped to rows, to read or to write. Indices are known only at dispatch, where
negative ones are counted from the end, and all are clamped.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from types import EllipsisType
from typing import Final

import attrs
import numpy as np

from webnn_py.core.graph import Constant, Node
from webnn_py.core.operators import indexing
from webnn_py.devices.numpy.routines.blocks import Index, tiles
from webnn_py.devices.numpy.scratch import allowance, scratch
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run, constant_array, kernel

BLOCK: Final = 1 << 16
"""The most indices to process together: 512 KiB of offsets."""

NUMBER_BYTES: Final = 10
"""The scratch bytes for the offset of an element or slice, and for the check of its range."""

IN_RANGE: Final = "wrap"
"""The fastest mode of np.take for offsets in range: "raise" would go through a buffer."""


def positions(indices: Array, size: int, counted: Array) -> Array:
    """Fill an array with indices into an axis of ``size``: negative ones count from the end; all are clamped."""
    np.copyto(counted, indices)
    if counted.min() < 0:
        np.add(counted, size, out=counted, where=counted < 0)
        np.maximum(counted, 0, out=counted)
    if counted.max() >= size:
        np.minimum(counted, size - 1, out=counted)
    return counted


def looked_up(node: Node) -> float:
    """Return the work of a gather: it touches the elements that it takes, not all of its input."""
    return 4.0 * (node.operand("indices").element_count + node.outputs[0].element_count)


@kernel(indexing.gather, work=looked_up)
def gather(node: Node) -> Kernel:
    axis, shape = node.options["axis"], node.operand("input").shape
    outer, size, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    count = node.operand("indices").element_count
    most = allowance(node)
    if count == 1:
        return gather_one(node, axis, size)
    # Where np.take cannot write into the output, it allocates an array.
    taken_bytes = outer * inner * np.dtype(node.outputs[0].data_type).itemsize
    length = most // NUMBER_BYTES
    if length < count and outer > 1:
        length = most // (NUMBER_BYTES + taken_bytes)
    length = max(1, min(count, length))
    some = max(1, min(length, most // (NUMBER_BYTES + taken_bytes)))
    memory = scratch(length, np.intp)

    def take(input: Array, indices: Array, output: Array) -> None:
        indices, results = indices.reshape(-1), output.reshape(outer, count, inner)
        is_dense = input.flags.c_contiguous
        rows = input.reshape(outer, size, inner) if is_dense else input
        step = length if is_dense else some
        for start in range(0, count, step):
            block = slice(start, min(start + step, count))
            found = positions(indices[block], size, memory[: block.stop - start])
            if is_dense:
                np.take(rows, found, 1, out=results[:, block], mode=IN_RANGE)
            else:
                selected = rows[(*(slice(None),) * axis, found)]
                np.copyto(results[:, block], selected.reshape(outer, -1, inner))

    return take


def gather_one(node: Node, axis: int, size: int) -> Kernel:
    """Make the kernel of a gather with a single index: a copy of one slice."""

    def slice_at(indices: Array) -> tuple[slice | int | EllipsisType, ...]:
        """Return the index of the input; its ellipsis selects a view, not a scalar, where there is one axis."""
        index = indices.item()
        return *(slice(None),) * axis, min(max(index + size if index < 0 else index, 0), size - 1), ...

    def take(input: Array, indices: Array, output: Array) -> None:
        selected = input[slice_at(indices)]
        np.copyto(output.reshape(selected.shape), selected)

    indices = node.operands["indices"]
    if not isinstance(indices, Constant):
        return take
    place = slice_at(constant_array(indices.data))

    def prepare(input: Array, _indices: Array, output: Array) -> Run:
        selected = input[place]
        return partial(np.copyto, output.reshape(selected.shape), selected)

    return PreparedKernel(prepare)


@kernel(indexing.gather_elements, work=looked_up)
def gather_elements(node: Node) -> Kernel:
    places = Places(node)

    def take(input: Array, indices: Array, output: Array) -> None:
        elements, taken = input.reshape(-1), output.reshape(places.shape)
        for block, found in places.numbers(indices):
            np.take(elements, found, out=taken[block], mode=IN_RANGE)

    return take


@kernel(indexing.scatter_elements)
def scatter_elements(node: Node) -> Kernel:
    places = Places(node)

    def put(input: Array, indices: Array, updates: Array, output: Array) -> None:
        np.copyto(output, input)
        elements, updates = output.reshape(-1), updates.reshape(places.shape)
        for block, found in places.numbers(indices):
            elements[found.reshape(-1)] = updates[block].reshape(-1)

    return put


class Places:
    """The places in the input that single indices along the axis select, in row-major order.

    Args:
        node: a gather or scatter of elements.

    Attributes:
        shape: that of the indices: the axes before the axis, the axis, and those behind it.
    """

    def __init__(self, node: Node) -> None:
        axis, shape = node.options["axis"], node.operand("input").shape
        self._sizes = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        self.shape = (self._sizes[0], node.operand("indices").shape[axis], self._sizes[2])
        most = min(BLOCK, math.prod(self.shape), allowance(node) // NUMBER_BYTES)
        self._blocks = list(tiles(self.shape, most))
        self._scratch = scratch(most, np.intp)

    def numbers(self, indices: Array) -> Iterator[tuple[Index, Array]]:
        """Yield the places, block by block, each time in the same scratch."""
        indices = indices.reshape(self.shape)
        outer, size, inner = self._sizes
        for block in self._blocks:
            some = indices[block]
            found = positions(some, size, self._scratch[: some.size].reshape(some.shape))
            if inner > 1:
                np.multiply(found, inner, out=found)
                np.add(found, np.arange(*block[2].indices(inner)), out=found)
            if outer > 1:
                rows = np.arange(*block[0].indices(outer))
                np.add(found, (rows * (size * inner)).reshape(-1, 1, 1), out=found)
            yield block, found


@kernel(indexing.gather_nd, work=looked_up)
def gather_nd(node: Node) -> Kernel:
    slices = Slices.from_node(node)

    def take(input: Array, indices: Array, output: Array) -> None:
        rows, taken = input.reshape(slices.shape), output.reshape(-1, slices.shape[1])
        for block, found in slices.numbers(indices):
            np.take(rows, found, 0, out=taken[block], mode=IN_RANGE)

    return take


@kernel(indexing.scatter_nd)
def scatter_nd(node: Node) -> Kernel:
    slices = Slices.from_node(node)

    def put(input: Array, indices: Array, updates: Array, output: Array) -> None:
        if input is not output:  # a cache that is updated in its place
            np.copyto(output, input)
        rows, updates = output.reshape(slices.shape), updates.reshape(-1, slices.shape[1])
        for block, found in slices.numbers(indices):
            rows[found] = updates[block]

    return put


@attrs.frozen
class Slices:
    """The slices of the input that coordinates select.

    Attributes:
        shape: the input's shape as a matrix with a row for each slice.
        sizes: the sizes of the axes that coordinates index.
        scratch: memory for the offsets of some slices, and for the positions along an axis.
    """

    shape: tuple[int, int]
    sizes: tuple[int, ...]
    scratch: Array

    @classmethod
    def from_node(cls, node: Node) -> "Slices":
        """Return the slices that a node's ``indices`` select."""
        shape, (*outer, length) = node.operand("input").shape, node.operand("indices").shape
        count = min(math.prod(outer), BLOCK, allowance(node) // (2 * NUMBER_BYTES))
        rows = (math.prod(shape[:length]), math.prod(shape[length:]))
        return cls(rows, shape[:length], scratch((2, count), np.intp))

    def numbers(self, indices: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the offsets of the selected slices, block by block, each time in the same scratch."""
        coordinates = indices.reshape(-1, len(self.sizes))
        step = self.scratch.shape[1]
        for start in range(0, len(coordinates), step):
            some = coordinates[start : start + step]
            found, place = self.scratch[:, : len(some)]
            found.fill(0)
            for axis, (size, stride) in enumerate(zip(self.sizes, _strides(self.sizes), strict=True)):
                positions(some[:, axis], size, place)
                np.multiply(place, stride, out=place)
                np.add(found, place, out=found)
            yield slice(start, start + step), found


def _strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the stride of each axis, in elements."""
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
