"""Im2col tiles: padded copies of a few rows of images, in a layout in which windows are long runs of memory."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod

import attrs
import numpy as np

from webnn_py.core.operators.windows import Slide
from webnn_py.devices.numpy.routines.tiling import inside, steps_of
from webnn_py.devices.numpy.scratch import scratch
from webnn_py.devices.numpy.table import Array

Slices = tuple[slice, ...]


def not_empty(*arrays: Array) -> list[Array]:
    """Return the arrays that have elements."""
    return [array for array in arrays if array.size]


Move = tuple[Array | None, Slices, list[Array]]
"""The target in a plane, the part of the images to copy, and the rows of the plane that are padding."""


@attrs.define(eq=False)
class Im2colTile:
    """The rows of some images that ``output_sizes[0]`` rows of windows need, padded.

    Elements are split into phase planes: plane (i, j) has every row y with y % stride = i, and of these every column x
    with x % stride = j. So the same element of successive windows, a *tap*, is a run of successive elements of a plane,
    whatever the stride. Runs continue from row to row; so they have ``pitch`` columns where the output has fewer, and
    results of the excess columns must be dropped.

    Images have the axes (lead..., height, width, inner...).

    Attributes:
        lead: the axes before height.
        inner: the axes after width.
        slides: the slides of windows along height and width.
        output_sizes: the number of rows of windows of the tile, and of windows in a row.
        row_starts: the first rows of windows of the later fillings.
        data_type: the data type of the copy.
        padding: the value of padding.
        pitch: the columns of a plane.
    """

    lead: tuple[int, ...]
    inner: tuple[int, ...]
    slides: tuple[Slide, Slide]
    output_sizes: tuple[int, int]
    row_starts: Sequence[int]
    data_type: str = "float32"
    padding: float = 0
    pitch: int = attrs.field(init=False)
    _shape: tuple[int, ...] = attrs.field(init=False)
    _offsets: dict[tuple[int, int], int] = attrs.field(init=False)
    _memory: Array = attrs.field(init=False)
    _margins: list[Array] = attrs.field(init=False)
    _moves: dict[int, list[Move]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        (row_phases, rows), (column_phases, self.pitch) = (
            _phases(slide, count) for slide, count in zip(self.slides, self.output_sizes, strict=True)
        )
        self._shape = (*self.lead, rows, self.pitch, *self.inner)
        phases = list(product(row_phases, column_phases))
        self._offsets = {phase: index * prod(self._shape) for index, phase in enumerate(phases)}
        # Only windows in excess overrun the last plane, so what is there need not be padding.
        overrun = (self.pitch - self.output_sizes[1]) * prod(self.inner)
        self._memory = scratch(prod(self._shape) * len(phases) + overrun, self.data_type)
        self._margins = [margin for phase in phases for margin in self._margins_of(phase)]
        places: dict[tuple[tuple[int, int], tuple[int, int]], tuple[Array | None, list[Array]]] = {}
        self._moves = {start: self._moves_for(start, places) for start in self.row_starts}

    def plane(self, phase: tuple[int, int]) -> Array:
        """Return one plane: (lead..., rows, pitch, inner...)."""
        begin = self._offsets[phase]
        return self._memory[begin : begin + prod(self._shape)].reshape(self._shape)

    def rows(self, i: int, column_phase: int) -> Array:
        """Return row i of every window, all columns of one phase: (lead..., rows, pitch, inner...)."""
        row, row_phase = divmod(i * self.slides[0].dilation, self.slides[0].stride)
        return self.plane((row_phase, column_phase))[self._at(slice(row, row + self.output_sizes[0]))]

    def taps(self, columns: int) -> Iterator[tuple[slice, slice, Array]]:
        """Yield views of every element of the windows, with the first ``columns`` columns, some possibly in excess.

        Yields:
            The ranges of rows and columns of the window, and a view of them (lead..., rows of the window, columns of
            the window, rows, columns, inner...); as few views as strides allow.
        """
        vertical, horizontal = self.slides
        down, right = (slide.stride // gcd(slide.stride, slide.dilation) for slide in self.slides)
        plane = self.plane((0, 0))
        to_row, to_column = plane.strides[len(self.lead) : len(self.lead) + 2]
        steps = (
            down * vertical.dilation // vertical.stride * to_row,
            right * horizontal.dilation // horizontal.stride * to_column,
        )
        for i, j in product(range(min(down, vertical.window)), range(min(right, horizontal.window))):
            counts = (len(range(i, vertical.window, down)), len(range(j, horizontal.window, right)))
            view = self._view(i, j, counts, steps, columns)
            yield slice(i, vertical.window, down), slice(j, horizontal.window, right), view

    def _view(self, i: int, j: int, counts: tuple[int, ...], steps: tuple[int, ...], columns: int) -> Array:
        """Return a view of the memory from element (i, j) of the first window: (lead, counts, rows, columns)."""
        vertical, horizontal = self.slides
        row, row_phase = divmod(i * vertical.dilation, vertical.stride)
        column, column_phase = divmod(j * horizontal.dilation, horizontal.stride)
        strides = self.plane((0, 0)).strides
        axis = len(self.lead)
        offset = self._offsets[row_phase, column_phase] * self._memory.itemsize
        return np.ndarray(
            (*self.lead, *counts, self.output_sizes[0], columns, *self.inner),
            self._memory.dtype,
            self._memory,
            offset + row * strides[axis] + column * strides[axis + 1],
            (*strides[:axis], *steps, *strides[axis:]),
        )

    def clear(self) -> None:
        """Fill the left and right padding, which ``fill`` does not write: once for each dispatch."""
        for margin in self._margins:
            margin.fill(self.padding)

    def fill(self, images: Array, row_start: int, prepare: np.ufunc | None = None) -> None:
        """Copy the rows of the images that the windows of the rows from ``row_start`` read.

        Args:
            images: (lead..., height, width, inner...).
            row_start: one of ``row_starts``.
            prepare: the operation on each element while it is copied.
        """
        for target, source, blanks in self._moves[row_start]:
            for blank in blanks:
                blank.fill(self.padding)
            if target is None:
                continue
            if prepare is None:
                np.copyto(target, images[source])
            else:
                prepare(images[source], out=target, dtype=target.dtype)

    def _margins_of(self, phase: tuple[int, int]) -> list[Array]:
        """Return the columns of a plane that are padding."""
        begin, end = self._columns_of(phase[1])
        plane = self.plane(phase)
        return not_empty(plane[self._at(slice(None), slice(begin))], plane[self._at(slice(None), slice(end, None))])

    def _columns_of(self, column_phase: int) -> tuple[int, int]:
        """Return the range of the columns of a plane that are not padding."""
        horizontal = self.slides[1]
        return inside(column_phase - horizontal.begin, horizontal.stride, self.pitch, horizontal.size)

    def _moves_for(
        self,
        row_start: int,
        places: dict[tuple[tuple[int, int], tuple[int, int]], tuple[Array | None, list[Array]]],
    ) -> list[Move]:
        """Return the copies for a row start; most have the same places, by phase and rows."""
        vertical, horizontal = self.slides
        moves = []
        for i, j in self._offsets:
            top, left = row_start * vertical.stride + i - vertical.begin, j - horizontal.begin
            rows = inside(top, vertical.stride, self._shape[len(self.lead)], vertical.size)
            if ((i, j), rows) not in places:
                places[(i, j), rows] = self._places((i, j), rows)
            target, blanks = places[(i, j), rows]
            columns = self._columns_of(j)
            source = self._at(steps_of(top, vertical.stride, *rows), steps_of(left, horizontal.stride, *columns))
            moves.append((target, source, blanks))
        return moves

    def _places(self, phase: tuple[int, int], rows: tuple[int, int]) -> tuple[Array | None, list[Array]]:
        """Return the view of a range of rows in a plane, None if it is empty, and the views of the other rows."""
        plane = self.plane(phase)
        target = plane[self._at(slice(*rows), slice(*self._columns_of(phase[1])))]
        blanks = not_empty(plane[self._at(slice(rows[0]))], plane[self._at(slice(rows[1], None))])
        return target if target.size else None, blanks

    def _at(self, *parts: slice) -> Slices:
        """Return the index of parts of height and width."""
        return (*(slice(None),) * len(self.lead), *parts)


def _phases(slide: Slide, count: int) -> tuple[list[int], int]:
    """Return the phases of the elements of a window, and the length of a plane with ``count`` windows."""
    offsets = [i * slide.dilation for i in range(slide.window)]
    return sorted({offset % slide.stride for offset in offsets}), count + offsets[-1] // slide.stride
