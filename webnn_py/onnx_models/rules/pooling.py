"""Pooling over one to three axes, and over all of them."""

import math
from collections.abc import Sequence

import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.core.operators.windows import Slide
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.reading.element_types import extreme
from webnn_py.onnx_models.rule_helpers.windows import (
    MAX_SPATIAL_AXES,
    PoolingAttributes,
    WindowAttributes,
    as_images,
    counts,
    like,
    over_padded,
    places_of,
    rounded_up,
    sliding,
    window,
    windows,
)
from webnn_py.onnx_models.rule_table.declaration import Integers, rule


@rule("MaxPool", 1, 8, 10, 11, 12, 22)
def max_pool(
    context: ConversionContext,
    x: MLOperand,
    *,
    attributes: PoolingAttributes,
    ceil_mode: bool = False,
    kernel_shape: Sequence[int],
    storage_order: bool = False,
) -> list[MLOperand]:
    """Return the greatest of each window's elements, and their places in the flat input.

    With ``storage_order`` 1 the places within an image are counted along its first axis first.
    """
    slid = windows(x, kernel_shape, attributes, attributes.auto_pad)
    slid = rounded_up(slid) if ceil_mode else slid
    y = _pooled(context, "max", x, slid)
    if context.wanted[1:] != (True,):
        return [y]
    return [y, context.reshape(_places_of_greatest(context, x, slid, by_columns=storage_order), y.shape)]


def _places_of_greatest(
    context: ConversionContext, x: MLOperand, slid: Sequence[Slide], *, by_columns: bool
) -> MLOperand:
    """Return the places [batch · channels, windows] of the greatest of each window's elements, which are gathered."""
    images, sizes, found = math.prod(x.shape[:2]), x.shape[2:], counts(slid)
    size = math.prod(sizes)
    if min(found) < 1:
        refuse("the windows", tuple([item.reach for item in slid]), f"within the padded input {list(x.shape)}")
    count, elements = math.prod(found), math.prod([item.window for item in slid])
    context.reserve(48 * count * elements + 8 * images)
    rank = len(found)
    places, own = np.zeros([1] * 2 * rank, np.int64), np.zeros([1] * 2 * rank, np.int64)
    is_there = np.ones([1] * 2 * rank, np.bool_)
    for axis, item in enumerate(slid):
        along = places_of(item, found[axis])
        spread = [1] * 2 * rank
        spread[axis], spread[rank + axis] = along.shape
        along = along.reshape(spread)
        is_there = is_there & (along >= 0) & (along < sizes[axis])
        along = np.clip(along, 0, sizes[axis] - 1)
        places = places + along * math.prod(sizes[axis + 1 :])
        own = own + along * math.prod(sizes[:axis] if by_columns else sizes[axis + 1 :])
    taken = context.gather(
        context.reshape(x, [images, size]), context.constant(places.reshape(count, elements).astype(np.int32)), axis=1
    )
    if not is_there.all():
        lowest = context.number(extreme(x.data_type, lowest=True), x)
        taken = context.where(context.constant(is_there.reshape(count, elements)), taken, lowest)
    which = context.arg_max(taken, 2, output_data_type="int64")
    firsts = context.constant(np.arange(count, dtype=np.int64) * elements)
    within = context.gather(context.constant(own.reshape(-1)), context.add(which, firsts), axis=0)
    return context.add(within, context.constant(np.arange(images, dtype=np.int64).reshape(images, 1) * size))


@rule("MaxUnpool", 9, 11, 22)
def max_unpool(
    context: ConversionContext,
    x: MLOperand,
    i: MLOperand,
    output_shape: Integers | None = None,
    *,
    attributes: WindowAttributes,
    kernel_shape: Sequence[int],
) -> MLOperand:
    """Put elements back where the second output of MaxPool says, among zeros."""
    slid = windows(x, kernel_shape, attributes)
    if i.shape != x.shape:
        refuse("the shape of input I", i.shape, f"{list(x.shape)}, that of input X")
    sizes = [item.transposed_size for item in slid]
    shape = [*x.shape[:2], *sizes]
    wanted = tuple(shape) if output_shape is None else output_shape
    missing = [most - size for size, most in zip(shape, wanted, strict=False)]
    if min(sizes) < 1 or len(wanted) != len(shape) or min(missing) < 0:
        refuse("the shape of the output", wanted, f"at least {shape}, and positive")
    count = math.prod(x.shape)
    zeros = context.expand(context.number(0, x), [math.prod(shape)])
    y = context.scatter_elements(zeros, context.reshape(i, [count]), context.reshape(x, [count]))
    y = context.reshape(y, shape)
    return context.pad(y, [0] * x.rank, missing) if any(missing) else y


