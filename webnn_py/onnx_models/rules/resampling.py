"""Resizing. WebNN knows one rule of coordinates, half_pixel, along two axes of four; what it lacks is composed."""

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.onnx_models.axes import counted_all, integers, numbers
from webnn_py.onnx_models.conversion_context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.table import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.resampling import InterpolationMode
from webnn_py.operators.rules import check_length, check_positive, refuse

Coordinates = NDArray[np.float64]

LARGEST_SCALE = 2**31
"""No axis is so long."""

BYTES_AN_ELEMENT = 128
"""What the coordinates of one new element take on the way."""


@attrs.frozen
class ResizedAxis:
    """How one axis is stretched.

    Attributes:
        axis: the axis.
        size: its length.
        new_size: its new length.
        step: from one new element to the next, in old ones: size / new_size unless the new size was rounded.
    """

    axis: int
    size: int
    new_size: int
    step: float

    def old(self, places: Coordinates) -> Coordinates:
        """Where new places lie among the old; in whole numbers as far as possible, so that ties are ties."""
        exact = math.isclose(self.step * self.new_size, self.size, rel_tol=1e-6)
        return places * self.size / self.new_size if exact else places * self.step

    def coordinates(self, transformation: str) -> Coordinates:
        """Where each new element lies among the old ones."""
        places = np.arange(self.new_size, dtype=np.float64)
        centres = self.old(places + 0.5)
        rounding = self.new_size * self.step / self.size  # 1 unless the new size was rounded
        coordinates: dict[str, Coordinates] = {
            "align_corners": places * (self.size - 1) / max(1, self.new_size - 1),
            "asymmetric": self.old(places),
            "half_pixel": centres - 0.5,
            "half_pixel_symmetric": self.size / 2 * (1 - rounding) + centres - 0.5,
            "pytorch_half_pixel": centres - 0.5 if self.new_size > 1 else np.zeros(1),
            "tf_half_pixel_for_nn": centres,
        }
        if transformation not in coordinates:
            refuse("attribute coordinate_transformation_mode", transformation, ", ".join(coordinates))
        return coordinates[transformation]

    def nearest(self, coordinates: Coordinates, rounding: str) -> NDArray[np.int64]:
        """The old element that is nearest to each coordinate."""
        rounded = {
            "ceil": np.ceil(coordinates),
            "floor": np.floor(coordinates),
            "round_prefer_ceil": np.floor(coordinates + 0.5),
            "round_prefer_floor": np.ceil(coordinates - 0.5),
        }
        if rounding not in rounded:
            refuse("attribute nearest_mode", rounding, ", ".join(rounded))
        return np.clip(rounded[rounding], 0, self.size - 1).astype(np.int64)

    @property
    def weights_length(self) -> int:
        """What the weights take, in bytes."""
        return self.new_size * self.size * np.dtype(np.float64).itemsize

    def weights(self, coordinates: Coordinates) -> NDArray[np.float64]:
        """How much of each old element is in each new one, by linear interpolation: [new_size, size]."""
        distances = np.clip(coordinates, 0, self.size - 1)[:, np.newaxis] - np.arange(self.size)
        weights: Coordinates = np.maximum(0, 1 - np.abs(distances))
        return weights


@rule("Upsample", 7)
def upsample(context: ConversionContext, x: MLOperand, *, mode: str, scales: Sequence[float]) -> MLOperand:
    """Enlarge; coordinates are not shifted."""
    if min(scales, default=1) < 1:
        refuse("scales", tuple(scales), "at least 1 in this version of the operator")
    return _resized(context, x, _by_scales(x, range(x.rank), scales), mode, "asymmetric", "floor")


@rule("Upsample", 9)
@rule("Resize", 10)
def upsample_by_input(context: ConversionContext, x: MLOperand, scales: StaticValue, *, mode: str) -> MLOperand:
    """Likewise; the scales are an input."""
    return upsample(context, x, mode=mode, scales=numbers("input scales", scales))


@rule("Resize", 11, 13, 18, 19)
def resize(
    context: ConversionContext,
    x: MLOperand,
    roi: Value | None = None,
    scales: StaticValue | None = None,
    sizes: StaticValue | None = None,
    *,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str,
    exclude_outside: int,
    mode: str,
    nearest_mode: str,
) -> MLOperand:
    """ResizedAxis or shrink; ``roi`` and ``exclude_outside`` matter only in modes that are refused."""
    chosen = range(x.rank) if axes is None else counted_all(axes, x.rank)
    if scales is not None and scales.size:
        stretches = _by_scales(x, chosen, numbers("input scales", scales))
    elif sizes is not None and sizes.size:
        stretches = _by_sizes(x, chosen, integers("input sizes", sizes))
    else:
        refuse("scales and sizes", "absent", "given, one of them")
    return _resized(context, x, stretches, mode, coordinate_transformation_mode, nearest_mode)


