"""Rows: the layout of the elements that a reduction combines, and their division into blocks."""

import itertools
import math
from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from webnn_py.devices.numpy.routines.blocks import Index, Shape, tiles
from webnn_py.devices.numpy.table import Array

RUN = 1024
"""The contiguous elements that numpy should find: for fewer, starting its inner loop costs more than running it."""


@attrs.frozen
class ReducedRows:
    """An operand viewed as (outer, count, inner): ``outer * inner`` rows of ``count`` elements to combine.

    Attributes:
        permutation: the order to bring the axes into, if the reduced ones are not adjacent; inner is 1 then.
        kept: the sizes of the axes before the reduced ones.
        reduced: the sizes of the reduced axes.
        inner: the elements of the axes after them.
    """

    permutation: tuple[int, ...] | None
    kept: Shape
    reduced: Shape
    inner: int

    @classmethod
    def of(cls, shape: Sequence[int], axes: Iterable[int]) -> "ReducedRows":
        """Return the layout for reducing ``axes``; axes of size 1 do not matter."""
        reduced = sorted(axis for axis in axes if shape[axis] != 1)
        if not reduced:
            return cls(None, (1,), (1,), math.prod(shape))
        first, last = reduced[0], reduced[-1]
        if all(axis in reduced or shape[axis] == 1 for axis in range(first, last)):
            count = math.prod(shape[first : last + 1])
            return cls(None, (math.prod(shape[:first]),), (count,), math.prod(shape[last + 1 :]))
        kept = [axis for axis in range(len(shape)) if axis not in reduced]
        sizes = [tuple(shape[axis] for axis in group) for group in (kept, reduced)]
        return cls((*kept, *reduced), sizes[0], sizes[1], 1)

    @property
    def outer(self) -> int:
        """The elements of the axes before the reduced ones."""
        return math.prod(self.kept)

    @property
    def count(self) -> int:
        """The elements of the reduced axes."""
        return math.prod(self.reduced)

    def arrange(self, array: Array) -> Array:
        """Return the array with its axes in order: those before the reduced ones, the reduced ones, and ``inner``."""
        if self.permutation is not None:
            array = array.transpose(self.permutation)[..., np.newaxis]
        return array.reshape(*self.kept, *self.reduced, self.inner)

    def blocks(self, limit: int, run: int = RUN) -> "list[RowBlock]":
        """Cut the rows into blocks of at most ``limit`` elements.

        Where that leaves less than ``run`` inner elements to a block, the rows themselves are cut into pieces.
        """
        inner = min(self.inner, max(1, min(run, limit), limit // self.count))
        count = min(self.count, max(1, limit // inner))
        outer = min(self.outer, max(1, limit // (inner * count)))
        pieces = flat_tiles(self.reduced, count)
        columns = [slice(start, min(start + inner, self.inner)) for start in range(0, self.inner, inner)]
        return [
            RowBlock(
                [(*outer_index, *piece, column) for piece, _ in pieces], where, [counts for _, counts in pieces], column
            )
            for (outer_index, where), column in itertools.product(flat_tiles(self.kept, outer), columns)
        ]


@attrs.frozen
class RowBlock:
    """Some of the rows, and the pieces in which to process them.

    Attributes:
        pieces: for each piece, its index of the arranged array.
        outer: the range of the rows along outer.
        counts: for each piece, its range along count.
        inner: the range of the rows along inner.
    """

    pieces: list[Index]
    outer: slice
    counts: list[slice]
    inner: slice

    def shape(self, piece: int) -> tuple[int, int, int]:
        """Return the shape of a piece as (outer, count, inner)."""
        outer, count, inner = (part.stop - part.start for part in (self.outer, self.counts[piece], self.inner))
        return outer, count, inner


def flat_tiles(shape: Shape, limit: int) -> list[tuple[Index, slice]]:
    """Cut a shape into blocks of at most ``limit`` elements; return each one's index and range of elements."""
    found: list[tuple[Index, slice]] = []
    start = 0
    for tile in tiles(shape, limit):
        sizes = (range(size)[part] for part, size in zip(tile, shape, strict=True))
        count = math.prod(len(places) for places in sizes)
        found.append((tile, slice(start, start + count)))
        start += count
    return found


def fold(ufunc: np.ufunc, values: Array, output: Array) -> None:
    """Combine axis 1 of (outer, count, inner), in long runs and, for accurate sums, in two levels."""
    outer, count, inner = values.shape
    width = max(-(-RUN // inner), math.isqrt(count) if count > 64 else 1)
    if inner == 1 or count < 2 * width or not values.flags.c_contiguous:
        ufunc.reduce(values, axis=1, dtype=values.dtype, out=output)
        return
    rows = count // width
    whole = values[:, : rows * width].reshape(outer, rows, width * inner)
    level = ufunc.reduce(whole, axis=1, dtype=values.dtype).reshape(outer, width, inner)
    rest = values[:, rows * width :]
    begun = level[:, : rest.shape[1]]
    ufunc(begun, rest, out=begun)
    ufunc.reduce(level, axis=1, dtype=values.dtype, out=output)
