"""Tensors as rows: a row has the elements that are reduced to one output.

The axes of a shape are either kept or reduced, in any order. The offset of an element is the sum of two layouts: that
of the output's index, and that of the element's index in its row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import attrs

from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout, dense_strides

VectorAxis = Literal["along", "across", "none"]
"""The axis of a kernel's vec4s: along a row, across four rows, or none where units are single elements."""

NEIGHBOURS: Final = 16
"""The adjacent elements that are worth loading together."""


@attrs.frozen
class ReductionRows:
    """A shape with kept and reduced axes.

    Attributes:
        shape: the shape.
        reduced: the axes to reduce, ascending.
    """

    shape: tuple[int, ...]
    reduced: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes that are not reduced."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.reduced)

    @property
    def outputs(self) -> int:
        """The number of rows."""
        return math.prod(self.shape[axis] for axis in self.kept)

    @property
    def count(self) -> int:
        """The number of elements of a row."""
        return math.prod(self.shape[axis] for axis in self.reduced)

    def units(self, vector: VectorAxis) -> tuple[int, int]:
        """Return the number of rows, and of elements per row, in units of vec4s along ``vector``."""
        return (
            self.outputs // WIDTH if vector == "across" else self.outputs,
            self.count // WIDTH if vector == "along" else self.count,
        )

    def view(self, layout: Layout) -> RowsView:
        """Return a tensor of this shape as rows."""
        return RowsView(layout.permute(self.kept), attrs.evolve(layout.permute(self.reduced), offset=0))

    def of_outputs(self) -> Layout:
        """Return the layout of a dense tensor with one value per output, broadcast to the whole shape."""
        strides = dict(zip(self.kept, dense_strides([self.shape[axis] for axis in self.kept]), strict=True))
        return Layout(self.shape, tuple(strides.get(axis, 0) for axis in range(len(self.shape))))


@attrs.frozen
class RowsView:
    """The layout of a tensor, by output and by index in the row.

    Attributes:
        kept: the layout of the kept axes, with the offset.
        reduced: the layout of the reduced axes.
        backwards: for a view of vec4s, whether the components of each are in reverse order.
    """

    kept: Layout
    reduced: Layout
    backwards: bool = False

    def index(self, output: str, position: str) -> str:
        """Return a WGSL expression (u32) for the offset of an element."""
        kept, reduced = self.kept.index(output), self.reduced.index(position)
        if reduced == "0u":
            return kept
        return reduced if kept == "0u" else f"({kept}) + ({reduced})"

    def vec4s(self, vector: VectorAxis) -> RowsView | None:
        """Return the view in units of vec4s along ``vector``; None if they are not whole and aligned."""
        if vector == "none":
            return None
        cut, other = (self.kept, self.reduced) if vector == "across" else (self.reduced, self.kept)
        cut, other = cut.merged(), other.merged()
        if not cut.shape or cut.shape[-1] % WIDTH or abs(cut.strides[-1]) != 1:
            return None
        backwards = cut.strides[-1] == -1
        # The lowest element of a reversed vec4 is three elements before its first.
        offset = self.kept.offset - (WIDTH - 1) * backwards
        if any(number % WIDTH for number in (*cut.strides[:-1], *other.strides, offset)):
            return None
        cut = Layout((*cut.shape[:-1], cut.shape[-1] // WIDTH), (*_quarters(cut.strides[:-1]), cut.strides[-1]))
        other = Layout(other.shape, _quarters(other.strides))
        kept, reduced = (cut, other) if vector == "across" else (other, cut)
        return RowsView(attrs.evolve(kept, offset=offset // WIDTH), reduced, backwards)

    def is_one(self, vector: VectorAxis) -> bool:
        """Return whether the four elements of every vec4 are the same (broadcast)."""
        layout = self.kept if vector == "across" else self.reduced
        merged = layout.merged()
        return not merged.shape or (merged.strides[-1] == 0 and merged.shape[-1] % WIDTH == 0)


def _quarters(numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(number // WIDTH for number in numbers)


def choose_vector(view: RowsView) -> VectorAxis:
    """Return the best axis for vec4 loads of a tensor."""
    for vector in ("along", "across"):
        if view.vec4s(vector) is not None:
            return vector
    return "none"


def is_interleaved(view: RowsView) -> bool:
    """Return whether adjacent elements in memory mostly belong to different rows."""
    kept, reduced = view.kept.merged(), view.reduced.merged()
    if not kept.shape or not reduced.shape:
        return bool(kept.shape)
    nearer = abs(kept.strides[-1]) < abs(reduced.strides[-1])
    return nearer and (kept.shape[-1] >= NEIGHBOURS or kept.shape[-1] >= math.prod(reduced.shape))
