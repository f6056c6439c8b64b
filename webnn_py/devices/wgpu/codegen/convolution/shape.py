"""The geometry of convolutions: images, filters and windows."""

from __future__ import annotations

from math import gcd
from typing import Any, Self

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.core.operators.windows import Slide, image_axes, image_shape, slides
from webnn_py.devices.wgpu.codegen.gemm.im2col_loader import WindowAxis
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering


@attrs.frozen
class ConvolutionShape:
    """The operands and geometry of a convolution.

    Attributes:
        images: the images.
        image_layout: their layout as batch, channel, height and width.
        filter: the filter.
        filter_layout: its layout as output channel (of a group if transposed), input channel, height and width.
        groups: the number of groups.
        output_channels: the output channels of all groups.
        slides: the windows along height and width.
        output_sizes: the output's height and width.
        nchw: whether the output's channels come before height and width.
    """

    images: Value
    image_layout: Layout
    filter: Value
    filter_layout: Layout
    groups: int
    output_channels: int
    slides: tuple[Slide, Slide]
    output_sizes: tuple[int, int]
    nchw: bool

    @classmethod
    def from_node(cls, node: Node, lowering: Lowering) -> Self:
        """Return the geometry of a node; operands with negative strides are copied."""
        options: Any = node.options
        images, filter_ = node.value("input"), node.value("filter")
        axes = image_axes(options["input_layout"])
        for value in (images, filter_):
            if min(lowering.place(value).layout.strides) < 0:
                lowering.dense(value)
        filter_layout = lowering.place(filter_).layout.permute(
            [options["filter_layout"].index(axis) for axis in "oihw"]
        )
        image_layout = lowering.place(images).layout.permute(axes)
        _, output_channels, *sizes = image_shape(node.outputs[0].shape, options["input_layout"])
        window = filter_layout.shape[2:]
        vertical, horizontal = slides(
            image_layout.shape[2:], window, options["padding"], options["strides"], options["dilations"]
        )
        return cls(
            images,
            image_layout,
            filter_,
            filter_layout,
            options["groups"],
            output_channels,
            (vertical, horizontal),
            (sizes[0], sizes[1]),
            options["input_layout"] == "nchw",
        )

    @property
    def batch(self) -> int:
        """The number of images."""
        return self.image_layout.shape[0]

    @property
    def group_inputs(self) -> int:
        """The input channels of a group."""
        return self.image_layout.shape[1] // self.groups

    @property
    def group_outputs(self) -> int:
        """The output channels of a group."""
        return self.output_channels // self.groups

    @property
    def pixels(self) -> int:
        """The pixels of an output image."""
        return self.output_sizes[0] * self.output_sizes[1]

    @property
    def is_pointwise(self) -> bool:
        """True if it is 1 × 1 with stride 1 and without padding."""
        return all(slide.window == slide.stride == 1 and not slide.begin and not slide.end for slide in self.slides)

    @property
    def phases(self) -> int:
        """The phases of a transposed convolution: the output positions modulo the strides."""
        return self.slides[0].stride * self.slides[1].stride

    def address(self, image: str, channel: str, row: str, column: str) -> str:
        """Return the index of an output element."""
        height, width = self.output_sizes
        if self.nchw:
            return f"((({image}) * {self.output_channels}u + {channel}) * {height}u + {row}) * {width}u + {column}"
        return f"((({image}) * {height}u + {row}) * {width}u + {column}) * {self.output_channels}u + {channel}"


def forward_axis(slide: Slide, outputs: int) -> WindowAxis:
    """Return an axis of a convolution."""
    return WindowAxis(slide.size, outputs, slide.stride, slide.dilation, (-slide.begin,), (slide.window,))


def transposed_axis(slide: Slide, outputs: int) -> tuple[WindowAxis, tuple[int, ...], int]:
    """Return an axis of a transposed convolution, with a phase for each output position modulo the stride.

    Input i contributes to output o by tap t of the window where i · stride + t · dilation = o + padding: in a phase,
    these are evenly spaced taps, from a first one on.

    Returns:
        The axis; the first tap of each phase; and the distance of taps.
    """
    stride, dilation = slide.stride, slide.dilation
    divisor = gcd(stride, dilation)
    step = stride // divisor
    inverse = pow(dilation // divisor, -1, step)
    begins, counts, firsts = [], [], []
    for remainder in range(stride):
        place = remainder + slide.begin
        first = place // divisor * inverse % step
        if place % divisor or first >= slide.window:
            first, count = 0, 0
        else:
            count = -(-(slide.window - first) // step)
        firsts.append(first)
        counts.append(count)
        begins.append((place - first * dilation) // stride)
    axis = WindowAxis(slide.size, -(-outputs // stride), 1, -(dilation * step // stride), tuple(begins), tuple(counts))
    return axis, tuple(firsts), step
