"""Resampling: each axis by itself."""

from collections.abc import Sequence

from webnn_py.core.decompositions.common import along, filled, widened
from webnn_py.core.decompositions.movement import picked
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.resampling import InterpolationMode
from webnn_py.core.operators.resampling import resample2d as declared_resample2d


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
