"""Convolutions (sections "conv2d" and "convTranspose2d")."""

from collections.abc import Sequence
from operator import add
from typing import Literal

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.limits import FLOATS, of_ranks
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_length, check_shape, floor_or_refuse, output, refuse
from webnn_py.core.operators.windows import (
    PER_AXIS,
    PER_SIDE,
    InputLayout,
    Slide,
    check_steps,
    image_shape,
    laid_out,
    slides,
)

Conv2dFilterLayout = Literal["oihw", "hwio", "ohwi", "ihwo"]
"""The order of a filter's axes: output channels, input channels of a group, height, width."""

ConvTranspose2dFilterLayout = Literal["iohw", "hwoi", "ohwi"]
"""The order of a filter's axes: input channels, output channels of a group, height, width."""

CONV = of_ranks(FLOATS, input=4, filter=4, bias=1, output=4)


def filter_shape(shape: Sequence[int], layout: str) -> tuple[int, int, int, int]:
    """Return a filter's output channels, input channels, height and width."""
    size = dict(zip(layout, shape, strict=True))
    return size["o"], size["i"], size["h"], size["w"]


@operator("conv2d", CONV, propagates_nan=True)
def conv2d(
    input: MLOperand,
    filter: MLOperand,
    *,
    padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    input_layout: InputLayout = "nchw",
    filter_layout: Conv2dFilterLayout = "oihw",
    bias: MLOperand | None = None,
    label: str = "",
) -> MLOperandDescriptor:
    """Convolve images with a filter.

    Each output element is the sum of a window's elements times the filter's, over the channels of the group,
    plus the bias. float16 is computed in float32 and rounded once.

    Args:
        input: images, laid out as ``input_layout`` says; so is the output.
        filter: laid out as ``filter_layout`` says; its input channels are those of one group.
        padding: zeros around the images: before and after the height, before and after the width; none when absent.
        strides: from one window to the next along height and width; [1, 1] when absent.
        dilations: from one element of a window to the next along height and width; [1, 1] when absent.
        groups: how many groups the channels are cut into, each convolved on its own. A depthwise convolution has
            as many groups as channels.
        input_layout: "nchw" or "nhwc".
        filter_layout: "oihw", "hwio", "ohwi" or "ihwo".
        bias: [output channels], added to the output.

    Returns:
        The images, [batch, output channels, height, width] in the order of ``input_layout``. A size is (size +
        padding - (window - 1) · dilation - 1) / stride + 1, rounded down.
    """
    # spec: conv2d 7-8
    check_length("padding", padding, PER_SIDE)
    # spec: conv2d 9-11
    check_steps("strides", strides)
    # spec: conv2d 12-14
    check_steps("dilations", dilations)
    check_groups(groups)
    # spec: conv2d 16.1-16.2
    batch, input_channels, *sizes = image_shape(input.shape, input_layout)
    # spec: conv2d 16.3-16.4
    output_channels, group_channels, *window = filter_shape(filter.shape, filter_layout)
    # spec: conv2d 16.5
    if input_channels % groups:
        refuse("the number of groups", groups, f"a divisor of the number of input channels, {input_channels}")
    # spec: conv2d 16.6
    if input_channels // groups != group_channels:
        allowed = f"the input's {input_channels} / {groups} groups = {input_channels // groups}"
        refuse("the number of input channels of the filter", group_channels, allowed)
    # spec: conv2d 16.7
    if output_channels % groups:
        refuse("the number of groups", groups, f"a divisor of the number of output channels, {output_channels}")
    # spec: conv2d 16.8.1
    check_shape("bias", bias, (output_channels,))
    # spec: conv2d 16.9
    rows, columns = slides(sizes, window, padding, strides, dilations)
    # spec: conv2d 16.10-16.12
    height = floor_or_refuse("the output's height", rows.output_size)
    width = floor_or_refuse("the output's width", columns.output_size)
    return output(input.data_type, laid_out(batch, output_channels, height, width, input_layout))


