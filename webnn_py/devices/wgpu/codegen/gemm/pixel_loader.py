"""Operands of a product that are the pixels of a batch of images."""

from __future__ import annotations

from functools import cached_property

import attrs

from webnn_py.devices.wgpu.codegen.gemm.operand_loader import LoadPattern, OperandLoader
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout, in_vec4s


@attrs.frozen(slots=False)
class PixelLoader(OperandLoader):
    """An operand whose outer axis are all pixels of all images, and whose inner axis are the channels of a group.

    Attributes:
        groups: the starts of the groups' channels, with all offsets.
        image_count: the number of images.
        image_stride: the stride of images.
        pixels: the pixels of an image.
        pixel_stride: the stride of pixels.
        channels: the channels of a group.
        channel_stride: the stride of channels.
    """

    groups: Layout
    image_count: int
    image_stride: int
    pixels: int
    pixel_stride: int
    channels: int
    channel_stride: int

    @property
    def outer(self) -> int:
        return self.image_count * self.pixels

    @property
    def inner(self) -> int:
        return self.channels

    @cached_property
    def pattern(self) -> LoadPattern:
        numbers = *self.groups.strides, self.groups.offset, self.image_stride, self.channel_stride, self.pixels
        whole = self.pixel_stride == 1 and not any(number % WIDTH for number in numbers)
        return "direct" if whole else "scalar"

    @property
    def follows_inner(self) -> bool:
        return False

    def begin(self, name: str) -> list[str]:
        groups = in_vec4s(self.groups) if self.pattern == "direct" else self.groups
        return [f"let {name}_base = {groups.index('batch')};"]

    def prepare(self, name: str, tag: str, outers: list[str]) -> list[str]:
        if self.pattern == "direct":
            return [f"let {tag} = {name}_base + {self._place(outers[0])};"]
        return [
            f"let {tag}_{component} = {name}_base + {self._place(outer)};" for component, outer in enumerate(outers)
        ]

    def _place(self, outer: str) -> str:
        """Return the offset of a pixel in a channel."""
        unit = WIDTH if self.pattern == "direct" else 1
        image = f"({outer}) / {self.pixels}u * {self.image_stride // unit}u"
        pixel = f"({outer}) % {self.pixels}u"
        return f"{image} + {pixel} / {WIDTH}u" if unit == WIDTH else f"{image} + {pixel} * {self.pixel_stride}u"

    def fetch(self, name: str, tag: str, inner: str, depth: int) -> list[str]:
        if self.pattern == "direct":
            return [f"{name}_at({tag} + ({inner}) * {self.channel_stride // WIDTH}u)"]
        along = f"({inner}) * {self.channel_stride}u"
        return [", ".join(f"{name}_at({tag}_{component} + {along})" for component in range(WIDTH))]
