"""Tensors as rows, and their distribution among invocations: a row has the elements that are reduced to one output.

The axes of a shape are either kept or reduced, in any order. The offset of an element is the sum of two layouts: that
of the output's index, and that of the element's index in its row.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import attrs

from webnn_py.devices.wgpu.codegen.entry_point import WORKGROUP, power_of_two
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.layout import Layout, dense_strides
from webnn_py.devices.wgpu.records.variants import KernelVariant

VectorAxis = Literal["along", "across", "none"]
"""The axis of a kernel's vec4s: along a row, across four rows, or none where units are single elements."""

NEIGHBOURS: Final = 16
"""The adjacent elements that are worth loading together."""

SEGMENT: Final = {"along": 8, "across": 16, "none": 32}
"""The number of adjacent invocations that should load adjacent units, to use whole cache lines."""

UNROLLED: Final = {"along": 4, "across": 4, "none": 8}
"""The number of loads in flight per invocation."""

INVOCATIONS: Final = 2**18
"""The invocations that keep the largest GPU busy."""

WORTH_SHARING: Final = 2**16
"""The total loads from which an invocation should have several."""

FEWEST_LOADS: Final = 4
"""The least loads of an invocation, if there are enough, so that merging is a small part of the work."""

MOST_LOADS: Final = 32
"""The loads per invocation up to which one kernel is faster than two."""

KEPT: Final = {"along": 8, "across": 8, "none": 32}
"""The most units that an invocation keeps in registers."""

BUSY_INVOCATIONS: Final = 2**16
"""The invocations below which each keeps fewer units."""

NARROWEST: Final = 4
"""The divisor of a segment that gives the least adjacent units to keep in registers, if rows are interleaved."""


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
        kept = layout.permute(self.kept).merged()
        return RowsView(kept, attrs.evolve(layout.permute(self.reduced).merged(), offset=0))

    def of_outputs(self) -> Layout:
        """Return the layout of a dense tensor with one value per output, broadcast to the whole shape."""
        strides = dict(zip(self.kept, dense_strides([self.shape[axis] for axis in self.kept]), strict=True))
        return Layout(self.shape, tuple(strides.get(axis, 0) for axis in range(len(self.shape))))


