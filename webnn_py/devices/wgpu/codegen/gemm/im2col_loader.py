"""Operands of a product that are windows of images: implicit im2col, gathered by the loads."""

from __future__ import annotations

from functools import cached_property

import attrs

from webnn_py.devices.wgpu.codegen.expressions import lookup, wrapping_literal
from webnn_py.devices.wgpu.codegen.gemm.operand_loader import LoadPattern, OperandLoader, read_function
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout, in_vec4s


@attrs.frozen
class WindowAxis:
    """The windows along one axis of images, in one phase or several.

    Phases differ only in the position of the first window, and in the number of taps of a window.

    Attributes:
        size: the length of the axis.
        outputs: the number of windows.
        stride: the distance of windows.
        step: the distance of a window's taps; may be negative.
        begins: for each phase, the position of the first tap of the first window; may be out of bounds.
        counts: for each phase, the taps of a window.
    """

    size: int
    outputs: int
    stride: int
    step: int
    begins: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def taps(self) -> int:
        """The most taps of a window."""
        return max(1, *self.counts)

    @property
    def phases(self) -> int:
        return len(self.begins)

    @property
    def is_inside(self) -> bool:
        """True if no window is out of bounds and all have equally many taps."""
        reach = (self.taps - 1) * self.step
        first, last = min(self.begins), max(self.begins) + (self.outputs - 1) * self.stride
        return first + min(reach, 0) >= 0 and last + max(reach, 0) < self.size and min(self.counts) == self.taps


@attrs.frozen(slots=False)
class Im2colLoader(OperandLoader):
    """An operand whose outer axis are all windows of all images, and whose inner axis are the elements of a window.

    Elements of a window are in the order height, width, channel; those out of bounds are zero. A batch is a group of
    channels, and in it a phase of the height and one of the width.

    Attributes:
        groups: the starts of the groups' channels, with all offsets.
        image_count: the number of images.
        image_stride: the stride of images.
        channels: the channels of a group.
        channel_stride: the stride of channels.
        axes: height and width.
        strides: the strides of height and width.
    """

    groups: Layout
    image_count: int
    image_stride: int
    channels: int
    channel_stride: int
    axes: tuple[WindowAxis, WindowAxis]
    strides: tuple[int, int]

    @cached_property
    def windows(self) -> int:
        """The windows of an image."""
        return self.axes[0].outputs * self.axes[1].outputs

    @property
    def outer(self) -> int:
        return self.image_count * self.windows

    @property
    def inner(self) -> int:
        return self.axes[0].taps * self.axes[1].taps * self.channels

    @cached_property
    def pattern(self) -> LoadPattern:
        numbers = (*self.groups.strides, self.groups.offset, self.image_stride, *self.strides, self.channels)
        return "transposed" if self.channel_stride == 1 and not any(number % WIDTH for number in numbers) else "scalar"

    @property
    def follows_inner(self) -> bool:
        return self.channel_stride < self.strides[1]

    @property
    def _unit(self) -> int:
        return WIDTH if self.pattern == "transposed" else 1

    def _has_uniform_taps(self, depth: int) -> bool:
        """Return whether a tile, ``depth`` long, has a single tap of the windows, with several channels."""
        return self.channels % depth == 0

    def functions(self, name: str, scalar: str, array: str) -> str:
        vertical, horizontal = self.axes
        unit = self._unit
        zero = f"vec4<{scalar}>()" if unit == WIDTH else f"{scalar}()"
        result = f"vec4<{scalar}>" if unit == WIDTH else scalar
        row, column = (stride // unit for stride in self.strides)
        inside = f"h < {vertical.size}u && w < {horizontal.size}u"
        for axis, tap in ((vertical, "v < phase.z"), (horizontal, "u < phase.w")):
            inside += f" && {tap}" if min(axis.counts) < axis.taps else ""
        is_inside = vertical.is_inside and horizontal.is_inside
        value = f"{name}_at(base + tap.x + c)"
        return f"""{read_function(self, name, scalar, array)}
fn {name}_window(o: u32, phase: vec4<u32>) -> vec3<u32> {{
  let window = o % {self.windows}u;
  let h = window / {horizontal.outputs}u * {vertical.stride}u + phase.x;
  let w = window % {horizontal.outputs}u * {horizontal.stride}u + phase.y;
  return vec3<u32>(o / {self.windows}u * {self.image_stride // unit}u + h * {row}u + w * {column}u, h, w);
}}
fn {name}_tap(tap: u32, window: vec3<u32>, phase: vec4<u32>) -> vec2<u32> {{
  let v = tap / {horizontal.taps}u;
  let u = tap % {horizontal.taps}u;
  let h = window.y + v * {wrapping_literal(vertical.step)};
  let w = window.z + u * {wrapping_literal(horizontal.step)};
  let at = window.x + v * {wrapping_literal(vertical.step * row)} + u * {wrapping_literal(horizontal.step * column)};
  return select(vec2<u32>(), vec2<u32>(at, 1u), {"true" if is_inside else inside});
}}
fn {name}_channel(base: u32, c: u32, tap: vec2<u32>) -> {result} {{
  return {value if is_inside else f"select({zero}, {value}, tap.y == 1u)"};
}}"""

    def begin(self, name: str) -> list[str]:
        groups = self.groups if self.pattern == "scalar" else in_vec4s(self.groups)
        phases = [axis.phases for axis in self.axes]
        lines = [f"let {name}_base = {groups.index(f'(batch / {phases[0] * phases[1]}u)')};"]
        numbers = []
        for axis, number in zip(
            self.axes, (f"batch / {phases[1]}u % {phases[0]}u", f"batch % {phases[1]}u"), strict=True
        ):
            numbers.append((lookup(axis.begins, number), lookup(axis.counts, number)))
        (v, v_count), (u, u_count) = numbers
        return [*lines, f"let {name}_phase = vec4<u32>({v}, {u}, {v_count}, {u_count});"]

    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        return [
            f"let {tag}_{component} = {name}_window({outer}, {name}_phase);" for component, outer in enumerate(outers)
        ]

    def enter(self, name: str, tag: str, depth: int) -> list[str]:
        if not self._has_uniform_taps(depth):
            return []
        tap = f"first / {self.channels}u"
        return [
            f"let {tag}_skip = {tap} * {self.channels}u;",
            *(
                f"let {tag}_tap_{component} = {name}_tap({tap}, {tag}_{component}, {name}_phase);"
                for component in range(WIDTH)
            ),
        ]

    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        stride = self.channel_stride if self.pattern == "scalar" else 1
        channel = f"({inner}) % {self.channels}u"
        if self._has_uniform_taps(depth):
            channel = f"({inner} - {tag}_skip)"
            taps = [f"{tag}_tap_{component}" for component in range(WIDTH)]
        else:
            tap = f"({inner}) / {self.channels}u"
            taps = [f"{name}_tap({tap}, {tag}_{component}, {name}_phase)" for component in range(WIDTH)]
        place = f"{channel} / {self._unit}u * {stride}u"
        values = [f"{name}_channel({name}_base, {place}, {tap})" for tap in taps]
        return values if self.pattern == "transposed" else [", ".join(values)]
