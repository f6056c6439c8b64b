"""Resizing. WebNN has one rule of coordinates, half_pixel, along two axes of four; others are composed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.resampling import InterpolationMode
from webnn_py.core.operators.rules import check_length, check_positive, refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rule_helpers.axes import counted_all, numbers
from webnn_py.onnx_models.rule_table.declaration import Integers, Numbers, rule

PlainMode = Literal["nearest", "linear"]
Mode = Literal["nearest", "linear", "cubic"]
Policy = Literal["stretch", "not_larger", "not_smaller"]

Coordinates = NDArray[np.float64]

LARGEST_SCALE = 2**31
"""Longer than any axis."""

BYTES_AN_ELEMENT = 128
"""The bytes that computing the coordinates of one new element takes."""


@attrs.frozen(kw_only=True)
class Manner:
    """Options of resizing that hold for all axes.

    Attributes:
        mode: how elements between the old ones are computed.
        transformation: where new elements lie among the old ones.
        rounding: which of two elements is the nearest.
        slope: of the cubic at 1.
        antialias: whether interpolation reaches farther where an axis shrinks.
        exclude_outside: whether elements beyond the ends count nothing, instead of being those at the ends.
        outside: the value of an element beyond the region, when ``transformation`` is tf_crop_and_resize.
    """

    mode: Mode
    transformation: str
    rounding: str
    slope: float = 0.0
    antialias: bool = False
    exclude_outside: bool = False
    outside: float = 0.0

    @property
    def reach(self) -> int:
        """The distance from which on an old element has no share in a new one."""
        return 1 if self.mode == "linear" else 2

    def shares(self, distances: Coordinates) -> Coordinates:
        """Return the shares of old elements in new ones, by their distances."""
        x, a = np.abs(distances), self.slope
        if self.mode == "linear":
            shares: Coordinates = np.maximum(0, 1 - x)
            return shares
        outer = np.where(x < self.reach, ((x - 5) * x + 8) * x * a - 4 * a, 0)
        return np.where(x <= 1, ((a + 2) * x - (a + 3)) * x * x + 1, outer)


@attrs.frozen
class ResizedAxis:
    """The resizing of one axis.

    Attributes:
        axis: the axis.
        size: its length.
        new_size: its new length.
        step: from one new element to the next, in old ones: size / new_size unless the new size was rounded.
        region: what is taken of the axis, from 0 to 1; only tf_crop_and_resize looks at it.
    """

    axis: int
    size: int
    new_size: int
    step: float
    region: tuple[float, float] = (0.0, 1.0)

    def old(self, places: Coordinates) -> Coordinates:
        """Return new places in the old coordinates; with integer arithmetic where possible, so that ties are exact."""
        exact = math.isclose(self.step * self.new_size, self.size, rel_tol=1e-6)
        return places * self.size / self.new_size if exact else places * self.step

    def coordinates(self, transformation: str) -> Coordinates:
        """Return the coordinate of each new element among the old ones."""
        places = np.arange(self.new_size, dtype=np.float64)
        centres = self.old(places + 0.5)
        rounding = self.new_size * self.step / self.size  # 1 unless the new size was rounded
        coordinates: dict[str, Coordinates] = {
            "align_corners": places * (self.size - 1) / max(1, self.new_size - 1),
            "asymmetric": self.old(places),
            "half_pixel": centres - 0.5,
            "half_pixel_symmetric": self.size / 2 * (1 - rounding) + centres - 0.5,
            "pytorch_half_pixel": centres - 0.5 if self.new_size > 1 else np.zeros(1),
            "tf_crop_and_resize": self._in_region(places),
            "tf_half_pixel_for_nn": centres,
        }
        if transformation not in coordinates:
            refuse("attribute coordinate_transformation_mode", transformation, ", ".join(coordinates))
        return coordinates[transformation]

    def _in_region(self, places: Coordinates) -> Coordinates:
        """Return coordinates from one end of the region to the other; of a single element, its middle."""
        begin, end = self.region
        if self.new_size == 1:
            return np.array([(begin + end) / 2 * (self.size - 1)])
        return (begin + places * (end - begin) / (self.new_size - 1)) * (self.size - 1)

    def nearest(self, coordinates: Coordinates, rounding: str) -> NDArray[np.int64]:
        """Return the old element that is nearest to each coordinate."""
        rounded = {
            "ceil": np.ceil(coordinates),
            "floor": np.floor(coordinates),
            "round_prefer_ceil": np.floor(coordinates + 0.5),
            "round_prefer_floor": np.ceil(coordinates - 0.5),
        }
        if rounding not in rounded:
            refuse("attribute nearest_mode", rounding, ", ".join(rounded))
        return np.clip(rounded[rounding], 0, self.size - 1).astype(np.int64)

    def weights_length(self, manner: Manner) -> int:
        """Return the bytes that computing the weights takes."""
        taps = 2 * manner.reach * (1 + max(1, self.step if manner.antialias else 1))
        return math.ceil(self.new_size * (self.size + 8 * taps) * np.dtype(np.float64).itemsize)

    def weights(self, coordinates: Coordinates, manner: Manner) -> NDArray[np.float64]:
        """Return the share of each old element in each new one, [new_size, size]; beyond the ends, these repeat."""
        scale = min(1.0, 1 / self.step) if manner.antialias else 1.0
        reach = math.ceil(manner.reach / scale)
        taps = np.floor(coordinates)[:, np.newaxis] + np.arange(1 - reach, 1 + reach)
        shares = manner.shares((taps - coordinates[:, np.newaxis]) * scale)
        if manner.exclude_outside:
            shares = np.where((taps >= 0) & (taps < self.size), shares, 0)
        if manner.exclude_outside or manner.antialias:
            total = shares.sum(axis=1, keepdims=True)
            shares = shares / np.where(total == 0, 1, total)
        weights: Coordinates = np.zeros([self.new_size, self.size])
        places = np.clip(taps, 0, self.size - 1).astype(np.int64)
        np.add.at(weights, (np.arange(self.new_size)[:, np.newaxis], places), shares)
        return weights


@rule("Upsample", 7, 9)
def upsample(context: ConversionContext, x: MLOperand, scales: Numbers, *, mode: PlainMode) -> MLOperand:
    """Enlarge; coordinates are not shifted."""
    if min(scales, default=1) < 1:
        refuse("scales", scales, "at least 1 in this version of the operator")
    return resize_unshifted(context, x, scales, mode=mode)


@rule("Resize", 10)
def resize_unshifted(context: ConversionContext, x: MLOperand, scales: Numbers, *, mode: PlainMode) -> MLOperand:
    """Enlarge or shrink; coordinates are not shifted.

    Of two elements onnxruntime takes the first along an axis that grows, and the second along one that shrinks.
    """
    stretches = _by_scales(x, range(x.rank), scales)
    for rounding, shrinks in (("floor", False), ("ceil", True)):
        chosen = [item for item in stretches if (item.step > 1) is shrinks]
        if chosen:
            manner = Manner(mode=mode, transformation="asymmetric", rounding=rounding)
            x = _resized(context, x, chosen, manner)
    return x


@rule("Resize", 11, 13, 18, 19)
def resize(
    context: ConversionContext,
    x: MLOperand,
    roi: Value | None = None,
    scales: Numbers | None = None,
    sizes: Integers | None = None,
    *,
    antialias: bool = False,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str,
    cubic_coeff_a: float,
    exclude_outside: bool,
    extrapolation_value: float,
    keep_aspect_ratio_policy: Policy = "stretch",
    mode: Mode,
    nearest_mode: str,
) -> MLOperand:
    """Enlarge or shrink."""
    chosen = range(x.rank) if axes is None else counted_all(axes, x.rank)
    if scales:
        stretches = _by_scales(x, chosen, scales)
    elif sizes:
        stretches = _by_sizes(x, chosen, sizes, keep_aspect_ratio_policy)
    else:
        refuse("scales and sizes", "absent", "given, one of them")
    if coordinate_transformation_mode == "tf_crop_and_resize":
        stretches = _of_region(stretches, roi)
    manner = Manner(
        mode=mode,
        transformation=coordinate_transformation_mode,
        rounding=nearest_mode,
        slope=cubic_coeff_a,
        antialias=antialias,
        exclude_outside=exclude_outside,
        outside=extrapolation_value,
    )
    return _resized(context, x, stretches, manner)


def _of_region(stretches: Sequence[ResizedAxis], roi: Value | None) -> list[ResizedAxis]:
    if not isinstance(roi, np.ndarray):
        refuse("input roi", "absent, or computed when the graph runs", "known while building")
    region = numbers("input roi", roi)
    check_length("input roi", region, 2 * len(stretches))
    if not all(math.isfinite(value) for value in region):
        refuse("input roi", region, "finite")
    pairs = zip(region[: len(stretches)], region[len(stretches) :], strict=True)
    return [attrs.evolve(stretch, region=pair) for stretch, pair in zip(stretches, pairs, strict=True)]


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


def _by_sizes(x: MLOperand, axes: Sequence[int], sizes: Sequence[int], policy: Policy) -> list[ResizedAxis]:
    check_length("sizes", sizes, len(axes))
    if min(sizes, default=1) < 1:
        refuse("sizes", tuple(sizes), "at least 1 everywhere")
    if policy == "stretch":
        return [
            ResizedAxis(axis, x.shape[axis], size, x.shape[axis] / size) for axis, size in zip(axes, sizes, strict=True)
        ]
    ratios = [size / x.shape[axis] for axis, size in zip(axes, sizes, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [
        ResizedAxis(axis, x.shape[axis], max(1, math.floor(scale * x.shape[axis] + 0.5)), 1 / scale) for axis in axes
    ]


def _resized(context: ConversionContext, x: MLOperand, stretches: Sequence[ResizedAxis], manner: Manner) -> MLOperand:
    context.reserve(BYTES_AN_ELEMENT * sum(stretch.new_size for stretch in stretches))
    if manner.mode == "nearest":
        y = _nearest(context, x, stretches, manner)
    elif x.data_type not in ("float32", "float16"):
        refuse("the data type of the input", x.data_type, f"float32 or float16 in the mode {manner.mode}")
    else:
        y = _interpolated(context, x, stretches, manner)
    return _with_outside(context, y, stretches, manner) if manner.transformation == "tf_crop_and_resize" else y


def _nearest(context: ConversionContext, x: MLOperand, stretches: Sequence[ResizedAxis], manner: Manner) -> MLOperand:
    """Pick elements: by resample2d where it would pick the same ones, otherwise axis by axis."""
    picked = [(item, item.nearest(item.coordinates(manner.transformation), manner.rounding)) for item in stretches]
    changed = [(item, indices) for item, indices in picked if not np.array_equal(indices, np.arange(item.size))]
    webnn = [
        (item, _own(item).nearest(_own(item).coordinates("half_pixel"), "round_prefer_floor")) for item, _ in changed
    ]
    if _is_resample(x, changed, webnn):
        return _resampled(context, x, [item for item, _ in changed], "nearest-neighbor")
    for item, indices in changed:
        x = context.gather(x, context.constant(indices.astype(np.int32)), axis=item.axis)
    return x


def _interpolated(
    context: ConversionContext, x: MLOperand, stretches: Sequence[ResizedAxis], manner: Manner
) -> MLOperand:
    """Interpolate: by resample2d where that does the same, otherwise by matrices, axis by axis."""
    places = [(item, item.coordinates(manner.transformation)) for item in stretches]
    changed = [(item, own) for item, own in places if not np.array_equal(own, np.arange(item.size))]
    widened = manner.antialias and any(item.step > 1 for item, _ in changed)
    webnn = [(item, _own(item).coordinates("half_pixel")) for item, _ in changed]
    if manner.mode == "linear" and not widened and not manner.exclude_outside and _is_resample(x, changed, webnn):
        return _resampled(context, x, [item for item, _ in changed], "linear")
    for item, own in changed:
        context.reserve(item.weights_length(manner))
        x = _mixed(context, x, item.axis, item.weights(own, manner).astype(x.data_type))
    return x


AxisPlaces = Sequence[tuple[ResizedAxis, NDArray[Any]]]


def _is_resample(x: MLOperand, changed: AxisPlaces, webnn: AxisPlaces) -> bool:
    """Return whether resample2d takes the same places as a node, along the axes that change."""
    same = all(np.array_equal(own, its) for (_, own), (_, its) in zip(changed, webnn, strict=True))
    return same and x.rank == 4 and len(changed) <= 2


def _mixed(context: ConversionContext, x: MLOperand, axis: int, weights: StaticValue) -> MLOperand:
    """Return a product with a matrix [new, old] along an axis."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if not after:
        return context.matmul(x, context.constant(weights.T.copy()))
    matrices = context.reshape(x, [math.prod(before), x.shape[axis], math.prod(after)])
    return context.reshape(context.matmul(context.constant(weights), matrices), [*before, len(weights), *after])


def _with_outside(
    context: ConversionContext, y: MLOperand, stretches: Sequence[ResizedAxis], manner: Manner
) -> MLOperand:
    """Replace elements whose coordinate is outside the input by a number."""
    for stretch in stretches:
        places = stretch.coordinates(manner.transformation)
        outside = (places < 0) | (places > stretch.size - 1)
        if outside.any():
            mask = outside.reshape([-1 if axis == stretch.axis else 1 for axis in range(y.rank)])
            y = context.where(context.constant(mask), context.number(manner.outside, y), y)
    return y


def _own(stretch: ResizedAxis) -> ResizedAxis:
    """Return the axis as WebNN resizes it: by its sizes only."""
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