def _by_scales(x: MLOperand, axes: Sequence[int], scales: Sequence[float]) -> list[ResizedAxis]:
    check_length("scales", scales, len(axes))
    if not all(0 < scale < LARGEST_SCALE for scale in scales):
        refuse("scales", tuple(scales), f"greater than 0 and less than {LARGEST_SCALE}")
    stretches = []
    for axis, scale in zip(axes, scales, strict=True):
        size = x.shape[axis]
        new_size = math.floor(np.float32(size) * np.float32(scale))  # ONNX multiplies in binary32
        stretches.append(ResizedAxis(axis, size, new_size, 1 / scale))
    check_positive("the new shape", [stretch.new_size for stretch in stretches])
    return stretches


def _by_sizes(x: MLOperand, axes: Sequence[int], sizes: Sequence[int]) -> list[ResizedAxis]:
    check_length("sizes", sizes, len(axes))
    if min(sizes, default=1) < 1:
        refuse("sizes", tuple(sizes), "at least 1 everywhere")
    return [
        ResizedAxis(axis, x.shape[axis], size, x.shape[axis] / size) for axis, size in zip(axes, sizes, strict=True)
    ]


def _resized(
    context: ConversionContext,
    x: MLOperand,
    stretches: Sequence[ResizedAxis],
    mode: str,
    transformation: str,
    rounding: str,
) -> MLOperand:
    context.reserve(BYTES_AN_ELEMENT * sum(stretch.new_size for stretch in stretches))
    if mode == "nearest":
        return _nearest(context, x, stretches, transformation, rounding)
    if mode != "linear":
        refuse("attribute mode", mode, "nearest or linear")
    if x.data_type not in ("float32", "float16"):
        refuse("the data type of the input", x.data_type, "float32 or float16 in the mode linear")
    return _linear(context, x, stretches, transformation)


def _nearest(
    context: ConversionContext, x: MLOperand, stretches: Sequence[ResizedAxis], transformation: str, rounding: str
) -> MLOperand:
    """Pick elements: by resample2d where it would pick the same ones, otherwise axis by axis."""
    picked = {stretch: stretch.nearest(stretch.coordinates(transformation), rounding) for stretch in stretches}
    changed = {stretch: indices for stretch, indices in picked.items() if not _same(indices, np.arange(stretch.size))}
    own = all(
        _same(indices, _own(stretch).nearest(_own(stretch).coordinates("half_pixel"), "round_prefer_floor"))
        for stretch, indices in changed.items()
    )
    if own and x.rank == 4 and len(changed) <= 2:
        return _resampled(context, x, list(changed), "nearest-neighbor")
    for stretch, indices in changed.items():
        x = context.gather(x, context.constant(indices.astype(np.int32)), axis=stretch.axis)
    return x


def _linear(
    context: ConversionContext, x: MLOperand, stretches: Sequence[ResizedAxis], transformation: str
) -> MLOperand:
    """Interpolate: by resample2d where its coordinates are the same, otherwise by matrices, axis by axis."""
    places = {stretch: stretch.coordinates(transformation) for stretch in stretches}
    changed = {stretch: item for stretch, item in places.items() if not _same(item, np.arange(stretch.size))}
    own = all(_same(item, _own(stretch).coordinates("half_pixel")) for stretch, item in changed.items())
    if own and x.rank == 4 and len(changed) <= 2:
        return _resampled(context, x, list(changed), "linear")
    for stretch, item in changed.items():
        context.reserve(stretch.weights_length)
        weights = stretch.weights(item).astype(x.data_type)
        if stretch.axis == x.rank - 1:
            x = context.matmul(x, context.constant(weights.T.copy()))
        elif stretch.axis == x.rank - 2:
            x = context.matmul(context.constant(weights), x)
        else:
            refuse("an axis that is resized linearly", stretch.axis, f"one of the last two of {list(x.shape)}")
    return x


def _own(stretch: ResizedAxis) -> ResizedAxis:
    """WebNN looks at sizes only."""
    return attrs.evolve(stretch, step=stretch.size / stretch.new_size)


def _resampled(
    context: ConversionContext, x: MLOperand, stretches: list[ResizedAxis], mode: InterpolationMode
) -> MLOperand:
    if not stretches:
        return x
    new_sizes = {stretch.axis: stretch.new_size for stretch in stretches}
    for axis in (3, 2):  # resample2d wants two axes
        if len(new_sizes) < 2:
            new_sizes.setdefault(axis, x.shape[axis])
    axes = sorted(new_sizes)
    return context.resample2d(x, mode=mode, sizes=[new_sizes[axis] for axis in axes], axes=axes)


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return np.array_equal(a, b)
