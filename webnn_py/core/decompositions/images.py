"""Convolution, pooling and resampling: what each element of a window gives is an image of its own."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from typing import Final

import attrs

from webnn_py.core.decompositions.common import (
    along,
    cut,
    decomposition,
    filled,
    joined,
    number,
    padded,
    widened,
)
from webnn_py.core.decompositions.moving import picked
from webnn_py.core.decompositions.reducing import reduce_l2, scale_for
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.convolution import Conv2dFilterLayout, ConvTranspose2dFilterLayout, transposed_sizes
from webnn_py.core.operators.declaration import Decomposition
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.pooling import RoundingType, pooled_sizes
from webnn_py.core.operators.resampling import InterpolationMode
from webnn_py.core.operators.resampling import resample2d as declared_resample2d
from webnn_py.core.operators.windows import InputLayout, Slide, image_axes, slides

Slides = tuple[Slide, Slide]

MOST_PADDED: Final = 8
"""How much longer than its elements and its windows together an axis is made by padding at most."""


def _channels_first(builder: Builder, input: MLOperand, layout: InputLayout) -> MLOperand:
    return input if layout == "nchw" else builder.transpose(input, permutation=image_axes(layout))


def _laid_out(builder: Builder, output: MLOperand, layout: InputLayout) -> MLOperand:
    return output if layout == "nchw" else builder.transpose(output, permutation=[0, 2, 3, 1])


def _elements_of_windows(
    builder: Builder, images: MLOperand, windows: Slides, sizes: Sequence[int], fill: MLNumber
) -> list[MLOperand]:
    """For each element of a window, row by row, the images [batch, channels, *sizes] of all windows' ones."""
    for axis, slide, size in zip((2, 3), windows, sizes, strict=True):
        images = padded(builder, images, axis, slide.begin, slide.needed_end(size), fill)
    spans = [(size - 1) * slide.stride + 1 for slide, size in zip(windows, sizes, strict=True)]
    strides = [1, 1, windows[0].stride, windows[1].stride]
    return [
        builder.slice(images, [0, 0, row, column], [*images.shape[:2], *spans], strides=strides)
        for row, column in _offsets(windows)
    ]


def _offsets(windows: Slides) -> Iterator[tuple[int, int]]:
    rows, columns = windows
    for row in range(rows.window):
        for column in range(columns.window):
            yield row * rows.dilation, column * columns.dilation


