"""Tensors seen as rows: for each output, the elements that are combined into it.

The axes of a shape are in two groups, those that the outputs keep and those that are reduced, wherever they stand: an
element lies at the sum of two layouts, one of the output's number and one of the number of the element in its row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import attrs

from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.layout import Layout

VectorAxis = Literal["along", "across", "none"]
"""Which way four neighbours lie: elements of one row, four rows beside each other, or a unit is one element."""

NEIGHBOURS: Final = 16
"""So many neighbouring elements are a piece of memory that is worth reading at once."""


@attrs.frozen
class ReductionRows:
    """How the axes of a shape are grouped.

    Attributes:
        shape: the shape.
        reduced: the axes to reduce, ascending.
    """

    shape: tuple[int, ...]
    reduced: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The other axes."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.reduced)

    @property
    def outputs(self) -> int:
        """How many rows there are."""
        return math.prod(self.shape[axis] for axis in self.kept)

    @property
    def count(self) -> int:
        """How many elements a row has."""
        return math.prod(self.shape[axis] for axis in self.reduced)

    def units(self, vector: VectorAxis) -> tuple[int, int]:
        """How many rows, and elements of a row, when vec4s count as one."""
        return (
            self.outputs // WIDTH if vector == "across" else self.outputs,
            self.count // WIDTH if vector == "along" else self.count,
        )

    def view(self, layout: Layout) -> RowsView:
        """See a tensor of this shape as rows."""
        return RowsView(layout.permute(self.kept), attrs.evolve(layout.permute(self.reduced), offset=0))

    def beside(self, layout: Layout) -> Layout:
        """Lay a tensor that has one value for each output beside the whole shape."""
        strides = [0] * len(self.shape)
        for axis, stride in zip(self.kept, layout.strides, strict=True):
            strides[axis] = stride
        return Layout(self.shape, tuple(strides), layout.offset)


@attrs.frozen
class RowsView:
    """Where elements lie, by output and by position in the row; the first layout has the offset.

    Attributes:
        kept: the layout of the kept axes.
        reduced: the layout of the reduced axes.
        backwards: of a view of vec4s, whether each vec4 is to be read from its end.
    """

    kept: Layout
    reduced: Layout
    backwards: bool = False

    def index(self, output: str, position: str) -> str:
        """A WGSL expression (u32) for where an element lies."""
        kept, reduced = self.kept.index(output), self.reduced.index(position)
        if reduced == "0u":
            return kept
        return reduced if kept == "0u" else f"({kept}) + ({reduced})"

    def vec4s(self, vector: VectorAxis) -> RowsView | None:
        """The same in vec4s, each of which lies whole and aligned; None where they do not."""
        if vector == "none":
            return None
        cut, other = (self.kept, self.reduced) if vector == "across" else (self.reduced, self.kept)
        cut, other = cut.merged(), other.merged()
        if not cut.shape or cut.shape[-1] % WIDTH or abs(cut.strides[-1]) != 1:
            return None
        backwards = cut.strides[-1] == -1
        # A vec4 that is read from its end has its lowest element three places before its first.
        offset = self.kept.offset - (WIDTH - 1) * backwards
        if any(number % WIDTH for number in (*cut.strides[:-1], *other.strides, offset)):
            return None
        cut = Layout((*cut.shape[:-1], cut.shape[-1] // WIDTH), (*_quarters(cut.strides[:-1]), cut.strides[-1]))
        other = Layout(other.shape, _quarters(other.strides))
        kept, reduced = (cut, other) if vector == "across" else (other, cut)
        return RowsView(attrs.evolve(kept, offset=offset // WIDTH), reduced, backwards)

    def is_one(self, vector: VectorAxis) -> bool:
        """Whether the elements of every vec4 are one and the same."""
        layout = self.kept if vector == "across" else self.reduced
        merged = layout.merged()
        return not merged.shape or (merged.strides[-1] == 0 and merged.shape[-1] % WIDTH == 0)


def _quarters(numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(number // WIDTH for number in numbers)


def choose_vector(view: RowsView) -> VectorAxis:
    """The way in which a dense or nearly dense tensor is best read."""
    for vector in ("along", "across"):
        if view.vec4s(vector) is not None:
            return vector
    return "none"


def lies_across(view: RowsView) -> bool:
    """Whether neighbours in memory belong to different rows, more of them than to one row."""
    kept, reduced = view.kept.merged(), view.reduced.merged()
    if not kept.shape or not reduced.shape:
        return bool(kept.shape)
    nearer = abs(kept.strides[-1]) < abs(reduced.strides[-1])
    return nearer and (kept.shape[-1] >= NEIGHBOURS or kept.shape[-1] >= math.prod(reduced.shape))
