"""Joining, cutting, repeating, reordering and reshaping."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import broadcast, refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rule_helpers.axes import check_rank, counted, counted_all, scalar
from webnn_py.onnx_models.rule_table.declaration import Integer, Integers, rule


@rule("Concat", 4, 11, 13)
def concat(context: ConversionContext, *inputs: Value, axis: int) -> MLOperand:
    """Join tensors along an axis; empty ones add nothing."""
    present = [context.operand(item) for item in inputs if isinstance(item, MLOperand) or item.size]
    if not present:
        refuse("every input", "empty", "a tensor with elements, at least one: WebNN has no empty ones")
    axis = counted(axis, present[0].rank)
    return present[0] if len(present) == 1 else context.concat(present, axis)


@rule("Split", 2, 11, 13, 18)
def split(
    context: ConversionContext,
    data: MLOperand,
    split: Integers | None = None,
    *,
    axis: int,
    num_outputs: int | None = None,
) -> Sequence[Value]:
    """Cut along an axis, into pieces of the given or of equal sizes; empty ones are known.

    With ``num_outputs`` the last piece may be smaller.
    """
    count, axis = len(context.wanted), counted(axis, data.rank)
    size = data.shape[axis]
    if split is not None:
        sizes = list(split)
        if len(sizes) != count:
            refuse("the length of split", len(sizes), f"{count}, as many as the outputs")
    elif num_outputs is None:
        return context.split(data, count, axis=axis)
    else:
        if num_outputs != count:
            refuse("attribute num_outputs", num_outputs, f"{count}, as many as the outputs")
        piece = -(-size // count)
        sizes = [piece] * (count - 1) + [size - piece * (count - 1)]
        if sizes[-1] < 1:
            refuse("attribute num_outputs", num_outputs, f"such that {size} elements fill as many pieces")
    if 0 not in sizes:
        return context.split(data, sizes, axis=axis)
    pieces = iter(context.split(data, [size for size in sizes if size], axis=axis))
    nothing = np.zeros([*data.shape[:axis], 0, *data.shape[axis + 1 :]], data.data_type)
    return [next(pieces) if size else nothing for size in sizes]


@rule("Slice", 1, 10, 11, 13)
def slice_(
    context: ConversionContext,
    data: MLOperand,
    starts: Integers,
    ends: Integers,
    axes: Integers | None = None,
    steps: Integers | None = None,
) -> Value:
    """Slice as Python does; negative steps slice the reversed tensor. An empty result is static."""
    steps = steps or (1,) * len(starts)
    axes = counted_all(range(len(starts)) if axes is None else axes, data.rank)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        refuse("starts, ends, axes and steps", f"{len(starts)}, {len(ends)}, {len(axes)} and {len(steps)}", "as many")
    if 0 in steps:
        refuse("steps", tuple(steps), "not 0")
    taken = [range(size) for size in data.shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        taken[axis] = range(data.shape[axis])[start:end:step]
    if not all(taken):
        return np.zeros([len(indices) for indices in taken], data.data_type)
    backwards = [axis for axis, indices in enumerate(taken) if indices.step < 0]
    if backwards:
        data = context.reverse(data, axes=backwards)
    forwards = [
        range(size - 1 - indices.start, size - indices[-1], -indices.step) if indices.step < 0 else indices
        for size, indices in zip(data.shape, taken, strict=True)
    ]
    if all(len(indices) == size for indices, size in zip(forwards, data.shape, strict=True)):
        return data
    return context.slice(
        data,
        [indices.start for indices in forwards],
        [indices[-1] - indices.start + 1 for indices in forwards],
        strides=[indices.step for indices in forwards],
    )


@rule("Transpose", 1, 13, 21, 23, 24, 25)
def transpose(context: ConversionContext, data: MLOperand, *, perm: Sequence[int] | None = None) -> MLOperand:
    """Reorder the axes; by default in reverse order."""
    return context.transpose(data, permutation=None if perm is None else counted_all(perm, data.rank))


@rule("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
def reshape(context: ConversionContext, data: MLOperand, shape: Integers, *, allowzero: bool = False) -> MLOperand:
    """Another shape: 0 keeps a dimension, -1 takes what is left; with ``allowzero`` a 0 is refused as an empty one."""
    sizes = list(shape)
    for axis, size in enumerate(shape):
        if size == 0 and not allowzero:
            if axis >= data.rank:
                refuse(f"input shape {list(shape)}: the 0", axis, f"where the input {list(data.shape)} has a dimension")
            sizes[axis] = data.shape[axis]
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        refuse("input shape", shape, "positive, but for one -1")
    if -1 in sizes:
        sizes[sizes.index(-1)] = math.prod(data.shape) // max(1, -math.prod(sizes))
    if 0 in sizes or math.prod(sizes) != math.prod(data.shape):
        refuse("input shape", shape, f"of as many elements as the input {list(data.shape)} has")
    return _reshaped(context, data, sizes)


def _reshaped(context: ConversionContext, data: MLOperand, shape: Sequence[int]) -> MLOperand:
    return data if tuple(shape) == data.shape else context.reshape(data, shape)


@rule("Flatten", 1, 9, 11, 13, 21, 23, 24, 25)
def flatten(context: ConversionContext, data: MLOperand, *, axis: int) -> MLOperand:
    """Return a matrix: the axes before ``axis`` are its rows."""
    first = data.rank if axis == data.rank else counted(axis, data.rank)
    return _reshaped(context, data, [math.prod(data.shape[:first]), math.prod(data.shape[first:])])


@rule("Squeeze", 13, 21, 23, 24, 25)
def squeeze(context: ConversionContext, data: MLOperand, axes: Integers | None = None) -> MLOperand:
    """Remove axes of size 1, by default all of them."""
    if axes is None:
        return _reshaped(context, data, [size for size in data.shape if size != 1])
    removed = counted_all(axes, data.rank)
    if any(data.shape[axis] != 1 for axis in removed):
        refuse("axes", axes, f"axes of size 1 of {list(data.shape)}")
    return _reshaped(context, data, [size for axis, size in enumerate(data.shape) if axis not in removed])


@rule("Squeeze", 1, 11)
def squeeze_by_attribute(
    context: ConversionContext, data: MLOperand, *, axes: Sequence[int] | None = None
) -> MLOperand:
    """Remove axes of size 1, all of them also for an empty list, as ONNX's reference does in these versions."""
    return squeeze(context, data, tuple(axes) if axes else None)


