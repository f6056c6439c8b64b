"""Pooling (section "Pooling operations")."""

import math
from collections.abc import Sequence
from typing import Literal

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import family
from webnn_py.core.operators.limits import ANY, FLOATS, LimitsRow, input_and_output
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_length, output, refuse
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

RoundingType = Literal["floor", "ceil"]
"""How output sizes are rounded."""

POOL: LimitsRow = input_and_output(FLOATS, rank=4)

MAX_POOL: LimitsRow = input_and_output(ANY, required=FLOATS, rank=4)


@family()
def _pooling(
    input: MLOperand,
    *,
    window_dimensions: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    layout: InputLayout = "nchw",
    output_shape_rounding: RoundingType = "floor",
    output_sizes: Sequence[int] | None = None,
    label: str = "",
) -> MLOperandDescriptor:
    """Pool.

    Args:
        input: images, laid out as ``layout`` says; so is the output.
        window_dimensions: the height and width of the window; those of the input when absent.
        padding: elements around the images: before and after the height, before and after the width; none when
            absent.
        strides: from one window to the next along height and width; [1, 1] when absent.
        dilations: from one element of a window to the next along height and width; [1, 1] when absent.
        layout: "nchw" or "nhwc".
        output_shape_rounding: how to round the output's height and width, "floor" or "ceil".
        output_sizes: the output's height and width, in place of the rounding: one of its two results.

    Returns:
        The images, [batch, channels, height, width] in the order of ``layout``. A size is (size + padding - (window -
        1) · dilation - 1) / stride + 1, rounded as asked for.
    """
    # spec: pooling-op 6
    batch, channels, *sizes = image_shape(input.shape, layout)
    # spec: pooling-op 8-9
    check_steps("window_dimensions", window_dimensions)
    # spec: pooling-op 11
    check_length("padding", padding, PER_SIDE)
    # spec: pooling-op 12-14
    check_steps("strides", strides)
    # spec: pooling-op 15.1
    check_length("output_sizes", output_sizes, PER_AXIS)
    # spec: pooling-op 16-18
    check_steps("dilations", dilations)
    # spec: pooling-op 7, 20.1-20.2
    height, width = pooled_sizes(
        slides(sizes, window_dimensions or sizes, padding, strides, dilations), output_shape_rounding, output_sizes
    )
    return output(input.data_type, laid_out(batch, channels, height, width, layout))


average_pool2d = _pooling(
    "averagePool2d",
    POOL,
    """The mean of each window's elements.

Padding does not count: the sum is divided by the number of elements within the image; the mean of none is 0.
""",
    averages=True,
)
l2_pool2d = _pooling(
    "l2Pool2d",
    POOL,
    "The Euclidean norm of each window's elements: the square root of the sum of their squares.",
    result_range=(0, math.inf),
)
max_pool2d = _pooling(
    "maxPool2d",
    MAX_POOL,
    """The greatest of each window's elements; NaN if one of them is NaN.

Padding does not count; the greatest of no elements is the lowest value of the data type.
""",
    selects=True,
)


def pooled_sizes(windows: tuple[Slide, Slide], rounding: RoundingType, wanted: Sequence[int] | None) -> tuple[int, int]:
    """Return the output's height and width."""
    floor = tuple(math.floor(slide.output_size) for slide in windows)
    ceil = tuple(math.ceil(slide.output_size) for slide in windows)
    # spec: pooling-op 20.3.2
    if wanted is not None and tuple(wanted) not in (floor, ceil):
        refuse("output_sizes", tuple(wanted), f"{list(floor)} or {list(ceil)}")
    # spec: pooling-op 20.4
    height, width = wanted or (floor if rounding == "floor" else ceil)
    # spec: pooling-op 20.5
    if height < 1 or width < 1:
        refuse("the output's height and width", (height, width), "at least 1")
    return height, width
