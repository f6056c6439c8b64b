"""Layouts of values in their buffers: views are layouts, not copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import attrs


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a row-major tensor, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@attrs.frozen
class Layout:
    """A shape, and the stride of each axis, in elements.

    Strides may be negative (a reversed axis) or 0 (a broadcast one).
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def dense(cls, shape: Sequence[int]) -> Layout:
        """Row-major, without gaps, from the buffer's beginning."""
        return cls(tuple(shape), dense_strides(shape))

    @property
    def is_dense(self) -> bool:
        """Return whether element i is at i."""
        return self.offset == 0 and all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(self.shape, self.strides, dense_strides(self.shape), strict=True)
        )

    @property
    def is_single(self) -> bool:
        """Return whether every element is the same one."""
        return all(size == 1 or stride == 0 for size, stride in zip(self.shape, self.strides, strict=True))

    def permute(self, permutation: Sequence[int]) -> Layout:
        """Reorder the axes."""
        return Layout(
            tuple(self.shape[axis] for axis in permutation),
            tuple(self.strides[axis] for axis in permutation),
            self.offset,
        )

    def window(self, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> Layout:
        """Keep ``sizes`` elements (counted after stepping) from ``starts`` along each axis; steps may be negative."""
        moved = sum(start * stride for start, stride in zip(starts, self.strides, strict=True))
        return Layout(
            tuple(sizes),
            tuple(stride * step for stride, step in zip(self.strides, steps, strict=True)),
            self.offset + moved,
        )

    def broadcast(self, shape: Sequence[int]) -> Layout:
        """Repeat axes of size 1, and new leading axes, without moving."""
        missing = len(shape) - len(self.shape)
        strides = tuple(
            0 if axis < missing or self.shape[axis - missing] == 1 else self.strides[axis - missing]
            for axis in range(len(shape))
        )
        return Layout(tuple(shape), strides, self.offset)

    def merged(self) -> Layout:
        """The same elements in the same order with as few axes as their strides allow."""
        return self._merged

    @cached_property
    def _merged(self) -> Layout:
        shape: list[int] = []
        strides: list[int] = []
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size == 1:
                continue
            if shape and strides[-1] == stride * size:
                shape[-1] *= size
                strides[-1] = stride
            else:
                shape.append(size)
                strides.append(stride)
        return Layout(tuple(shape), tuple(strides), self.offset)

    def vec4s(self) -> Layout | None:
        """Return the layout of the vec4s of consecutive elements, in vec4s; None if one is not whole and aligned."""
        merged = self.merged()
        if not merged.shape or merged.shape[-1] % 4 or merged.strides[-1] != 1:
            return None
        if any(number % 4 for number in (*merged.strides[:-1], merged.offset)):
            return None
        strides = (*(stride // 4 for stride in merged.strides[:-1]), 1)
        return Layout((*merged.shape[:-1], merged.shape[-1] // 4), strides, merged.offset // 4)

    def repeats(self) -> Layout | None:
        """Return the layout of vec4s whose four elements are one and the same; None if not all are."""
        merged = self.merged()
        if not merged.shape or merged.shape[-1] % 4 or merged.strides[-1] != 0:
            return None
        return Layout((*merged.shape[:-1], merged.shape[-1] // 4), merged.strides, merged.offset)

    def spaced(self, vec4: str) -> list[str] | None:
        """Return expressions (u32) for the places of the four elements of a vec4; None unless they are evenly spaced.

        They are where no vec4 goes over the end of the last axis.
        """
        merged = self.merged()
        if not merged.shape or merged.shape[-1] % 4:
            return None
        step = merged.strides[-1]
        firsts = Layout((*merged.shape[:-1], merged.shape[-1] // 4), (*merged.strides[:-1], 4 * step), self.offset)
        first = firsts.index(vec4)
        # Sums wrap around, and so do negative steps.
        return [f"({first}) + {component * step % 2**32}u" if component else first for component in range(4)]

    def reshape(self, shape: Sequence[int]) -> Layout | None:
        """Return the elements in the same order with another shape, or None where that needs a copy."""
        merged = self.merged()
        groups = list(zip(merged.shape, merged.strides, strict=True))
        strides: list[int] = []
        remaining, stride = 1, 0
        for size in reversed(shape):
            if size == 1:
                strides.append(0)
                continue
            if remaining == 1:
                if not groups:
                    return None
                remaining, stride = groups.pop()
            if remaining % size:
                return None
            strides.append(stride)
            stride *= size
            remaining //= size
        return Layout(tuple(shape), tuple(reversed(strides)), self.offset) if remaining == 1 and not groups else None

    def index(self, element: str) -> str:
        """Return a WGSL expression (u32) for the place of the element with the row-major number ``element`` (u32)."""
        merged = self.merged()
        positive: list[str] = [f"{self.offset}u"] if self.offset else []
        negative: list[str] = []
        for axis, (size, stride) in enumerate(zip(merged.shape, merged.strides, strict=True)):
            below = math.prod(merged.shape[axis + 1 :])
            coordinate = element if below == 1 else f"{element} / {below}u"
            if axis > 0:
                coordinate = f"({coordinate}) % {size}u" if below != 1 else f"{element} % {size}u"
            if stride == 0:
                continue
            term = coordinate if abs(stride) == 1 and axis == 0 and below == 1 else f"({coordinate})"
            if abs(stride) != 1:
                term = f"{term} * {abs(stride)}u"
            (positive if stride > 0 else negative).append(term)
        text = " + ".join(positive) or "0u"
        return " - ".join([f"({text})" if negative else text, *negative]) if negative else text


def in_vec4s(layout: Layout) -> Layout:
    """Return a layout of whole vec4s in units of vec4s."""
    return Layout(layout.shape, tuple(stride // 4 for stride in layout.strides), layout.offset // 4)


def is_gemm_readable(layout: Layout) -> bool:
    """Return whether products can read matrices in a layout: elements along one of their axes are adjacent."""
    sides = zip(layout.shape[-2:], layout.strides[-2:], strict=True)
    return min((0, *layout.strides)) == 0 and any(stride == 1 or size == 1 for size, stride in sides)
