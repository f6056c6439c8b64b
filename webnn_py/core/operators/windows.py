"""Windows that slide over images: what convolution and pooling share.

A Slide says how a window moves along one spatial axis; shape rules and devices compute with it alike.
"""

from collections.abc import Sequence
from typing import Final, Literal

from webnn_py.core.frozen import frozen
from webnn_py.core.operators.rules import check_length, check_positive

InputLayout = Literal["nchw", "nhwc"]
"""The order of an image's axes: batch, channels, height, width; or channels last."""

PER_SIDE: Final = 4
PER_AXIS: Final = 2


@frozen
class Slide:
    """The sliding of a window along one spatial axis.

    Attributes:
        size: the length of the axis.
        window: how many elements a window has.
        begin: the padding before the axis.
        end: the padding after it.
        stride: from one window to the next.
        dilation: from one element of a window to the next.
    """

    size: int
    window: int
    begin: int
    end: int
    stride: int
    dilation: int

    @property
    def reach(self) -> int:
        """The extent of a window."""
        # spec: calculate conv output size 1; calculate convtranspose output size 1
        return (self.window - 1) * self.dilation + 1

    @property
    def output_size(self) -> float:
        """The number of windows, not yet rounded: the spec's "calculate conv output size"."""
        # spec: calculate conv output size 2-3
        return (self.size - self.reach + self.begin + self.end) / self.stride + 1

    @property
    def transposed_size(self) -> int:
        """The length of the axis when every element spreads over a window."""
        # spec: calculate convtranspose output size 2-3
        return (self.size - 1) * self.stride + self.reach - self.begin - self.end

    def needed_end(self, count: int) -> int:
        """Return the padding after the axis that so many windows need, at least what is there."""
        return max(self.end, (count - 1) * self.stride + self.reach - self.begin - self.size)

    def part(self, number: int) -> range:
        """Return the indices along the axis that a window covers, in order; none where it is in the padding."""
        first = number * self.stride - self.begin
        begin = min(max(-(first // self.dilation), 0), self.window)
        end = min(max(-((first - self.size) // self.dilation), begin), self.window)
        return range(first + begin * self.dilation, first + end * self.dilation, self.dilation)


def slides(
    sizes: Sequence[int],
    window: Sequence[int],
    padding: Sequence[int] | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
) -> tuple[Slide, Slide]:
    """Return the slides along height and width; what is absent has the specification's default."""
    begin_height, end_height, begin_width, end_width = padding or (0,) * PER_SIDE
    strides = strides or (1,) * PER_AXIS
    dilations = dilations or (1,) * PER_AXIS
    # spec: calculate conv2d output sizes 1-3
    return (
        Slide(sizes[0], window[0], begin_height, end_height, strides[0], dilations[0]),
        Slide(sizes[1], window[1], begin_width, end_width, strides[1], dilations[1]),
    )


def image_axes(layout: InputLayout) -> tuple[int, int, int, int]:
    """Return the axes of batch, channels, height and width in a layout."""
    return (0, 1, 2, 3) if layout == "nchw" else (0, 3, 1, 2)


def image_shape(shape: Sequence[int], layout: InputLayout) -> tuple[int, int, int, int]:
    """Return the batch, channels, height and width of a 4-D shape."""
    if layout == "nchw":
        batch, channels, height, width = shape
    else:
        batch, height, width, channels = shape
    return batch, channels, height, width


def laid_out(batch: int, channels: int, height: int, width: int, layout: InputLayout) -> tuple[int, int, int, int]:
    """Return the 4-D shape of images in a layout."""
    return (batch, channels, height, width) if layout == "nchw" else (batch, height, width, channels)


def check_steps(name: str, values: Sequence[int] | None) -> None:
    """Refuse strides, dilations or window dimensions that are not two positive numbers."""
    if values is not None:
        check_length(name, values, PER_AXIS)
        check_positive(name, values)
