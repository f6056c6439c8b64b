"""Where the two sides of a product come from: matrices of any layout, and windows of images.

A side has an outer axis (the rows of the left matrix, the columns of the right one) and the inner axis that is summed
over. A workgroup brings a tile of each side into its memory, four neighbours on the outer axis at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, Literal, Protocol

import attrs

from webnn_py.device.on_wgpu.layout import Layout
from webnn_py.device.on_wgpu.lowering import Binding, Buffer
from webnn_py.device.on_wgpu.wgsl import WIDTH, Element

Way = Literal["direct", "turned", "single"]
"""How a side is read: fours along the outer axis; fours along the inner axis, four by four; or element by element."""


class Source(Protocol):
    """One side of a product, as text that reads it.

    Attributes:
        buffer: where it lies.
        element: how its data type is stored.
        outer: the length of the outer axis.
        inner: the length of the inner axis.
        way: how it is read.
        follows_inner: whether neighbouring invocations had better read neighbours on the inner axis.
    """

    @property
    def buffer(self) -> Buffer: ...
    @property
    def element(self) -> Element: ...
    @property
    def outer(self) -> int: ...
    @property
    def inner(self) -> int: ...
    @property
    def way(self) -> Way: ...
    @property
    def follows_inner(self) -> bool: ...

    def functions(self, name: str, scalar: str, array: str) -> str:
        """The functions that the other texts call, which read the binding ``array``."""

    def begin(self, name: str) -> list[str]:
        """Statements before all others; the number of the ``batch`` is known."""

    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        """Statements that name, as ``tag``, what reading at four places on the outer axis needs again and again."""

    def enter(self, name: str, tag: str, depth: int) -> list[str]:
        """Statements before reading of a tile ``depth`` long that begins at ``first`` on the inner axis."""

    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        """Expressions for fours: one along the outer axis, or when turned, four of them along the inner one."""


def described(source: Source) -> Hashable:
    """All that the texts depend on: every attribute but the buffer."""
    kind: Any = type(source)
    return kind, *(getattr(source, field.name) for field in attrs.fields(kind) if field.name != "buffer")


def binding_kind(source: Source) -> str:
    """The type of the elements of the array that a source reads."""
    return source.element.one if source.way == "single" else source.element.four


def bound(sides: Mapping[str, Source], scalar: str) -> tuple[list[Binding], list[str]]:
    """The bindings of a kernel's sides, one for those that read one buffer alike, and the functions that read them."""
    arrays: dict[tuple[Buffer, str], str] = {}
    functions = []
    for name, side in sides.items():
        array = arrays.setdefault((side.buffer, binding_kind(side)), name)
        functions.append(side.functions(name, scalar, array))
    return [(buffer, name, kind) for (buffer, kind), name in arrays.items()], functions


def read_function(source: Source, name: str, scalar: str, array: str) -> str:
    """``name_at(i)``: the element, or the four, number i of ``array``, computed in ``scalar``."""
    if source.way == "single":
        value = source.element.load(array, "i")
        value = value if scalar == "f32" else f"{scalar}({value})"
        return f"fn {name}_at(i: u32) -> {scalar} {{ return {value}; }}"
    if source.element.one == scalar:
        return f"fn {name}_at(i: u32) -> vec4<{scalar}> {{ return {array}[i]; }}"
    values = ", ".join(source.element.unpack("four"))
    wide = f"vec4<f32>({values})" if scalar == "f32" else f"vec4<{scalar}>(vec4<f32>({values}))"
    return f"fn {name}_at(i: u32) -> vec4<{scalar}> {{ let four = {array}[i]; return {wide}; }}"


def wrapped(number: int) -> str:
    """A literal that adds a number, which may be negative, to a u32."""
    return f"{number % 2**32}u"


