"""Operands of a product that are matrices of any layout."""

from __future__ import annotations

from functools import cached_property
from math import prod

import attrs

from webnn_py.devices.wgpu.codegen.gemm.operand_loader import LoadPattern, OperandLoader
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout, in_vec4s


def _whole_vec4s(layout: Layout) -> bool:
    return not any(number % WIDTH for number in (*layout.merged().strides, layout.offset))


@attrs.frozen(slots=False)
class MatrixLoader(OperandLoader):
    """An operand with a matrix for each batch.

    Attributes:
        batches: the starts of the matrices, with all offsets.
        inner_axis: the layout of the inner axis, which may consist of several axes.
        outer_size: the length of the outer axis.
        outer_stride: the stride of the outer axis.
        forced: the load pattern, if not the best one.
    """

    batches: Layout
    inner_axis: Layout
    outer_size: int
    outer_stride: int
    forced: LoadPattern | None = None

    @property
    def outer(self) -> int:
        return self.outer_size

    @cached_property
    def inner(self) -> int:
        return prod(self.inner_axis.shape)

    @cached_property
    def can_transpose(self) -> bool:
        """True if vec4s can be loaded along the inner axis."""
        aligned = _whole_vec4s(self.batches) and (self.outer_stride % WIDTH == 0 or self.outer == 1)
        return aligned and self.inner_axis.vec4s() is not None

    @cached_property
    def pattern(self) -> LoadPattern:
        if self.forced is not None:
            return self.forced
        aligned = _whole_vec4s(self.batches) and _whole_vec4s(self.inner_axis)
        if aligned and self.outer % WIDTH == 0 and self.outer_stride == 1:
            return "direct"
        return "transposed" if self.can_transpose else "scalar"

    @cached_property
    def follows_inner(self) -> bool:
        if self.pattern == "scalar":
            innermost = (0, *self.inner_axis.merged().strides)[-1]
            return self.outer == 1 or (self.inner > 1 and abs(innermost) < abs(self.outer_stride))
        return self.pattern == "transposed"

    def begin(self, name: str) -> list[str]:
        batches = self.batches if self.pattern == "scalar" else in_vec4s(self.batches)
        return [f"let {name}_base = {batches.index('batch')};"]

    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        if self.pattern == "direct":
            return [f"let {tag} = {name}_base + ({outers[0]}) / {WIDTH}u;"]
        stride = self.outer_stride // (WIDTH if self.pattern == "transposed" else 1)
        return [
            f"let {tag}_{component} = {name}_base + ({outer}) * {stride}u;" for component, outer in enumerate(outers)
        ]

    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        along = self.along(inner)
        if self.pattern == "direct":
            return [f"{name}_at({tag} + {along})"]
        values = [f"{name}_at({tag}_{component} + {along})" for component in range(WIDTH)]
        return values if self.pattern == "transposed" else [", ".join(values)]

    def along(self, inner: str) -> str:
        """Return the offset of an inner index, in the units that are loaded."""
        return self._steps.index(f"(({inner}) / {WIDTH}u)" if self.pattern == "transposed" else f"({inner})")

    @cached_property
    def _steps(self) -> Layout:
        """The layout of the inner axis in the units that are loaded."""
        if self.pattern == "scalar":
            return self.inner_axis
        vec4s = in_vec4s(self.inner_axis) if self.pattern == "direct" else self.inner_axis.vec4s()
        assert vec4s is not None  # noqa: S101 - that is what transposed means
        return vec4s