@rule("AveragePool", 1, 7, 10, 11, 19, 22)
def average_pool(
    context: ConversionContext,
    x: MLOperand,
    *,
    attributes: PoolingAttributes,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    kernel_shape: Sequence[int],
) -> MLOperand:
    """Return the mean of each window's elements; WebNN never counts padding, so what counts becomes elements."""
    slid = windows(x, kernel_shape, attributes, attributes.auto_pad)
    rounded = rounded_up(slid) if ceil_mode else slid
    if not count_include_pad or not any(item.begin or item.end for item in slid):
        return _pooled(context, "average", x, rounded)
    return _pooled(context, "average", _padded(context, x, slid), over_padded(rounded, slid))


@rule("LpPool", 2, 11, 18, 22)
def lp_pool(
    context: ConversionContext,
    x: MLOperand,
    *,
    attributes: PoolingAttributes,
    ceil_mode: bool = False,
    kernel_shape: Sequence[int],
    p: int,
) -> MLOperand:
    """Return the norm of each window's elements: the root of the sum of powers, which for 2 WebNN has itself."""
    if p < 1:
        refuse("attribute p", p, "at least 1")
    slid = windows(x, kernel_shape, attributes, attributes.auto_pad)
    slid = rounded_up(slid) if ceil_mode else slid
    if p == 2:
        return _pooled(context, "l2", x, slid)
    powers = context.abs(x) if p == 1 else context.pow(context.abs(x), context.number(p, x))
    means = _pooled(context, "average", _padded(context, powers, slid), over_padded(slid, slid))
    sums = context.mul(means, context.number(math.prod([item.window for item in slid]), means))
    return sums if p == 1 else context.pow(sums, context.number(1 / p, sums))


def _padded(context: ConversionContext, x: MLOperand, slid: Sequence[Slide]) -> MLOperand:
    return context.pad(x, [0, 0, *(item.begin for item in slid)], [0, 0, *(item.end for item in slid)])


def _pooled(context: ConversionContext, kind: str, x: MLOperand, slid: Sequence[Slide]) -> MLOperand:
    """Pool over the last two axes, then over the one before: of boxes, that is the same as at once."""
    pool = {"average": context.average_pool2d, "l2": context.l2_pool2d, "max": context.max_pool2d}[kind]
    if len(slid) > MAX_SPATIAL_AXES:
        depth, images = slid[0], slid[1:]
        slices = context.reshape(x, [x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]])
        rows = context.reshape(_pooled(context, kind, slices, images), [*x.shape[:3], math.prod(counts(images))])
        across = Slide(rows.shape[3], 1, 0, 0, 1, 1)
        y = pool(rows, window_dimensions=window([depth, across]), **sliding([depth, across]))
        return context.reshape(y, [*y.shape[:3], *counts(images)])
    return like(context, pool(as_images(context, x), window_dimensions=window(slid), **sliding(slid)), x)


@rule("GlobalAveragePool", 1, 22)
def global_average_pool(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the mean over all spatial axes, however many."""
    return context.reduce_mean(x, axes=range(2, x.rank), keep_dimensions=True)


@rule("GlobalMaxPool", 1, 22)
def global_max_pool(context: ConversionContext, x: MLOperand) -> MLOperand:
    """Return the greatest over all spatial axes, however many."""
    return context.reduce_max(x, axes=range(2, x.rank), keep_dimensions=True)


@rule("GlobalLpPool", 2, 22)
def global_lp_pool(context: ConversionContext, x: MLOperand, *, p: int) -> MLOperand:
    """Return the norm over all spatial axes: the root of the sum of powers."""
    if p < 1:
        refuse("attribute p", p, "at least 1")
    axes = range(2, x.rank)
    if p <= 2:
        return (context.reduce_l1 if p == 1 else context.reduce_l2)(x, axes=axes, keep_dimensions=True)
    powers = context.pow(context.abs(x), context.number(p, x))
    return context.pow(context.reduce_sum(powers, axes=axes, keep_dimensions=True), context.number(1 / p, x))