def in_fours(layout: Layout) -> Layout:
    """A layout of whole fours, counted in fours."""
    return Layout(layout.shape, tuple(stride // WIDTH for stride in layout.strides), layout.offset // WIDTH)


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


def is_readable(layout: Layout) -> bool:
    """Whether products read matrices that lie so: along one of their axes elements lie side by side."""
    sides = zip(layout.shape[-2:], layout.strides[-2:], strict=True)
    return min((0, *layout.strides)) == 0 and any(stride == 1 or size == 1 for size, stride in sides)


@attrs.frozen
class Along:
    """How windows lie on one axis of images, in one phase or several.

    Phases share all but the place of the first window, and how many of a window's elements count.

    Attributes:
        size: the length of the axis.
        outputs: how many windows there are.
        stride: from one window to the next.
        step: from one element of a window to the next; may be negative.
        begins: for each phase, where the first element of the first window lies; may be outside.
        counts: for each phase, how many elements a window has.
    """

    size: int
    outputs: int
    stride: int
    step: int
    begins: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def taps(self) -> int:
        """The most elements that a window has."""
        return max(1, *self.counts)

    @property
    def phases(self) -> int:
        """The number of phases."""
        return len(self.begins)

    @property
    def is_inside(self) -> bool:
        """Whether all windows lie inside the images and have equally many elements."""
        reach = (self.taps - 1) * self.step
        first, last = min(self.begins), max(self.begins) + (self.outputs - 1) * self.stride
        return first + min(reach, 0) >= 0 and last + max(reach, 0) < self.size and min(self.counts) == self.taps


@attrs.frozen(slots=False)
class Windows:
    """A side whose outer axis has all windows of all images, and whose inner axis the elements of a window.

    Elements of a window are in the order height, width, channel. Outside of the images there are zeros. A batch is a
    group of channels and within it a phase of the height and one of the width.

    Attributes:
        groups: where the channels of groups begin; all offsets are here.
        image_count: the number of images.
        image_stride: from one image to the next.
        channels: how many a group has.
        channel_stride: the distance of a group's channels.
        axes: height and width.
        strides: the distances along height and width.
    """

    buffer: Buffer
    element: Element
    groups: Layout
    image_count: int
    image_stride: int
    channels: int
    channel_stride: int
    axes: tuple[Along, Along]
    strides: tuple[int, int]

    @cached_property
    def windows(self) -> int:
        """Windows of an image."""
        return self.axes[0].outputs * self.axes[1].outputs

    @property
    def outer(self) -> int:
        return self.image_count * self.windows

    @property
    def inner(self) -> int:
        return self.axes[0].taps * self.axes[1].taps * self.channels

    @cached_property
    def way(self) -> Way:
        numbers = (*self.groups.strides, self.groups.offset, self.image_stride, *self.strides, self.channels)
        return "turned" if self.channel_stride == 1 and not any(number % WIDTH for number in numbers) else "single"

    @property
    def follows_inner(self) -> bool:
        return self.channel_stride < self.strides[1]

    @property
    def _unit(self) -> int:
        return WIDTH if self.way == "turned" else 1

    def _has_uniform_taps(self, depth: int) -> bool:
        """Whether all of a tile has to do with one element of the windows only, but for the channel."""
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
  let h = window.y + v * {wrapped(vertical.step)};
  let w = window.z + u * {wrapped(horizontal.step)};
  let at = window.x + v * {wrapped(vertical.step * row)} + u * {wrapped(horizontal.step * column)};
  return select(vec2<u32>(), vec2<u32>(at, 1u), {"true" if is_inside else inside});
}}
fn {name}_channel(base: u32, c: u32, tap: vec2<u32>) -> {result} {{
  return {value if is_inside else f"select({zero}, {value}, tap.y == 1u)"};
}}"""

    def begin(self, name: str) -> list[str]:
        groups = self.groups if self.way == "single" else in_fours(self.groups)
        phases = [axis.phases for axis in self.axes]
        lines = [f"let {name}_base = {groups.index(f'(batch / {phases[0] * phases[1]}u)')};"]
        numbers = []
        for axis, number in zip(
            self.axes, (f"batch / {phases[1]}u % {phases[0]}u", f"batch % {phases[1]}u"), strict=True
        ):
            numbers.append((looked_up(axis.begins, number), looked_up(axis.counts, number)))
        (v, v_count), (u, u_count) = numbers
        return [*lines, f"let {name}_phase = vec4<u32>({v}, {u}, {v_count}, {u_count});"]

    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        return [f"let {tag}_{lane} = {name}_window({outer}, {name}_phase);" for lane, outer in enumerate(outers)]

    def enter(self, name: str, tag: str, depth: int) -> list[str]:
        if not self._has_uniform_taps(depth):
            return []
        tap = f"first / {self.channels}u"
        return [
            f"let {tag}_skip = {tap} * {self.channels}u;",
            *(f"let {tag}_tap_{lane} = {name}_tap({tap}, {tag}_{lane}, {name}_phase);" for lane in range(WIDTH)),
        ]

    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        stride = self.channel_stride if self.way == "single" else 1
        channel = f"({inner}) % {self.channels}u"
        if self._has_uniform_taps(depth):
            channel = f"({inner} - {tag}_skip)"
            taps = [f"{tag}_tap_{lane}" for lane in range(WIDTH)]
        else:
            tap = f"({inner}) / {self.channels}u"
            taps = [f"{name}_tap({tap}, {tag}_{lane}, {name}_phase)" for lane in range(WIDTH)]
        place = f"{channel} / {self._unit}u * {stride}u"
        values = [f"{name}_channel({name}_base, {place}, {tap})" for tap in taps]
        return values if self.way == "turned" else [", ".join(values)]


def looked_up(numbers: tuple[int, ...], index: str) -> str:
    """An expression (u32) for one of some numbers."""
    text = wrapped(numbers[-1])
    for position, number in reversed(list(enumerate(numbers[:-1]))):
        text = f"select({text}, {wrapped(number)}, {index} == {position}u)"
    return text if len(set(numbers)) > 1 else wrapped(numbers[0])
