"""Gathering and scattering. ONNX forbids indices out of range, which WebNN clamps."""

import math
from typing import Final, Literal

import numpy as np

from webnn_py.core.decompositions.indexing import counted_from_start
from webnn_py.core.operators import indexing
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue
from webnn_py.onnx_models.reading.element_types import extreme
from webnn_py.onnx_models.rule_helpers.axes import counted, whole
from webnn_py.onnx_models.rule_table.declaration import one_to_one, rule

Reduction = Literal["none", "add", "mul", "max", "min"]
"""The operation of scattered elements on the elements that are there."""

MOST_COMPARISONS: Final = 2**24
"""Of a place with an update's, for each element of a slice."""


@rule("Gather", 1, 11, 13)
def gather(context: ConversionContext, data: MLOperand, indices: MLOperand, *, axis: int) -> MLOperand:
    """Take slices of the input, across an axis, where the indices say."""
    return context.gather(data, indices, axis=counted(axis, data.rank))


@rule("Compress", 9, 11, 28)
def compress(context: ConversionContext, x: MLOperand, condition: StaticValue, *, axis: int | None = None) -> MLOperand:
    """Select slices across an axis, or without an axis elements, by a list of booleans."""
    if axis is None:
        x, axis = context.reshape(x, [math.prod(x.shape)]), 0
    axis = counted(axis, x.rank)
    if condition.ndim != 1 or condition.size > x.shape[axis]:
        refuse("the shape of input condition", condition.shape, f"that of a list of at most {x.shape[axis]}")
    places = np.flatnonzero(condition)
    if not places.size:
        refuse("input condition", "false everywhere", "true somewhere: WebNN has no tensors without elements")
    return context.gather(x, context.constant(places.astype(np.int32)), axis=axis)


@rule("GatherElements", 11, 13)
def gather_elements(context: ConversionContext, data: MLOperand, indices: MLOperand, *, axis: int) -> MLOperand:
    """Gather single elements; along the other axes, elements beyond the indices' size are ignored."""
    axis = counted(axis, data.rank)
    if indices.rank == data.rank:
        data = _reached(context, data, indices, axis)
    return context.gather_elements(data, indices, axis=axis)


def _reached(context: ConversionContext, data: MLOperand, indices: MLOperand, axis: int) -> MLOperand:
    """Return the part of a tensor that indices along an axis reach: along the others, it ends where they do."""
    sizes = [*map(min, indices.shape, data.shape)]
    sizes[axis] = data.shape[axis]
    return data if tuple(sizes) == data.shape else context.slice(data, [0] * data.rank, sizes)


@rule("GatherND", 11, 12, 13)
def gather_nd(context: ConversionContext, data: MLOperand, indices: MLOperand, *, batch_dims: int = 0) -> MLOperand:
    """Gather slices at coordinates; along the first ``batch_dims`` axes, these are the index's own position."""
    if not batch_dims:
        return context.gather_nd(data, indices)
    if not 0 < batch_dims < min(data.rank, indices.rank):
        refuse("attribute batch_dims", batch_dims, f"less than the ranks, {data.rank} and {indices.rank}")
    if data.shape[:batch_dims] != indices.shape[:batch_dims]:
        refuse("the first dimensions of the indices", indices.shape, f"those of the input {list(data.shape)}")
    batch, places = indices.shape[:batch_dims], indices.shape[:-1]
    context.reserve(8 * batch_dims * math.prod(places))
    own = np.moveaxis(np.indices(batch), 0, -1).reshape(*batch, *[1] * (len(places) - batch_dims), batch_dims)
    own = np.broadcast_to(own, (*places, batch_dims)).astype(indices.data_type)
    return context.gather_nd(data, context.concat([context.constant(own), indices], indices.rank - 1))


@rule("OneHot", 9, 11, 28)
def one_hot(
    context: ConversionContext, indices: MLOperand, depth: StaticValue, values: MLOperand, *, axis: int
) -> MLOperand:
    """Return values[1] where the place along a new axis is the index, else values[0]."""
    length = whole("input depth", depth)
    if length < 1 or values.shape != (2,):
        refuse("input depth and the shape of the values", f"{length} and {list(values.shape)}", "at least 1, and [2]")
    axis = counted(axis, indices.rank + 1)
    if indices.data_type != "int64":
        indices = context.cast(indices, "int64")
    alone = context.reshape(indices, [*indices.shape[:axis], 1, *indices.shape[axis:]])
    context.reserve(8 * length)
    places = np.arange(length, dtype=np.int64).reshape([-1] + [1] * (alone.rank - 1 - axis))
    counted_back = context.constant(places - length)
    is_hot = context.logical_or(context.equal(alone, context.constant(places)), context.equal(alone, counted_back))
    off, on = context.split(values, 2, axis=0)
    return context.where(is_hot, on, off)


