"""The gather and scatter families on arrays.

All five say the same to numpy: which rows of the input, laid out as rows, to take or to put. Indices are unknown
until they are here, so they are counted from the start and clamped at each run.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from webnn_py.device.on_numpy.table import Array, Kernel, kernel
from webnn_py.graph import Node
from webnn_py.operators import indexing

Locate = Callable[[Array], Array]
"""Turns indices into the numbers of rows, in the row-major order of what they select."""

BLOCK: Final = 1 << 16
"""Indices to look at together: 512 KiB of numbers."""

IN_RANGE: Final = "wrap"
"""The fastest mode of np.take for numbers that are in range already: "raise" would go through a buffer."""


def positions(indices: Array, size: int, out: Array | None = None) -> Array:
    """Indices into an axis of ``size`` as positions in it: negative ones count from the end; then they clamp."""
    counted = np.empty(indices.shape, np.intp) if out is None else out
    np.copyto(counted, indices)
    if counted.min() < 0:
        np.add(counted, size, out=counted, where=counted < 0)
        np.maximum(counted, 0, out=counted)
    if counted.max() >= size:
        np.minimum(counted, size - 1, out=counted)
    return counted


def looked_up(node: Node) -> float:
    """The work of a gather: it touches what it takes, not all of its input."""
    return 4.0 * (node.operand("indices").element_count + node.outputs[0].element_count)


@kernel(indexing.gather, work=looked_up)
def gather(node: Node) -> Kernel:
    axis = node.options["axis"]
    size = node.operand("input").shape[axis]
    before = (slice(None),) * axis

    def take(input: Array, indices: Array, output: Array) -> None:
        found = positions(indices, size)
        if input.flags.c_contiguous:
            np.take(input, found, axis, out=output, mode=IN_RANGE)
        else:
            np.copyto(output, input[(*before, found)])  # where np.take would first copy the whole input

    return take


@kernel(indexing.gather_elements, work=looked_up)
def gather_elements(node: Node) -> Kernel:
    layout = Elements.of(node)

    def take(input: Array, indices: Array, output: Array) -> None:
        elements, taken = input.reshape(-1), output.reshape(layout.shape)
        for block, numbers in layout.numbers(indices):
            np.take(elements, numbers, out=taken[block], mode=IN_RANGE)

    return take


@kernel(indexing.scatter_elements)
def scatter_elements(node: Node) -> Kernel:
    layout = Elements.of(node)

    def put(input: Array, indices: Array, updates: Array, output: Array) -> None:
        np.copyto(output, input)
        elements, updates = output.reshape(-1), updates.reshape(layout.shape)
        for block, numbers in layout.numbers(indices):
            elements[numbers.reshape(-1)] = updates[block].reshape(-1)

    return put


@attrs.frozen
class Elements:
    """Which elements of the input, in row-major order, single indices along an axis select.

    Attributes:
        shape: of the indices, as (outer, count, inner): before, along and after the axis.
        size: the size of the input's axis.
        blocks: the indices to look at together, in row-major order.
        scratch: for the numbers of one block.
    """

    shape: tuple[int, int, int]
    size: int
    blocks: list[tuple[slice, slice]]
    scratch: Array

    @classmethod
    def of(cls, node: Node) -> "Elements":
        """The layout of a node's ``indices`` along its ``axis``."""
        axis, shape = node.options["axis"], node.operand("input").shape
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        count = node.operand("indices").shape[axis]
        counts = min(count, max(1, BLOCK // inner))
        outers = min(outer, max(1, BLOCK // (counts * inner)))
        blocks = [
            (slice(o, o + outers), slice(c, c + counts))
            for o in range(0, outer, outers)
            for c in range(0, count, counts)
        ]
        return cls((outer, count, inner), shape[axis], blocks, np.empty(outers * counts * inner, np.intp))

    def numbers(self, indices: Array) -> Iterator[tuple[tuple[slice, slice], Array]]:
        """The numbers of the selected elements, block by block, each time in the same scratch."""
        inner = self.shape[2]
        indices, columns = indices.reshape(self.shape), np.arange(inner)
        pitch = self.size * inner
        for block in self.blocks:
            some = indices[block]
            found = positions(some, self.size, self.scratch[: some.size].reshape(some.shape))
            if inner > 1:
                np.multiply(found, inner, out=found)
                np.add(found, columns, out=found)
            first = block[0].start
            origins = np.arange(first, first + len(some)) * pitch
            np.add(found, origins.reshape(-1, 1, 1), out=found)
            yield block, found


@kernel(indexing.gather_nd, work=looked_up)
def gather_nd(node: Node) -> Kernel:
    locate, rows = _row_numbers(node)

    def take(input: Array, indices: Array, output: Array) -> None:
        found = locate(indices)
        taken = output.reshape(found.size, rows[1])
        np.take(input.reshape(rows), found, 0, out=taken, mode=IN_RANGE)

    return take


@kernel(indexing.scatter_nd)
def scatter_nd(node: Node) -> Kernel:
    locate, rows = _row_numbers(node)

    def put(input: Array, indices: Array, updates: Array, output: Array) -> None:
        np.copyto(output, input)
        found = locate(indices)
        output.reshape(rows)[found] = updates.reshape(found.size, rows[1])

    return put


def _row_numbers(node: Node) -> tuple[Locate, tuple[int, int]]:
    """Number the slices of the input that coordinates select, and the input's shape as a matrix of slices."""
    shape, length = node.operand("input").shape, node.operand("indices").shape[-1]
    sizes = shape[:length]
    strides = _strides(sizes)
    rows = (math.prod(sizes), math.prod(shape[length:]))

    def locate(indices: Array) -> Array:
        coordinates = indices.reshape(-1, length)
        found = np.zeros(len(coordinates), np.intp)
        for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
            found += positions(coordinates[:, axis], size) * stride
        return found

    return locate, rows


def _strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """How far apart neighbours along each axis are, in elements."""
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
