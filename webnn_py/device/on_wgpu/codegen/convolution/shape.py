"""What convolutions read: images, filters, and how windows lie on the images."""

from __future__ import annotations

from math import gcd
from typing import Any, Self

import attrs

from webnn_py.device.on_wgpu.codegen.gemm.im2col_loader import WindowAxis
from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.graph import Node, Value
from webnn_py.operators.windows import Slide, image_axes, image_shape, slides


@attrs.frozen
class ConvolutionShape:
    """What a node convolves.

    Attributes:
        images: the images, batch, channel, height and width; of any layout in memory.
        filter: the filter, output channel (of a group when transposed), input channel, height and width.
        groups: the number of groups.
        output_channels: of all groups.
        slides: how windows slide along height and width.
        output_sizes: the output's height and width.
        nchw: whether the output has its channels before height and width.
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
    def of(cls, node: Node, lowering: Lowering) -> Self:
        """Read a node; images that lie backwards in memory are copied."""
        options: Any = node.options
        images, filter_ = node.operands["input"], node.operands["filter"]
        assert isinstance(images, Value)  # noqa: S101 - for type checkers
        assert isinstance(filter_, Value)  # noqa: S101 - for type checkers
        axes = image_axes(options["input_layout"])
        if min(lowering.place(images).layout.strides) < 0:
            lowering.dense(images)
        if min(lowering.place(filter_).layout.strides) < 0:
            lowering.dense(filter_)
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
        """Places of an output image."""
        return self.output_sizes[0] * self.output_sizes[1]

    @property
    def is_pointwise(self) -> bool:
        """Whether every window is one element of the images, and every element has a window."""
        return all(slide.window == slide.stride == 1 and not slide.begin and not slide.end for slide in self.slides)

    @property
    def phases(self) -> int:
        """The phases of a transposed convolution, one for each remainder of the output's place by the strides."""
        return self.slides[0].stride * self.slides[1].stride

    def address(self, image: str, channel: str, row: str, column: str) -> str:
        """The number of an element of the output."""
        height, width = self.output_sizes
        if self.nchw:
            return f"((({image}) * {self.output_channels}u + {channel}) * {height}u + {row}) * {width}u + {column}"
        return f"((({image}) * {height}u + {row}) * {width}u + {column}) * {self.output_channels}u + {channel}"


def forward_axis(slide: Slide, outputs: int) -> WindowAxis:
    """An axis of a convolution."""
    return WindowAxis(slide.size, outputs, slide.stride, slide.dilation, (-slide.begin,), (slide.window,))


def transposed_axis(slide: Slide, outputs: int) -> tuple[WindowAxis, tuple[int, ...], int]:
    """An axis of a transposed convolution: a phase for each remainder of the output's place by the stride.

    Output o gets what input i spreads by element t of the window where i · stride + t · dilation = o + padding: in a
    phase, those are every so many elements of the window, from some first one on.

    Returns:
        The axis; each phase's first element of the window; and from one element to the next.
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