@rule("Scatter", 9)
@rule("ScatterElements", 11, 13)
def scatter_elements(
    context: ConversionContext, data: MLOperand, indices: MLOperand, updates: MLOperand, *, axis: int
) -> MLOperand:
    """Scatter single elements; along the other axes, elements beyond the indices' size stay."""
    axis = counted(axis, data.rank)
    if indices.rank != data.rank:
        return context.scatter_elements(data, indices, updates, axis=axis)
    reached = _reached(context, data, indices, axis)
    sizes, result = reached.shape, context.scatter_elements(reached, indices, updates, axis=axis)
    for index, size in enumerate(sizes):
        if size < data.shape[index]:
            starts = [size if other == index else 0 for other in range(data.rank)]
            rest = [*result.shape[:index], data.shape[index] - size, *result.shape[index + 1 :]]
            result = context.concat([result, context.slice(data, starts, rest)], index)
    return result


@rule("ScatterElements", 16, 18)
def scatter_reduced_elements(
    context: ConversionContext,
    data: MLOperand,
    indices: MLOperand,
    updates: MLOperand,
    *,
    axis: int,
    reduction: Reduction,
) -> MLOperand:
    """Put single elements where the indices say, or reduce what is there with them."""
    if reduction == "none":
        return scatter_elements(context, data, indices, updates, axis=axis)
    axis = counted(axis, data.rank)
    if indices.shape != updates.shape or indices.rank != data.rank:
        refuse("the shape of the updates", updates.shape, f"that of the indices {list(indices.shape)}")
    others = [other for other in range(data.rank) if other != axis]
    if all(indices.shape[other] == data.shape[other] for other in others):
        return _scattered_along(context, data, indices, updates, axis, reduction)
    context.reserve(8 * math.prod(indices.shape))
    steps = [math.prod(data.shape[other + 1 :]) for other in range(data.rank)]
    apart = np.zeros(indices.shape, np.int64)
    for other, along in enumerate(np.indices(indices.shape, sparse=True)):
        if other != axis:
            apart += along * steps[other]
    place = context.add(
        context.mul(counted_from_start(context, indices, data.shape[axis]), context.number(steps[axis], indices)),
        context.constant(apart.astype(indices.data_type)),
    )
    flat, count = math.prod(data.shape), math.prod(indices.shape)
    result = _scattered(
        context,
        context.reshape(data, [flat, 1]),
        context.reshape(place, [count]),
        context.reshape(updates, [count, 1]),
        reduction,
    )
    return context.reshape(result, data.shape)


def _scattered_along(
    context: ConversionContext, data: MLOperand, indices: MLOperand, updates: MLOperand, axis: int, reduction: str
) -> MLOperand:
    """Scatter each column by itself, where the indices have the input's size along all other axes."""
    order = [axis, *(other for other in range(data.rank) if other != axis)]
    size, count, rest = data.shape[axis], indices.shape[axis], [data.shape[other] for other in order[1:]]
    width = math.prod(rest)
    columns, places, added = (
        context.reshape(context.transpose(item, permutation=order), [item.shape[axis], width])
        for item in (data, counted_from_start(context, indices, size), updates)
    )
    _check_comparisons(size * count * width)
    context.reserve(8 * size)
    own = context.constant(np.arange(size).reshape(size, 1, 1).astype(places.data_type))
    is_there = context.equal(own, context.reshape(places, [1, count, width]))
    result = context.reshape(_reduced(context, columns, is_there, added, reduction), [size, *rest])
    return context.transpose(result, permutation=np.argsort(order).tolist())


one_to_one("ScatterND", indexing.scatter_nd, 11, 13)


@rule("ReverseSequence", 10, 28)
def reverse_sequence(
    context: ConversionContext, input: MLOperand, sequence_lens: MLOperand, *, batch_axis: int, time_axis: int
) -> MLOperand:
    """Reverse the first steps of each sequence, as many as it is long: a gathering of (sequence, step) pairs."""
    if {batch_axis, time_axis} != {0, 1} or input.rank < 2:
        refuse("batch_axis and time_axis", (batch_axis, time_axis), f"0 and 1, for an input of rank {input.rank}, >= 2")
    batch, steps = input.shape[batch_axis], input.shape[time_axis]
    if sequence_lens.shape != (batch,):
        refuse("the shape of input sequence_lens", sequence_lens.shape, f"[{batch}], one for each sequence")
    along_batch, along_time = ([batch, 1], [1, steps]) if batch_axis == 0 else ([1, batch], [steps, 1])
    context.reserve(4 * (batch + steps))
    lengths = context.reshape(context.cast(sequence_lens, "int32"), along_batch)
    step = context.constant(np.arange(steps, dtype=np.int32).reshape(along_time))
    one = context.number(1, step)
    is_reversed = context.lesser(step, lengths)
    source = context.where(is_reversed, context.sub(context.sub(lengths, one), step), step)
    sequence = context.expand(context.constant(np.arange(batch, dtype=np.int32).reshape(along_batch)), source.shape)
    pairs = (sequence, source) if batch_axis == 0 else (source, sequence)
    return context.gather_nd(input, context.concat([context.reshape(item, [*item.shape, 1]) for item in pairs], 2))