@widened
def conv2d(
    builder: Builder,
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
) -> MLOperand:
    """A product of the filters with the elements of all windows."""
    images = _channels_first(builder, input, input_layout)
    filters = builder.transpose(filter, permutation=[filter_layout.index(axis) for axis in "oihw"])
    outputs, depth, *window = filters.shape
    batch, _, *sizes = images.shape
    windows = slides(sizes, window, padding, strides, dilations)
    height, width = (math.floor(slide.output_size) for slide in windows)
    elements = [
        builder.reshape(element, [batch, groups, depth, 1, height * width])
        for element in _elements_of_windows(builder, images, windows, (height, width), 0)
    ]
    columns = builder.reshape(joined(builder, elements, 3), [batch, groups, depth * len(elements), height * width])
    rows = builder.reshape(filters, [groups, outputs // groups, depth * len(elements)])
    result = builder.reshape(builder.matmul(rows, columns), [batch, outputs, height, width])
    return _laid_out(builder, _with_bias(builder, result, bias), input_layout)


def _with_bias(builder: Builder, images: MLOperand, bias: MLOperand | None) -> MLOperand:
    return images if bias is None else builder.add(images, builder.reshape(bias, [*bias.shape, 1, 1]))


@widened
def conv_transpose2d(
    builder: Builder,
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
) -> MLOperand:
    """A product of the filters with the input; each element of a window is added where it belongs.

    The input is not spread with zeros, which an infinite filter would make NaN.
    """
    images = _channels_first(builder, input, input_layout)
    filters = builder.transpose(filter, permutation=[filter_layout.index(axis) for axis in "iohw"])
    inputs, outputs, *window = filters.shape
    batch, _, *sizes = images.shape
    windows = slides(sizes, window, padding, strides, dilations)
    new_sizes, count = transposed_sizes(windows, output_padding, output_sizes), math.prod(window)
    rows = builder.reshape(filters, [groups, inputs // groups, outputs * count])
    columns = builder.reshape(images, [batch, groups, inputs // groups, math.prod(sizes)])
    products = builder.matmul(builder.transpose(rows, permutation=[0, 2, 1]), columns)
    products = builder.reshape(products, [batch * groups * outputs, count, *sizes])
    placed = [
        _placed(builder, cut(builder, products, 1, index, index + 1), windows, offset, new_sizes)
        for index, offset in enumerate(_offsets(windows))
    ]
    result = builder.reshape(reduce(builder.add, placed), [batch, outputs * groups, *new_sizes])
    return _laid_out(builder, _with_bias(builder, result, bias), input_layout)


def _placed(
    builder: Builder, images: MLOperand, windows: Slides, offset: Sequence[int], new_sizes: Sequence[int]
) -> MLOperand:
    """Return the output's share of one element of the windows, at an offset in them: [images, 1, *new_sizes]."""
    for axis, slide, before, size in zip((2, 3), windows, offset, new_sizes, strict=True):
        spread = _spread(builder, images, axis, slide.stride)
        whole = max(slide.begin + size, before + spread.shape[axis])
        spread = padded(builder, spread, axis, before, whole - before - spread.shape[axis], 0)
        images = cut(builder, spread, axis, slide.begin, slide.begin + size)
    return images


def _spread(builder: Builder, images: MLOperand, axis: int, stride: int) -> MLOperand:
    """Return the images with zeros between their elements along an axis."""
    if stride == 1 or images.shape[axis] == 1:
        return images
    before, size, after = images.shape[:axis], images.shape[axis], images.shape[axis + 1 :]
    flat = builder.reshape(images, [math.prod(before), size, 1, math.prod(after)])
    spread = builder.reshape(padded(builder, flat, 2, 0, stride - 1, 0), [*before, size * stride, *after])
    return cut(builder, spread, axis, 0, (size - 1) * stride + 1)


# --- pooling -------------------------------------------------------------------------------------------------------


@attrs.frozen
class _Combination:
    """Combine the elements of windows along the height, then the results along the width.

    Attributes:
        fill: what changes nothing that it is combined with.
        elements: combines operands, element by element.
        along: combines the elements of an operand along axes, which it keeps.
        finish: computes the results of the combined elements, given how the windows slide.
    """

    fill: MLNumber
    elements: Callable[[Builder, Sequence[MLOperand]], MLOperand]
    along: Callable[[Builder, MLOperand, int], MLOperand]
    finish: Callable[[Builder, MLOperand, Slides], MLOperand] = lambda _builder, combined, _windows: combined


def _pooling(name: str, how: Callable[[MLOperand], _Combination]) -> Decomposition:
    """Return the decomposition of a pooling operator, given how its windows are combined."""

    def pool(
        builder: Builder,
        input: MLOperand,
        *,
        window_dimensions: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        layout: InputLayout = "nchw",
        output_shape_rounding: RoundingType = "floor",
        output_sizes: Sequence[int] | None = None,
    ) -> MLOperand:
        images, combination = _channels_first(builder, input, layout), how(input)
        sizes = images.shape[2:]
        windows = slides(sizes, window_dimensions or sizes, padding, strides, dilations)
        new_sizes = pooled_sizes(windows, output_shape_rounding, output_sizes)
        for axis, slide, size in zip((2, 3), windows, new_sizes, strict=True):
            images = _pooled_along(builder, images, axis, slide, size, combination)
        return _laid_out(builder, combination.finish(builder, images, windows), layout)

    pool.__name__ = name
    return pool


def _pooled_along(
    builder: Builder, images: MLOperand, axis: int, slide: Slide, size: int, how: _Combination
) -> MLOperand:
    """Return the combined elements of the windows along an axis."""
    runs = [(part, len(list(same))) for part, same in groupby(map(slide.part, range(size)))]
    padded_size = (size - 1) * slide.stride + slide.reach
    if slide.window <= len(runs) and padded_size <= MOST_PADDED * (slide.size + size):
        return how.elements(builder, _elements_along(builder, images, axis, slide, size, how.fill))
    return joined(builder, [_run(builder, images, axis, run, how) for run in runs], axis)


def _elements_along(
    builder: Builder, images: MLOperand, axis: int, slide: Slide, size: int, fill: MLNumber
) -> list[MLOperand]:
    """For each element of a window along an axis, that of all windows."""
    around = padded(builder, images, axis, slide.begin, slide.needed_end(size), fill)
    span = (size - 1) * slide.stride + 1
    firsts = range(0, slide.reach, slide.dilation)
    return [_at(builder, around, axis, range(first, first + span, slide.stride)) for first in firsts]


def _at(builder: Builder, images: MLOperand, axis: int, places: range) -> MLOperand:
    """Return the elements at some places of an axis."""
    starts, sizes, strides = [0] * images.rank, list(images.shape), [1] * images.rank
    starts[axis], sizes[axis], strides[axis] = places[0], places[-1] - places[0] + 1, places.step
    return builder.slice(images, starts, sizes, strides=strides)


def _run(builder: Builder, images: MLOperand, axis: int, run: tuple[range, int], how: _Combination) -> MLOperand:
    """Return the results of neighbouring windows that have the same part of an axis."""
    part, count = run
    shape = list(images.shape)
    shape[axis] = count
    if not part:
        return filled(builder, how.fill, images.data_type, shape)
    combined = how.along(builder, _at(builder, images, axis, part), axis)
    return builder.expand(combined, shape) if count > 1 else combined


def _mean(builder: Builder, sums: MLOperand, windows: Slides) -> MLOperand:
    """Divide the sums by the number of each window's elements that are within the image."""
    shape = sums.shape
    rows, columns = (
        along(builder, [len(slide.part(number)) for number in range(shape[axis])], axis, 4, "float32")
        for axis, slide in zip((2, 3), windows, strict=True)
    )
    return builder.div(sums, builder.max(builder.mul(rows, columns), number(builder, 1, rows)))


def _norm(builder: Builder, elements: Sequence[MLOperand]) -> MLOperand:
    scale = scale_for(builder, reduce(builder.max, map(builder.abs, elements)), squares=True)
    scaled = [builder.mul(element, scale) for element in elements]
    total = reduce(builder.add, [builder.mul(element, element) for element in scaled])
    return builder.div(builder.sqrt(total), scale)


SUM: Final = _Combination(
    0,
    lambda builder, elements: reduce(builder.add, elements),
    lambda builder, x, axis: builder.reduce_sum(x, axes=[axis], keep_dimensions=True),
    _mean,
)
NORM: Final = _Combination(0, _norm, lambda builder, x, axis: reduce_l2(builder, x, axes=[axis], keep_dimensions=True))


def _greatest(input: MLOperand) -> _Combination:
    return _Combination(
        INTEGER_RANGES.get(input.data_type, (-math.inf,))[0],
        lambda builder, elements: reduce(builder.max, elements),
        lambda builder, x, axis: builder.reduce_max(x, axes=[axis], keep_dimensions=True),
    )


average_pool2d = widened(_pooling("average_pool2d", lambda _input: SUM))
l2_pool2d = widened(_pooling("l2_pool2d", lambda _input: NORM))
max_pool2d = decomposition(_pooling("max_pool2d", _greatest))


# --- resampling ----------------------------------------------------------------------------------------------------


def _places(old: int, size: int) -> list[int]:
    """Return where the middle of each new element lies between the middles of the old, in units of 1 / (2 · size)."""
    return [min(max((2 * index + 1) * old - size, 0), (old - 1) * 2 * size) for index in range(size)]


def _interpolated(builder: Builder, input: MLOperand, axis: int, size: int) -> MLOperand:
    unit, places = 2 * size, _places(input.shape[axis], size)
    below = [place // unit for place in places]
    above = [-(-place // unit) for place in places]
    # An element's own place is halfway between itself and itself: infinity times 0 would be NaN.
    weights = [place % unit / unit or 0.5 for place in places]
    one = filled(builder, 1, "float32", [1] * input.rank)
    weight = along(builder, weights, axis, input.rank, "float32")
    low = builder.mul(picked(builder, input, axis, below), builder.sub(one, weight))
    return builder.add(low, builder.mul(picked(builder, input, axis, above), weight))


def _nearest(builder: Builder, input: MLOperand, axis: int, size: int) -> MLOperand:
    places = [-((size - place) // (2 * size)) for place in _places(input.shape[axis], size)]
    return picked(builder, input, axis, places)


@widened
def resample2d(
    builder: Builder,
    input: MLOperand,
    *,
    mode: InterpolationMode = "nearest-neighbor",
    scales: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> MLOperand:
    shape = declared_resample2d.function(input, mode=mode, scales=scales, sizes=sizes, axes=axes).shape
    resized = [axis for axis in axes or (2, 3) if input.shape[axis] != shape[axis]]
    if not resized:
        return input
    is_rounded = mode == "linear" and not input.data_type.startswith("float")
    result = builder.cast(input, "float32") if is_rounded else input
    for axis in resized:
        resample = _nearest if mode == "nearest-neighbor" else _interpolated
        result = resample(builder, result, axis, shape[axis])
    return builder.cast(builder.round_even(result), input.data_type) if is_rounded else result
