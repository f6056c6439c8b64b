"""Sides of a product that lie in a buffer as matrices, of any layout."""

from __future__ import annotations

from functools import cached_property

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.operand_loader import Way, in_fours, read_function
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH, Element
from webnn_py.device.on_wgpu.records.layout import Layout


def _whole_fours(layout: Layout) -> bool:
    return not any(number % WIDTH for number in (*layout.merged().strides, layout.offset))


@attrs.frozen(slots=False)
class Matrix:
    """A side that lies in a buffer as a matrix for each batch.

    Attributes:
        batches: where the matrices begin; all offsets are here.
        inner_axis: where elements lie along the inner axis, which may have several axes of its own.
        outer_size: the length of the outer axis.
        outer_stride: the distance of neighbours on it.
        forced: the way to read it, where not the best one.
    """

    buffer: Buffer
    element: Element
    batches: Layout
    inner_axis: Layout
    outer_size: int
    outer_stride: int
    forced: Way | None = None

    @property
    def outer(self) -> int:
        return self.outer_size

    @cached_property
    def inner(self) -> int:
        size = 1
        for length in self.inner_axis.shape:
            size *= length
        return size

    @cached_property
    def inner_stride(self) -> int:
        """The distance of nearest neighbours on the inner axis."""
        merged = self.inner_axis.merged()
        return merged.strides[-1] if merged.shape else 0

    @cached_property
    def can_turn(self) -> bool:
        """Whether fours can be read along the inner axis."""
        aligned = _whole_fours(self.batches) and (self.outer_stride % WIDTH == 0 or self.outer == 1)
        return aligned and self.inner_axis.fours() is not None

    @cached_property
    def way(self) -> Way:
        if self.forced is not None:
            return self.forced
        aligned = _whole_fours(self.batches) and _whole_fours(self.inner_axis)
        if aligned and self.outer % WIDTH == 0 and self.outer_stride == 1:
            return "direct"
        return "turned" if self.can_turn else "single"

    @cached_property
    def follows_inner(self) -> bool:
        if self.way == "single":
            return self.outer == 1 or (self.inner > 1 and abs(self.inner_stride) < abs(self.outer_stride))
        return self.way == "turned"

    def functions(self, name: str, scalar: str, array: str) -> str:
        return read_function(self, name, scalar, array)

    def begin(self, name: str) -> list[str]:
        batches = self.batches if self.way == "single" else in_fours(self.batches)
        return [f"let {name}_base = {batches.index('batch')};"]

    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        if self.way == "direct":
            return [f"let {tag} = {name}_base + ({outers[0]}) / {WIDTH}u;"]
        stride = self.outer_stride // (WIDTH if self.way == "turned" else 1)
        return [f"let {tag}_{lane} = {name}_base + ({outer}) * {stride}u;" for lane, outer in enumerate(outers)]

    def enter(self, name: str, tag: str, depth: int) -> list[str]:
        return []

    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        along = self.along(inner)
        if self.way == "direct":
            return [f"{name}_at({tag} + {along})"]
        values = [f"{name}_at({tag}_{lane} + {along})" for lane in range(WIDTH)]
        return values if self.way == "turned" else [", ".join(values)]

    def along(self, inner: str) -> str:
        """How far an element lies on the inner axis; in fours, where they are read."""
        return self._steps.index(f"(({inner}) / {WIDTH}u)" if self.way == "turned" else f"({inner})")

    @cached_property
    def _steps(self) -> Layout:
        """The inner axis in the units in which it is read."""
        if self.way == "single":
            return self.inner_axis
        fours = in_fours(self.inner_axis) if self.way == "direct" else self.inner_axis.fours()
        assert fours is not None  # noqa: S101 - that is what turned means
        return fours
