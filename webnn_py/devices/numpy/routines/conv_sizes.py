"""The sizes and layouts of a convolution, and the scratch that follows from them."""

from math import prod
from typing import Any, Final, Self

import attrs

from webnn_py.core.graph import Node
from webnn_py.core.operators.convolution import filter_shape
from webnn_py.core.operators.windows import Slide, image_shape, slides
from webnn_py.devices.numpy.scratch import allowance
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run, prepared

FEW_OUTPUTS: Final = 4
"""The output channels of a group up to which BLAS is bound by memory."""

LEAST_IN_FLOAT16: Final = 2**19
MOST_IN_FLOAT16: Final = 2**23
"""The scratch bytes of float16: at least the least, and up to the most where its filter needs as much."""

MOST_EXCESS: Final = 1 / 2
"""The share of the output's size that windows may span beyond it before elements are copied without padding."""

MOST_SHIFTS: Final = 64
"""The elements of a window up to which the filter is repeated for every column."""


@attrs.frozen
class Convolution:
    """The sizes and layouts of a convolution.

    Attributes:
        slides: the slides along the height and the width of the images.
        output_sizes: the height and the width of the output.
        has_bias: whether there is a bias.
        allowance: the bytes of scratch that it may have.
        is_turned: whether height and width are exchanged: a single row of windows becomes a column of them, which
            can be cut into tiles of rows.
    """

    batch: int
    groups: int
    input_channels: int
    output_channels: int
    slides: tuple[Slide, Slide]
    output_sizes: tuple[int, int]
    layout: str
    filter_layout: str
    data_type: str
    has_bias: bool
    allowance: int
    is_turned: bool

    @classmethod
    def of(cls, node: Node) -> Self:
        """Return the convolution of a node."""
        options: Any = node.options
        layout = options["input_layout"]
        batch, input_channels, *sizes = image_shape(node.operand("input").shape, layout)
        _, output_channels, *output_sizes = image_shape(node.outputs[0].shape, layout)
        window = filter_shape(node.operand("filter").shape, options["filter_layout"])[2:]
        vertical, horizontal = slides(sizes, window, options["padding"], options["strides"], options["dilations"])
        is_turned = vertical.size == vertical.window == output_sizes[0] == 1 and not vertical.begin
        return cls(
            batch,
            options["groups"],
            input_channels,
            output_channels,
            (horizontal, vertical) if is_turned else (vertical, horizontal),
            (output_sizes[1], output_sizes[0]) if is_turned else (output_sizes[0], output_sizes[1]),
            layout,
            options["filter_layout"],
            node.outputs[0].data_type,
            "bias" in node.operands,
            float16_allowance(node) if node.outputs[0].data_type == "float16" else allowance(node),
            is_turned,
        )

    @property
    def group_inputs(self) -> int:
        """The input channels of a group."""
        return self.input_channels // self.groups

    @property
    def group_outputs(self) -> int:
        """The output channels of a group."""
        return self.output_channels // self.groups

    @property
    def tap_count(self) -> int:
        """The number of elements of a window."""
        return prod(slide.window for slide in self.slides)

    @property
    def multiply_adds(self) -> float:
        """The multiply-adds: one for each element of the output and each element that it sums over."""
        windows = float(self.batch * prod(self.output_sizes))
        return windows * self.output_channels * self.group_inputs * self.tap_count

    @property
    def most_elements(self) -> int:
        """The elements of scratch that it may have."""
        return self.allowance // 4

    @property
    def copied_elements(self) -> int:
        """The elements of the filter that it may copy at a time."""
        most = self.most_elements
        return max(most // 8, min(most * 2 // 5, most - self.tile_elements(1)))

    @property
    def is_spread(self) -> bool:
        """Return whether windows span so much more than their elements that each element is copied separately.

        A padded copy of the span of a tile would be larger than the tile, or not fit into the scratch at all.
        """
        if all(slide.dilation == 1 for slide in self.slides) or any(slide.stride > 1 for slide in self.slides):
            return False
        return any(
            slide.reach - 1 > size * MOST_EXCESS for slide, size in zip(self.slides, self.output_sizes, strict=True)
        )

    @property
    def pitch(self) -> int:
        """The columns of padded images, in steps of the stride."""
        horizontal = self.slides[1]
        if self.is_spread:
            return self.output_sizes[1]
        return self.output_sizes[1] + (horizontal.reach - 1) // horizontal.stride

    def padded_elements(self, rows: int) -> int:
        """Return the padded elements that some rows of windows of one group need."""
        if self.is_spread:
            return 0
        vertical, horizontal = self.slides
        phases = min(vertical.stride, vertical.window) * min(horizontal.stride, horizontal.window)
        return self.pitch * self.group_inputs * phases * (rows + (vertical.reach - 1) // vertical.stride)

    def tile_elements(self, rows: int) -> int:
        """Return the scratch elements for some rows of one group: the windows, their padded images, and the results."""
        windows = self.pitch * rows * (self.group_inputs * self.tap_count + self.group_outputs)
        return self.padded_elements(rows) + windows

    @property
    def has_few_outputs(self) -> bool:
        """Return whether BLAS is bound by memory, because a group has few output channels."""
        return self.group_outputs <= FEW_OUTPUTS

    @property
    def is_depthwise(self) -> bool:
        """Return whether every channel has its own small filter, or a few of them."""
        return self.group_inputs == 1 and self.has_few_outputs and self.tap_count <= MOST_SHIFTS

    @property
    def is_window_first(self) -> bool:
        """Return whether the filter has height and width before the input channels."""
        return self.filter_layout in ("hwio", "ohwi")

    def upright(self, convolve: Kernel) -> Kernel:
        """Return the kernel for the node's images, given the kernel for images that are turned if ``is_turned``."""
        if not self.is_turned:
            return convolve
        axes = (2, 3) if self.layout == "nchw" else (1, 2)

        def prepare(images: Array, filter_: Array, *rest: Array) -> Run:
            return prepared(convolve, images.swapaxes(*axes), filter_, *rest[:-1], rest[-1].swapaxes(*axes))

        return PreparedKernel(prepare)


def float16_allowance(node: Node) -> int:
    """Return the bytes of scratch for float16, which needs the filter and the windows in float32.

    Where the filter is cut, the windows are copied again for each part of it, or vice versa.
    """
    widened = 4 * node.operand("filter").element_count
    return max(allowance(node), LEAST_IN_FLOAT16, min(2 * widened, MOST_IN_FLOAT16))
