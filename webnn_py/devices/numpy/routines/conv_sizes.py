"""The sizes and layouts of a convolution, and the scratch that follows from them."""

from math import prod
from typing import Any, Final, Self

import attrs

from webnn_py.core.graph import Node
from webnn_py.core.operators.convolution import filter_shape
from webnn_py.core.operators.windows import Slide, image_shape, slides
from webnn_py.devices.numpy.routines.blas import for_blas, is_for_blas
from webnn_py.devices.numpy.routines.float16 import NARROWING, float32
from webnn_py.devices.numpy.scratch import allowance
from webnn_py.devices.numpy.table import Array, Kernel, PreparedKernel, Run

FEW_OUTPUTS: Final = 4
"""The output channels of a group up to which BLAS is bound by memory."""

LEAST_IN_FLOAT16: Final = 2**19
"""The bytes of scratch that a convolution of float16 may have: its windows and results are in float32."""

MOST_REACH: Final = 1 / 4
"""The share of the output's size that dilated windows may span before each element is copied separately."""

MOST_TAPS: Final = 64
"""The elements of a window up to which a depthwise filter is small."""


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
    def from_node(cls, node: Node) -> Self:
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
            max(allowance(node), LEAST_IN_FLOAT16 if node.outputs[0].data_type == "float16" else 0),
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
        """The elements of scratch that it may have beside its filter in float32, if that is copied."""
        copied = self.output_channels * self.group_inputs * self.tap_count if self.data_type == "float16" else 0
        return max(self.allowance // 8, self.allowance // 4 - copied)

    @property
    def is_one_by_one(self) -> bool:
        """Return whether each element of an image is a window of its own, which is multiplied as it is."""
        return self.data_type == "float32" and all(
            slide.window == slide.stride == 1 and slide.size == count and not slide.begin for slide, count in self._axes
        )

    @property
    def is_spread(self) -> bool:
        """Return whether windows span, or leave out, so much that a padded copy would be larger than their elements."""
        return any(
            slide.stride > slide.reach or (slide.dilation > 1 and slide.reach > count * MOST_REACH)
            for slide, count in self._axes
        )

    @property
    def needs_padded_copy(self) -> bool:
        """Return whether images are copied, with their padding, before their windows are."""
        if self.is_spread:
            return False
        is_padded = any(
            slide.begin or (count - 1) * slide.stride + slide.reach > slide.size for slide, count in self._axes
        )
        return is_padded or (self.tap_count > 1 and (self.data_type != "float32" or self.layout != "nchw"))

    @property
    def _axes(self) -> list[tuple[Slide, int]]:
        """The slide along height and width, each with the number of windows."""
        return list(zip(self.slides, self.output_sizes, strict=True))

    def spans(self, rows: int) -> tuple[int, int]:
        """Return the height and the width of what some rows of windows span."""
        vertical, horizontal = self.slides
        width = (self.output_sizes[1] - 1) * horizontal.stride + horizontal.reach
        return (rows - 1) * vertical.stride + vertical.reach, width

    def tile_elements(self, rows: int) -> int:
        """Return the scratch elements for some rows of windows of one group of one image."""
        padded = self.group_inputs * prod(self.spans(rows)) if self.needs_padded_copy else 0
        results = self.group_outputs * (1 + NARROWING // 4) if self.data_type == "float16" else 0
        return padded + rows * self.output_sizes[1] * (self.group_inputs * self.tap_count + results)

    @property
    def has_few_outputs(self) -> bool:
        """Return whether BLAS is bound by memory, because a group has few output channels."""
        return self.group_outputs <= FEW_OUTPUTS

    @property
    def is_depthwise(self) -> bool:
        """Return whether every channel has its own small filter, or a few of them."""
        return self.group_inputs == 1 and self.has_few_outputs and self.tap_count <= MOST_TAPS

    @property
    def is_window_first(self) -> bool:
        """Return whether the filter has height and width before the input channels."""
        return self.filter_layout in ("hwio", "ohwi")

    def filter_view(self, filter_: Array) -> Array | None:
        """Return a filter of conv2d as matrices that BLAS takes, without a copy; None where that is impossible.

        They are [groups, output channels of a group, elements of a window]; the elements are in the filter's own order.
        """
        if self.data_type != "float32":
            return None
        try:
            matrices = self._matrices(filter_, copy=False)
        except ValueError:
            return None
        return matrices if is_for_blas(matrices) else None

    def filter_matrices(self, filter_: Array) -> Array:
        """Return a filter of conv2d as matrices, as :meth:`filter_view` does, copied to float32 where necessary."""
        return for_blas(self._matrices(float32(filter_), copy=None))

    def _matrices(self, filter_: Array, *, copy: bool | None) -> Array:
        if self.filter_layout in ("oihw", "ohwi"):
            return filter_.reshape(self.groups, self.group_outputs, -1, copy=copy)
        return filter_.reshape(-1, self.groups, self.group_outputs, copy=copy).transpose(1, 2, 0)

    def planes(self, images: Array) -> Array:
        """Return images as a view: [batch, channels, height, width]."""
        return images if self.layout == "nchw" else images.transpose(0, 3, 1, 2)

    def by_group(self, images: Array) -> Array:
        """Return images as a view: [batch, groups, channels of a group, height, width]."""
        planes = self.planes(images)
        return planes.reshape(self.batch, self.groups, -1, *planes.shape[2:], copy=False)

    def bias(self, rest: tuple[Array, ...]) -> Array | None:
        """Return the bias in float32, [groups, outputs of a group, 1, 1], given the arrays behind the filter."""
        return float32(rest[0]).reshape(self.groups, -1, 1, 1) if self.has_bias else None

    def upright(self, convolve: PreparedKernel) -> Kernel:
        """Return the kernel for the node's images, given the kernel for images that are turned if ``is_turned``."""
        if not self.is_turned:
            return convolve
        axes = (2, 3) if self.layout == "nchw" else (1, 2)

        def prepare(images: Array, filter_: Array, *rest: Array) -> Run:
            return convolve.prepare(images.swapaxes(*axes), filter_, *rest[:-1], rest[-1].swapaxes(*axes))

        return PreparedKernel(prepare)