@rule("ScatterND", 16, 18)
def scatter_reduced_slices(
    context: ConversionContext, data: MLOperand, indices: MLOperand, updates: MLOperand, *, reduction: Reduction
) -> MLOperand:
    """Put slices where coordinates say, or reduce what is there with them."""
    if reduction == "none":
        return context.scatter_nd(data, indices, updates)
    *places, depth = indices.shape or (0,)
    if not 0 < depth <= data.rank or updates.shape != (*places, *data.shape[depth:]):
        refuse(
            "the shape of the updates", updates.shape, f"as indices {list(indices.shape)} into {list(data.shape)} ask"
        )
    count, rows, width = math.prod(places), math.prod(data.shape[:depth]), math.prod(data.shape[depth:])
    place = context.number(0, indices)
    coordinates = context.reshape(indices, [count, depth])
    for axis in range(depth):
        along = context.reshape(context.slice(coordinates, [0, axis], [count, 1]), [count])
        step = context.number(math.prod(data.shape[axis + 1 : depth]), indices)
        place = context.add(place, context.mul(counted_from_start(context, along, data.shape[axis]), step))
    result = _scattered(
        context, context.reshape(data, [rows, width]), place, context.reshape(updates, [count, width]), reduction
    )
    return context.reshape(result, data.shape)


def _scattered(
    context: ConversionContext, data: MLOperand, places: MLOperand, updates: MLOperand, reduction: str
) -> MLOperand:
    """Reduce each of the rows [rows, width] with the updates [count, width] at its place, by comparing all places."""
    (rows, width), (count,) = data.shape, places.shape
    _check_comparisons(rows * count * width)
    context.reserve(8 * rows)
    own = context.constant(np.arange(rows).reshape(rows, 1).astype(places.data_type))
    is_there = context.equal(own, context.reshape(places, [1, count]))
    if reduction == "add" and data.data_type in ("float32", "float16"):
        return context.add(data, context.matmul(context.cast(is_there, data.data_type), updates))
    return _reduced(context, data, context.reshape(is_there, [rows, count, 1]), updates, reduction)


def _check_comparisons(number: int) -> None:
    if number > MOST_COMPARISONS:
        refuse("the number of comparisons", number, f"at most {MOST_COMPARISONS}")


def _reduced(
    context: ConversionContext, data: MLOperand, is_there: MLOperand, updates: MLOperand, reduction: str
) -> MLOperand:
    """Return rows [rows, width], each reduced with its own updates [count, width]."""
    reductions = {
        "add": (0.0, context.reduce_sum, context.add),
        "mul": (1.0, context.reduce_product, context.mul),
        "max": (extreme(data.data_type, lowest=True), context.reduce_max, context.max),
        "min": (extreme(data.data_type, lowest=False), context.reduce_min, context.min),
    }
    neutral, reduced, combined = reductions[reduction]
    apart = context.where(is_there, context.reshape(updates, [1, *updates.shape]), context.number(neutral, data))
    return combined(data, reduced(apart, axes=[1]))


@rule("TensorScatter", 24)
def tensor_scatter(
    context: ConversionContext,
    past_cache: MLOperand,
    update: MLOperand,
    write_indices: MLOperand | None = None,
    *,
    axis: int,
    mode: Literal["linear", "circular"],
) -> MLOperand:
    """Write new elements into a cache along an axis, from an index of each sample on; "circular" wraps around."""
    axis = counted(axis, past_cache.rank)
    size, more = past_cache.shape[axis], update.shape[axis] if update.rank == past_cache.rank else 0
    if axis == 0 or update.shape != (*past_cache.shape[:axis], more, *past_cache.shape[axis + 1 :]) or more > size:
        refuse(
            "the shape of the update",
            update.shape,
            f"that of the cache {list(past_cache.shape)}, or less along the axis",
        )
    if write_indices is None:
        write_indices = context.constant(np.zeros(update.shape[0], np.int64))
    starts = context.reshape(write_indices, [update.shape[0]] + [1] * (update.rank - 1))
    context.reserve(8 * more)
    along = [more if index == axis else 1 for index in range(update.rank)]
    places = context.add(starts, context.constant(np.arange(more).reshape(along).astype(write_indices.data_type)))
    if mode == "circular":
        length = context.number(size, places)
        places = context.sub(places, context.mul(context.div(places, length), length))
    return context.scatter_elements(past_cache, context.expand(places, update.shape), update, axis=axis)