@attrs.frozen
class RowsView:
    """The layout of a tensor, by output and by index in the row.

    Attributes:
        kept: the merged layout of the kept axes, with the offset.
        reduced: the merged layout of the reduced axes.
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
        if not cut.shape or cut.shape[-1] % WIDTH or abs(cut.strides[-1]) != 1:
            return None
        backwards = cut.strides[-1] == -1
        # The lowest element of a reversed vec4 is three elements before its first.
        offset = self.kept.offset - (WIDTH - 1) * backwards
        if any(number % WIDTH for number in (*cut.strides[:-1], *other.strides, offset)):
            return None
        strides = (*(stride // WIDTH for stride in cut.strides[:-1]), cut.strides[-1])
        cut = Layout((*cut.shape[:-1], cut.shape[-1] // WIDTH), strides)
        other = Layout(other.shape, tuple(stride // WIDTH for stride in other.strides))
        kept, reduced = (cut, other) if vector == "across" else (other, cut)
        return RowsView(attrs.evolve(kept, offset=offset // WIDTH), reduced, backwards)

    def is_one(self, vector: VectorAxis) -> bool:
        """Return whether the four elements of every vec4 are the same (broadcast)."""
        layout = self.kept if vector == "across" else self.reduced
        return not layout.shape or (layout.strides[-1] == 0 and layout.shape[-1] % WIDTH == 0)


def choose_vector(view: RowsView) -> VectorAxis:
    """Return the best axis for vec4 loads of a tensor."""
    for vector in ("along", "across"):
        if view.vec4s(vector) is not None:
            return vector
    return "none"


def is_interleaved(view: RowsView) -> bool:
    """Return whether adjacent elements in memory mostly belong to different rows."""
    kept, reduced = view.kept, view.reduced
    if not kept.shape or not reduced.shape:
        return bool(kept.shape)
    nearer = abs(kept.strides[-1]) < abs(reduced.strides[-1])
    return nearer and (kept.shape[-1] >= NEIGHBOURS or kept.shape[-1] >= math.prod(reduced.shape))


@attrs.frozen
class RowsTiling:
    """The distribution of rows among invocations.

    A workgroup's invocations are a rectangle: ``across`` different rows, ``along`` the elements of each. The lanes of a
    subgroup are assumed to be adjacent in a workgroup of one dimension, as with every known driver.

    Attributes:
        vector: the axis of the vec4s that are loaded.
        across: the rows, or vec4s of rows, of a workgroup; a power of two.
        along: the invocations that share them; a power of two.
        along_first: whether adjacent invocations share rows.
        length: the units of a row that a workgroup reads.
        pieces: the number of pieces of this length per row.
    """

    vector: VectorAxis
    across: int
    along: int
    along_first: bool
    length: int
    pieces: int = 1

    @property
    def size(self) -> int:
        """The invocations of a workgroup."""
        return self.across * self.along

    @property
    def loads(self) -> int:
        """The most units that an invocation loads."""
        return -(-self.length // self.along)

    @classmethod
    def of_loop(cls, rows: ReductionRows, view: RowsView, *, packed: bool) -> RowsTiling:
        """Choose the distribution for a loop over the units of rows.

        Args:
            rows: the rows.
            view: the operand as rows.
            packed: whether outputs, one for each row, can only be stored four at a time.
        """
        vector = choose_vector(view)
        outputs, units = rows.units(vector)
        fewest = FEWEST_LOADS if outputs * units >= WORTH_SHARING else 1
        most = power_of_two(units / fewest)
        if vector == "along":  # loads should coalesce, even with few per invocation
            most = max(most, min(SEGMENT[vector], power_of_two(units)))
        wanted = INVOCATIONS / outputs
        interleaved = is_interleaved(view)
        if interleaved:
            limit = WORKGROUP // min(SEGMENT[vector], power_of_two(outputs))
        else:
            limit = WORKGROUP
            wanted = max(wanted, min(SEGMENT[vector], power_of_two(units)))
        along = min(power_of_two(wanted), most, limit)
        pieces = max(1, min(power_of_two(wanted), most) // limit) if units > limit * MOST_LOADS else 1
        step = along * UNROLLED[vector]
        length = -(-units // (pieces * step)) * step
        if length >= units:
            length = units
            if packed and vector != "across":
                along = min(along, WORKGROUP // WIDTH)
        return cls(vector, WORKGROUP // along, along, not interleaved, length, -(-units // length))

    @classmethod
    def of_registers(cls, rows: ReductionRows, features: Features, *, packed: bool) -> RowsTiling | None:
        """Choose the distribution that keeps the rows of a dense output in registers.

        Args:
            rows: the rows.
            features: the adapter's features and limits.
            packed: whether elements can only be stored four at a time.

        Returns:
            The distribution; None if rows are too long, or too interleaved.
        """
        view = rows.view(Layout.dense(rows.shape))
        vector = choose_vector(view)
        if (packed and vector == "none") or not KernelVariant.REGISTER_ROWS.is_on:
            return None
        outputs, units = rows.units(vector)
        interleaved = is_interleaved(view)
        across = min(SEGMENT[vector] if interleaved else 1, power_of_two(outputs))
        fewest = power_of_two(units / KEPT[vector])
        while across > 1 and fewest * across > features.max_invocations:
            across //= 2
        if fewest * across > features.max_invocations or (interleaved and across * NARROWEST < SEGMENT[vector]):
            return None
        along = power_of_two(units / UNROLLED[vector])
        if outputs * along < BUSY_INVOCATIONS:
            along = power_of_two(min(units, BUSY_INVOCATIONS / outputs))
        if not interleaved:
            along = max(along, min(SEGMENT[vector], power_of_two(units)))
        along = max(fewest, min(along, max(1, WORKGROUP // across)))
        return cls(vector, max(across, WORKGROUP // along), along, not interleaved, units)