@operator("convTranspose2d", CONV)
def conv_transpose2d(
    input: MLOperand,
    filter: MLOperand,
    *,
    padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_sizes: Sequence[int] | None = None,
    groups: int = 1,
    input_layout: InputLayout = "nchw",
    filter_layout: ConvTranspose2dFilterLayout = "iohw",
    bias: MLOperand | None = None,
    label: str = "",
) -> MLOperandDescriptor:
    """Spread every element of the images over a window: a transposed convolution.

    Each input element, times the filter, is added to the window of the output that it belongs to; then the bias
    is added. float16 is computed in float32 and rounded once.

    Args:
        input: images, laid out as ``input_layout`` says; so is the output.
        filter: laid out as ``filter_layout`` says; its output channels are those of one group.
        padding: what to cut from the output: before and after the height, before and after the width; nothing
            when absent.
        strides: from one window to the next along height and width; [1, 1] when absent.
        dilations: from one element of a window to the next along height and width; [1, 1] when absent.
        output_padding: rows and columns to append to the output, fewer than the strides; none when absent.
        output_sizes: the height and width of the output, in place of ``output_padding``; less than a stride above
            the sizes that the other arguments give.
        groups: how many groups the channels are cut into, each convolved on its own. ``build()`` refuses groups that
            do not divide the input channels; the specification does not say so here.
        input_layout: "nchw" or "nhwc".
        filter_layout: "iohw", "hwoi" or "ohwi".
        bias: [output channels], added to the output.

    Returns:
        The images, [batch, output channels, height, width] in the order of ``input_layout``. A size is (size - 1) ·
        stride + (window - 1) · dilation + 1 - padding, plus ``output_padding``, or that of ``output_sizes``.
    """
    # spec: convTranspose2d 7-8
    check_length("padding", padding, PER_SIDE)
    # spec: convTranspose2d 9-11
    check_steps("strides", strides)
    # spec: convTranspose2d 12-14
    check_steps("dilations", dilations)
    # spec: convTranspose2d 15-16
    check_length("output_padding", output_padding, PER_AXIS)
    # spec: convTranspose2d 17.1
    check_length("output_sizes", output_sizes, PER_AXIS)
    if output_sizes is None and output_padding is not None:
        check_below_strides(output_padding, strides or (1, 1))
    check_groups(groups)
    batch, input_channels, *sizes = image_shape(input.shape, input_layout)
    group_channels, filter_channels, *window = filter_shape(filter.shape, filter_layout)
    # spec: convTranspose2d 20.5
    if input_channels != filter_channels:
        refuse("the number of input channels of the filter", filter_channels, f"the input's, {input_channels}")
    # spec: convTranspose2d 20.6
    output_channels = group_channels * groups
    # spec: convTranspose2d 20.8.1
    check_shape("bias", bias, (output_channels,))
    windows = slides(sizes, window, padding, strides, dilations)
    height, width = transposed_sizes(windows, output_padding, output_sizes)
    return output(input.data_type, laid_out(batch, output_channels, height, width, input_layout))


def check_groups(groups: int) -> None:
    """Refuse no groups."""
    # spec: conv2d 15; convTranspose2d 19
    if groups == 0:
        refuse("the number of groups", groups, "at least 1")


def check_below_strides(output_padding: Sequence[int], strides: Sequence[int]) -> None:
    """Refuse output padding that another window would fill."""
    # spec: convTranspose2d 18.1
    if any(padding >= stride for padding, stride in zip(output_padding, strides, strict=True)):
        refuse("output_padding", tuple(output_padding), f"less than the strides {list(strides)}")


def transposed_sizes(
    windows: tuple[Slide, Slide], output_padding: Sequence[int] | None, output_sizes: Sequence[int] | None
) -> tuple[int, int]:
    """Return the height and width of the output of a transposed convolution: as given, else with what is appended."""
    least = [slide.transposed_size for slide in windows]
    # spec: convTranspose2d 20.11.1, 20.12
    height, width = output_sizes or map(add, least, output_padding or (0, 0))
    for name, size, wanted, slide in zip(("height", "width"), least, (height, width), windows, strict=True):
        # spec: convTranspose2d 20.11.2-20.11.3
        if output_sizes and not size <= wanted < size + slide.stride:
            refuse(f"the {name} in output_sizes", wanted, f"from {size} to {size + slide.stride - 1}")
        # spec: convTranspose2d 20.13
        if wanted < 1:
            refuse(f"the output's {name}", wanted, "at least 1")
    return height, width
