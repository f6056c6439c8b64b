"""Pooling: windows are combined along the height, then along the width."""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby
from typing import Final

import attrs

from webnn_py.core.decompositions.common import (
    Slides,
    along,
    channels_first,
    decomposition,
    filled,
    joined,
    laid_out,
    number,
    padded,
    widened,
)
from webnn_py.core.decompositions.reduction import reduce_l2, scale_for
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.declaration import Decomposition
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.pooling import RoundingType, pooled_sizes
from webnn_py.core.operators.windows import InputLayout, Slide, slides

MOST_PADDED: Final = 8
"""How much longer than its elements and its windows together an axis is made by padding at most."""


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
        images, combination = channels_first(builder, input, layout), how(input)
        sizes = images.shape[2:]
        windows = slides(sizes, window_dimensions or sizes, padding, strides, dilations)
        new_sizes = pooled_sizes(windows, output_shape_rounding, output_sizes)
        for axis, slide, size in zip((2, 3), windows, new_sizes, strict=True):
            images = _pooled_along(builder, images, axis, slide, size, combination)
        return laid_out(builder, combination.finish(builder, images, windows), layout)

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