@rule("Unsqueeze", 1, 11, 13, 21, 23, 24, 25)
def unsqueeze(context: ConversionContext, data: MLOperand, axes: Integers) -> MLOperand:
    """Insert axes of size 1, at places counted in the result."""
    rank = data.rank + len(axes)
    inserted = counted_all(axes, rank)
    sizes = iter(data.shape)
    return _reshaped(context, data, [1 if axis in inserted else next(sizes) for axis in range(rank)])


@rule("Expand", 8, 13)
def expand(context: ConversionContext, data: MLOperand, shape: Integers) -> MLOperand:
    """Repeat along axes of size 1; the shape and the input's broadcast to each other."""
    wanted = broadcast(data.shape, shape, ("the input", "input shape"))
    return data if wanted == data.shape else context.expand(data, wanted)


@rule("Tile", 6, 13)
def tile(context: ConversionContext, data: MLOperand, repeats: Integers) -> MLOperand:
    """Repeat a tensor along its axes."""
    return context.tile(data, repeats)


@rule("Trilu", 14)
def triangular(context: ConversionContext, data: MLOperand, k: Integer = 0, *, upper: bool) -> MLOperand:
    """Return the upper or the lower triangle of matrices."""
    return context.triangular(data, upper=upper, diagonal=k)


@rule("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
def shape_of(context: ConversionContext, data: MLOperand, *, start: int = 0, end: int | None = None) -> StaticValue:
    """Return the shape, or a part of it, which is static."""
    return np.array(data.shape[start:end], np.int64)


@rule("Size", 1, 13, 19, 21, 23, 24, 25)
def size_of(context: ConversionContext, data: MLOperand) -> StaticValue:
    """Return the number of elements, which is static."""
    return np.array(math.prod(data.shape), np.int64)


ChannelOrder = Literal["DCR", "CRD"]


@rule("DepthToSpace", 1, 11, 13, 28)
def depth_to_space(
    context: ConversionContext, data: MLOperand, *, blocksize: int, mode: ChannelOrder = "DCR"
) -> MLOperand:
    """Spread channels over blocks of pixels. Only version 28 has a body, of the same nodes."""
    batch, channels, height, width = _image(data, blocksize)
    depth = channels // blocksize**2
    apart, order = (batch, blocksize, blocksize, depth, height, width), (0, 3, 4, 1, 5, 2)
    if mode == "CRD":
        apart, order = (batch, depth, blocksize, blocksize, height, width), (0, 1, 4, 2, 5, 3)
    spread = context.transpose(context.reshape(data, apart), permutation=order)
    return context.reshape(spread, [batch, depth, height * blocksize, width * blocksize])


@rule("SpaceToDepth", 1, 13, 28)
def space_to_depth(
    context: ConversionContext, data: MLOperand, *, blocksize: int, mode: ChannelOrder = "DCR"
) -> MLOperand:
    """Gather blocks of pixels in channels. Only version 28 has a body, of the same nodes."""
    batch, channels, height, width = _image(data, blocksize)
    rows, columns = height // blocksize, width // blocksize
    apart = context.reshape(data, [batch, channels, rows, blocksize, columns, blocksize])
    gathered = context.transpose(apart, permutation=(0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return context.reshape(gathered, [batch, channels * blocksize**2, rows, columns])


def _image(data: MLOperand, blocksize: int) -> tuple[int, ...]:
    check_rank("the input", data, 4)
    if blocksize < 1:
        refuse("attribute blocksize", blocksize, "at least 1")
    return data.shape


def _pad_value(context: ConversionContext, constant_value: Value | None) -> float | MLOperand:
    known = context.known(constant_value)
    if known is None:
        return 0 if constant_value is None else context.operand(constant_value)
    return scalar("input constant_value", known)


PadMode = Literal["constant", "edge", "reflect", "wrap"]


@rule("Pad", 2, 11, 13, 18, 19, 21, 23, 24, 25)
def pad(
    context: ConversionContext,
    data: MLOperand,
    pads: Integers,
    value: Value | None = None,
    axes: Integers | None = None,
    *,
    mode: PadMode,
) -> MLOperand:
    """Add elements before and after those of each axis, or of some."""
    if axes is None:
        return _padded(context, data, pads, mode, _pad_value(context, value))
    chosen = counted_all(axes, data.rank)
    if len(pads) != 2 * len(chosen):
        refuse("input pads", pads, f"two for each of the axes {list(chosen)}")
    everywhere = [0] * (2 * data.rank)
    for axis, begin, end in zip(chosen, pads[: len(chosen)], pads[len(chosen) :], strict=True):
        everywhere[axis], everywhere[data.rank + axis] = begin, end
    return _padded(context, data, everywhere, mode, _pad_value(context, value))


def _padded(
    context: ConversionContext, data: MLOperand, pads: Sequence[int], mode: PadMode, value: float | MLOperand
) -> MLOperand:
    """Negative padding removes elements: exactly that is done first."""
    if len(pads) != 2 * data.rank:
        refuse("pads", tuple(pads), f"two for each axis of {list(data.shape)}")
    if min(pads, default=0) < 0 and mode in ("reflect", "wrap"):
        refuse("pads", tuple(pads), f"at least 0 in the mode {mode}")
    begins, ends = pads[: data.rank], pads[data.rank :]
    starts = [max(0, -begin) for begin in begins]
    sizes = [size - start - max(0, -end) for size, start, end in zip(data.shape, starts, ends, strict=True)]
    if min(sizes, default=1) < 1:
        refuse("pads", tuple(pads), f"such that something of {list(data.shape)} is left")
    if tuple(sizes) != data.shape:
        data = context.slice(data, starts, sizes)
    if max(pads, default=0) <= 0:
        return data
    if mode == "wrap":
        return _wrapped(context, data, begins, ends)
    before, after = [max(0, begin) for begin in begins], [max(0, end) for end in ends]
    if isinstance(value, MLOperand) and mode == "constant":
        inside = context.expand(context.constant(np.ones((), np.uint8)), data.shape)
        is_inside, zeros = context.pad(inside, before, after), context.pad(data, before, after)
        return context.where(is_inside, zeros, context.reshape(value, []))
    return context.pad(
        data,
        before,
        after,
        mode="reflection" if mode == "reflect" else mode,
        value=0 if isinstance(value, MLOperand) else value,
    )


def _wrapped(context: ConversionContext, data: MLOperand, begins: Sequence[int], ends: Sequence[int]) -> MLOperand:
    """Repeat the elements before and after themselves."""
    for axis, (size, begin, end) in enumerate(zip(data.shape, begins, ends, strict=True)):
        if begin or end:
            context.reserve(8 * (begin + size + end))
            indices = np.arange(-begin, size + end) % size
            data = context.gather(data, context.constant(indices.astype(np.int32)), axis=axis)
    return data
