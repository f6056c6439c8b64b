"""Sampling a tensor at computed coordinates: of grids, and of windows with offsets."""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Final, Literal

import attrs
import numpy as np

from webnn_py.core.decompositions.common import one_of, polynomial
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.core.operators.windows import Slide
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue
from webnn_py.onnx_models.rule_helpers.axes import check_rank
from webnn_py.onnx_models.rule_helpers.windows import WindowAttributes, counts, places_of, windows
from webnn_py.onnx_models.rule_table.declaration import Integers, rule

MOST_AXES: Final = 3
"""A cubic sample is made of four elements along each."""
CUBIC: Final = -0.75
"""The slope of the cubic at 1, as PyTorch has it."""


@attrs.frozen
class _Tap:
    """One element along an axis that contributes to samples [batch, samples].

    Attributes:
        index: its index, an int32 within the axis.
        share: its weight, or None for 1.
        is_inside: whether it is inside the input, or None where it always is.
    """

    index: MLOperand
    share: MLOperand | None
    is_inside: MLOperand | None


@attrs.frozen
class _SampledAxis:
    """An axis of the tensor that is sampled."""

    context: ConversionContext
    size: int
    align_corners: bool
    padding: str

    def taps(self, normalized: MLOperand, mode: str) -> list[_Tap]:
        """Return the taps of samples at float32 places from -1 to 1."""
        place = self._place(normalized)
        return self.taps_at(self.context.round_even(place) if mode == "nearest" else place, mode)

    def taps_at(self, place: MLOperand, mode: str) -> list[_Tap]:
        """Return the taps of samples at places counted in elements."""
        context = self.context
        place = self._padded(place, mode)
        if mode == "nearest":
            return [self._tap(place, None)]
        first = context.floor(place)
        ratio = context.sub(place, first)
        linear = [context.sub(context.number(1, ratio), ratio), ratio] if mode == "linear" else None
        shares = linear or self._cubic(ratio)
        return [
            self._tap(context.add(first, context.number(index - len(shares) // 2 + 1, first)), share)
            for index, share in enumerate(shares)
        ]

    def _place(self, normalized: MLOperand) -> MLOperand:
        """Return the coordinate in elements, 0 being the middle of the first."""
        context = self.context
        length = self.size - 1 if self.align_corners else self.size
        place = context.mul(
            context.add(normalized, context.number(1, normalized)), context.number(length / 2, normalized)
        )
        return place if self.align_corners else context.sub(place, context.number(0.5, place))

    def _padded(self, place: MLOperand, mode: str) -> MLOperand:
        if self.padding == "border" and mode != "cubic":  # a cubic's taps are clamped one by one
            return self.context.clamp(place, min_value=0, max_value=self.size - 1)
        return self._reflected(place) if self.padding == "reflection" else place

    def _reflected(self, place: MLOperand) -> MLOperand:
        """Reflect a coordinate at the ends of the axis until it is inside."""
        context = self.context
        low, span = (0.0, self.size - 1) if self.align_corners else (-0.5, self.size)
        if span == 0:
            return context.mul(place, context.number(0, place))
        period, half = context.number(2 * span, place), context.number(span, place)
        beyond = context.abs(context.sub(place, context.number(low, place)))
        once = context.sub(beyond, context.mul(period, context.floor(context.div(beyond, period))))
        back = context.sub(half, context.abs(context.sub(once, half)))
        return context.add(back, context.number(low, place))

    def _tap(self, index: MLOperand, share: MLOperand | None) -> _Tap:
        context = self.context
        is_inside = None
        if self.padding == "zeros":
            above = context.greater_or_equal(index, context.number(0, index))
            is_inside = context.logical_and(above, context.lesser(index, context.number(self.size, index)))
        elif self.padding == "reflection":
            index = self._reflected(index)
        clamped = context.clamp(index, min_value=0, max_value=self.size - 1)
        return _Tap(context.cast(clamped, "int32"), share, is_inside)

    def _cubic(self, ratio: MLOperand) -> list[MLOperand]:
        """Return the weights of elements at -1, 0, 1 and 2, by polynomials of the distance."""
        context = self.context
        one, two = context.number(1, ratio), context.number(2, ratio)
        outer = (CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC)
        inner = (CUBIC + 2, -(CUBIC + 3), 0.0, 1.0)
        rest = context.sub(one, ratio)
        return [
            polynomial(context, outer, context.add(ratio, one)),
            polynomial(context, inner, ratio),
            polynomial(context, inner, rest),
            polynomial(context, outer, context.sub(two, ratio)),
        ]


@rule("GridSample", 16, 20, 22)
def grid_sample(
    context: ConversionContext,
    x: MLOperand,
    grid: MLOperand,
    *,
    align_corners: bool,
    mode: Literal["nearest", "linear", "bilinear", "cubic", "bicubic"],
    padding_mode: Literal["zeros", "border", "reflection"],
) -> MLOperand:
    """Interpolate at the points of a grid, which have a coordinate from -1 to 1 for each spatial axis."""
    spatial = x.rank - 2
    if not 1 <= spatial <= MOST_AXES:
        refuse("the rank of the input", x.rank, f"from 3 to {MOST_AXES + 2}")
    if grid.rank != x.rank or grid.shape[0] != x.shape[0] or grid.shape[-1] != spatial:
        refuse("the shape of the grid", grid.shape, f"[batch, places …, {spatial}], as the input {list(x.shape)} has")
    kind = mode.removeprefix("bi")  # as versions before 20 call them
    if kind != "nearest" and x.data_type not in ("float32", "float16"):
        refuse("the data type of the input", x.data_type, "float32 or float16 but in the mode nearest")
    batch, channels, *sizes = x.shape
    samples = math.prod(grid.shape[1:-1])
    points = context.cast(context.reshape(grid, [batch, samples, spatial]), "float32")
    taps = []
    for axis, size in enumerate(sizes):  # the last number of a point is for the first axis
        sampled = _SampledAxis(context, size, align_corners, padding_mode)
        taps.append(sampled.taps(one_of(context, points, 2, spatial - 1 - axis), kind))
    y = context.transpose(reduce(context.add, _parts(context, x, taps)), permutation=[0, 2, 1])
    return context.reshape(y, [batch, channels, *grid.shape[1:-1]])


def _parts(
    context: ConversionContext, x: MLOperand, taps: Sequence[Sequence[_Tap]], images: MLOperand | None = None
) -> list[MLOperand]:
    """Return the parts of which samples are the sum, by the taps along each axis: each is [batch, samples, channels].

    ``images`` says of which image of the input each of the batch's samples are, by default of its own.
    """
    batch, channels, *sizes = x.shape
    rows = context.transpose(context.reshape(x, [batch, channels, math.prod(sizes)]), permutation=[0, 2, 1])
    rows = context.reshape(rows, [batch * math.prod(sizes), channels])
    if images is None:
        images = context.constant(np.arange(batch, dtype=np.int32))
    starts = context.mul(images, context.number(math.prod(sizes), images))
    starts = context.reshape(starts, [starts.shape[0], 1])
    return [_gathered(context, rows, starts, sizes, chosen) for chosen in product(*taps)]


def _gathered(
    context: ConversionContext, rows: MLOperand, starts: MLOperand, sizes: Sequence[int], taps: Sequence[_Tap]
) -> MLOperand:
    """Return the contribution of one element to each sample: [batch, samples, channels]."""
    batch, samples = taps[0].index.shape
    place = starts
    for axis, tap in enumerate(taps):
        step = math.prod(sizes[axis + 1 :])
        place = context.add(place, tap.index if step == 1 else context.mul(tap.index, context.number(step, tap.index)))
    values = context.gather(rows, place, axis=0)
    shares = [tap.share for tap in taps if tap.share is not None]
    if shares:
        share = context.cast(reduce(context.mul, shares), rows.data_type)
        values = context.mul(values, context.reshape(share, [batch, samples, 1]))
    inside = [tap.is_inside for tap in taps if tap.is_inside is not None]
    if inside:
        is_inside = context.reshape(reduce(context.logical_and, inside), [batch, samples, 1])
        values = context.where(is_inside, values, context.number(0, values))
    return values


@rule("AffineGrid", 20)
def affine_grid(context: ConversionContext, theta: MLOperand, size: Integers, *, align_corners: bool) -> MLOperand:
    """Return the grid of places that an affine map gives to the elements of an image, or of a volume.

    ONNX's body would be ten times as many nodes, and give NaN along an axis of size 1 with ``align_corners``.
    """
    sizes = size[2:]
    if len(sizes) not in (2, 3) or min(sizes) < 1 or theta.shape != (size[0], len(sizes), len(sizes) + 1):
        refuse(
            "input size and the shape of theta",
            f"{list(size)} and {list(theta.shape)}",
            "[N, C, H, W] and [N, 2, 3], or [N, C, D, H, W] and [N, 3, 4]",
        )
    context.reserve(16 * (len(sizes) + 1) * math.prod(sizes))
    along = [
        np.linspace(-1, 1, length) if align_corners else (2 * np.arange(length) + 1) / length - 1 for length in sizes
    ]
    points = [axis.reshape(-1) for axis in reversed(np.meshgrid(*along, indexing="ij"))]
    places = np.stack([*points, np.ones_like(points[0])], axis=-1).astype(theta.data_type)
    grid = context.matmul(context.constant(places), context.transpose(theta, permutation=[0, 2, 1]))
    return context.reshape(grid, [size[0], *sizes, len(sizes)])


@rule("DeformConv", 19, 22)
def deformable_conv(
    context: ConversionContext,
    x: MLOperand,
    w: MLOperand,
    offset: MLOperand,
    b: MLOperand | None = None,
    mask: MLOperand | None = None,
    *,
    attributes: WindowAttributes,
    group: int,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int,
) -> MLOperand:
    """Return a convolution over images whose windows' elements are each moved by an offset, and weighted by a mask."""
    check_rank("the input", x, 4)
    slid = windows(x, w.shape[2:], attributes)
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        refuse("attribute kernel_shape", tuple(kernel_shape), f"that of input W, {list(w.shape[2:])}")
    (batch, channels, *sizes), outputs, found = x.shape, w.shape[0], counts(slid)
    if (
        min(group, offset_group, *found) < 1
        or channels % offset_group
        or channels != w.shape[1] * group
        or outputs % group
    ):
        refuse("the groups and windows", (group, offset_group, *found), f"such that they fit {list(x.shape)}")
    taps, places = math.prod(w.shape[2:]), math.prod(found)
    for name, given, parts in (("offset", offset, 2 * taps), ("mask", mask, taps)):
        if given is not None and given.shape != (batch, offset_group * parts, *found):
            refuse(f"the shape of input {name}", given.shape, f"{[batch, offset_group * parts, *found]}")
    count = batch * offset_group
    moved = context.reshape(context.cast(offset, "float32"), [count, taps, 2, places])
    context.reserve(16 * taps * places)
    along = []
    for axis in range(2):
        own = context.reshape(context.slice(moved, [0, 0, axis, 0], [count, taps, 1, places]), [count, taps * places])
        sampled = _SampledAxis(context, sizes[axis], align_corners=True, padding="zeros")
        place = context.add(own, context.constant(_window_places(slid, axis).reshape(1, taps * places)))
        along.append(sampled.taps_at(place, "linear"))
    images = context.reshape(x, [count, channels // offset_group, *sizes])
    taken = reduce(context.add, _parts(context, images, along))
    if mask is not None:
        taken = context.mul(taken, context.reshape(mask, [count, taps * places, 1]))
    columns = context.transpose(
        context.reshape(taken, [count, taps, places, channels // offset_group]), permutation=[0, 3, 1, 2]
    )
    columns = context.reshape(columns, [batch, group, w.shape[1] * taps, places])
    y = context.matmul(context.reshape(w, [group, outputs // group, w.shape[1] * taps]), columns)
    y = context.reshape(y, [batch, outputs, *found])
    return y if b is None else context.add(y, context.reshape(b, [outputs, 1, 1]))


def _window_places(slid: Sequence[Slide], axis: int) -> StaticValue:
    """Return the places of elements along an axis: [kernel height, kernel width, windows down, windows across]."""
    found = counts(slid)
    places = places_of(slid[axis], found[axis]).T
    spread = places[:, np.newaxis, :, np.newaxis] if axis == 0 else places[np.newaxis, :, np.newaxis, :]
    return np.broadcast_to(spread, [*(item.window for item in slid), *found]).astype(np.float32)


@rule("RoiAlign", 10, 16, 22)
def align_regions(
    context: ConversionContext,
    x: MLOperand,
    rois: MLOperand,
    batch_indices: MLOperand,
    *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "output_half_pixel",
    mode: Literal["avg", "max"],
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> MLOperand:
    """Return images of one size, of regions [left, top, right, bottom]: each element pools the samples in its bin."""
    count = rois.shape[0] if rois.rank else 0
    if x.rank != 4 or rois.shape != (count, 4) or batch_indices.shape != (count,):
        refuse(
            "the shapes of the inputs",
            f"{list(x.shape)}, {list(rois.shape)} and {list(batch_indices.shape)}",
            "[N, C, H, W], [regions, 4] and [regions]",
        )
    if min(sampling_ratio, output_height, output_width) < 1:
        given = [sampling_ratio, output_height, output_width]
        refuse("the sampling ratio and the sizes", given, "at least 1; a ratio of 0 would depend on the regions")
    samples = [output_height * sampling_ratio, output_width * sampling_ratio]
    context.reserve(8 * sum(samples))
    regions = context.cast(rois, "float32")
    regions = context.mul(regions, context.number(spatial_scale, regions))
    taps = []
    for axis, size in enumerate(x.shape[2:]):
        place = _places_in_regions(
            context, regions, axis, samples, shifted=coordinate_transformation_mode == "half_pixel"
        )
        is_before = context.lesser(place, context.number(-1, place))
        is_behind = context.greater(place, context.number(size, place))
        is_inside = context.logical_not(context.logical_or(is_before, is_behind))
        sampled = _SampledAxis(context, size, align_corners=True, padding="border")
        clamped = context.clamp(place, min_value=0, max_value=size - 1)
        taps.append([attrs.evolve(tap, is_inside=is_inside) for tap in sampled.taps_at(clamped, "linear")])
    parts = _parts(context, x, taps, context.cast(batch_indices, "int32"))
    whole = reduce(context.add if mode == "avg" else context.max, parts)
    apart = context.reshape(whole, [count, output_height, sampling_ratio, output_width, sampling_ratio, x.shape[1]])
    reduced = context.reduce_mean if mode == "avg" else context.reduce_max
    return context.transpose(reduced(apart, axes=[2, 4]), permutation=[0, 3, 1, 2])


def _places_in_regions(
    context: ConversionContext, regions: MLOperand, axis: int, samples: Sequence[int], *, shifted: bool
) -> MLOperand:
    """Return the places of each region's samples [down, across] along an axis: [regions, samples]."""
    count = regions.shape[0]
    first, last = (context.slice(regions, [0, column], [count, 1]) for column in (1 - axis, 3 - axis))
    if shifted:
        first, last = (context.sub(end, context.number(0.5, end)) for end in (first, last))
    length = context.sub(last, first)
    if not shifted:
        length = context.max(length, context.number(1, length))
    middles = ((np.arange(samples[axis]) + 0.5) / samples[axis]).astype(np.float32)
    places = context.add(first, context.mul(length, context.constant(middles)))
    spread = [count, *(size if index == axis else 1 for index, size in enumerate(samples))]
    everywhere = context.expand(context.reshape(places, spread), [count, *samples])
    return context.reshape(everywhere, [count, math.prod(samples)])
