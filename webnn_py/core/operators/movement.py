"""Operators that move elements without computing: they join, cut, repeat, reorder or mask tensors.

Every data type is allowed, and every element that is kept keeps its bits.
"""

from collections.abc import Sequence
from typing import Literal

from webnn_py.core.descriptors import MAX_DIMENSION, MLOperandDescriptor
from webnn_py.core.message_text import listed
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.idl import Long, MLNumber
from webnn_py.core.operators.limits import ANY, BYTES_TOO, COMMON, FLOATS, MAX_RANK, LimitsRow, input_and_output, limit
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import (
    check_axes,
    check_axis,
    check_broadcast_to,
    check_length,
    check_positive,
    output,
    refuse,
    same,
)

PaddingMode = Literal["constant", "edge", "reflection"]
"""``MLPaddingMode``."""

MAX_TENSOR_COUNT = 8192
"""A valid tensor count is 1 to this."""

ANY_RANK: LimitsRow = input_and_output(ANY, required=COMMON, keeps_rank=True)
CONCAT: LimitsRow = {
    "inputs": limit(ANY, required=COMMON, rank=(1, MAX_RANK)),
    "output": limit(ANY, required=COMMON, rank=(1, MAX_RANK), type_of="inputs", rank_of="inputs"),
}
EXPAND: LimitsRow = input_and_output(ANY, required=COMMON)
PAD: LimitsRow = input_and_output(ANY, required=FLOATS, keeps_rank=True)
RESHAPE: LimitsRow = input_and_output(ANY, required=BYTES_TOO)
SLICE: LimitsRow = input_and_output(ANY, required=BYTES_TOO, keeps_rank=True)
SPLIT: LimitsRow = {
    "input": limit(ANY, required=COMMON, rank=(1, MAX_RANK)),
    "outputs": limit(ANY, required=COMMON, rank=(1, MAX_RANK), type_of="input", rank_of="input"),
}
TRIANGULAR: LimitsRow = input_and_output(ANY, required=FLOATS, rank=(2, MAX_RANK), keeps_rank=True)


@operator("concat", CONCAT, selects=True, propagates_nan=True)
def concat(inputs: Sequence[MLOperand], axis: int, *, label: str = "") -> MLOperandDescriptor:
    """Join tensors one after the other along an axis.

    Args:
        inputs: 1 to 8192 tensors of one data type, and of one shape but for the size of ``axis``.
        axis: the axis along which to join.

    Returns:
        The joined tensor: the shape of the inputs, but along ``axis`` the sum of their sizes.
    """
    # spec: concat 3
    _check_tensor_count("the number of inputs", len(inputs))
    first = inputs[0]
    # spec: concat 5
    check_axis(axis, first)
    size = first.shape[axis]
    for index, item in enumerate(inputs[1:], start=1):
        _check_joins(first, item, axis, f"inputs[{index}]")
        # spec: concat 8.4.2.1
        size += item.shape[axis]
        # spec: concat 8.4.2.2
        if size > MAX_DIMENSION:
            refuse(f"the size of axis {axis} up to inputs[{index}]", size, f"at most {MAX_DIMENSION}")
    return output(first.data_type, (*first.shape[:axis], size, *first.shape[axis + 1 :]))


def _check_joins(first: MLOperand, item: MLOperand, axis: int, name: str) -> None:
    """Refuse an operand that cannot be joined to ``first`` along ``axis``."""
    # spec: concat 8.2
    if item.data_type != first.data_type:
        refuse(f"the data type of {name}", item.data_type, f"that of inputs[0], {first.data_type}")
    # spec: concat 8.3
    if item.rank != first.rank:
        refuse(f"the rank of {name}", item.rank, f"that of inputs[0], {first.rank}")
    for dimension, (size, wanted) in enumerate(zip(item.shape, first.shape, strict=True)):
        # spec: concat 8.4.1
        if dimension != axis and size != wanted:
            shapes = f"{list(first.shape)} everywhere but at axis {axis}, as inputs[0] is"
            refuse(f"the shape of {name}", item.shape, shapes)


def _check_tensor_count(subject: str, count: int) -> None:
    if not 1 <= count <= MAX_TENSOR_COUNT:
        refuse(subject, count, f"from 1 to {MAX_TENSOR_COUNT}")


@operator("expand", EXPAND, selects=True, propagates_nan=True)
def expand(input: MLOperand, new_shape: Sequence[int], *, label: str = "") -> MLOperandDescriptor:
    """Repeat the input along axes of size 1, and along new leading axes, until it has the new shape.

    Args:
        input: the tensor to repeat.
        new_shape: the output's shape, to which the input's must broadcast.

    Returns:
        The repeated tensor, of the shape ``new_shape``.
    """
    # spec: expand 3-3.1
    check_broadcast_to("input", input.shape, new_shape)
    # spec: expand 4
    _check_output_rank("new_shape", new_shape)
    return output(input.data_type, new_shape)


def _check_output_rank(name: str, shape: Sequence[int]) -> None:
    if len(shape) > MAX_RANK:
        refuse(f"the rank of {name} {listed(shape)}", len(shape), f"at most {MAX_RANK}")


@operator("pad", PAD, propagates_nan=True)
def pad(
    input: MLOperand,
    beginning_padding: Sequence[int],
    ending_padding: Sequence[int],
    *,
    mode: PaddingMode = "constant",
    value: MLNumber = 0,
    label: str = "",
) -> MLOperandDescriptor:
    """Add elements before and after those of each axis.

    Args:
        input: the tensor to pad.
        beginning_padding: how many elements to add before those of each axis.
        ending_padding: how many elements to add after those of each axis.
        mode: what to add: "constant" adds ``value``, "edge" repeats the outermost elements, "reflection" mirrors
            the elements at the outermost ones, which are not repeated: less padding than the axis has elements.
        value: the constant, cast to the input's data type: integers round half to even and saturate.

    Returns:
        The padded tensor: along each axis the size of ``input`` plus both paddings.
    """
    # spec: pad 3
    check_length("beginning_padding", beginning_padding, input.rank)
    check_length("ending_padding", ending_padding, input.rank)
    if mode == "reflection":
        _check_reflection("beginning_padding", beginning_padding, input.shape)
        _check_reflection("ending_padding", ending_padding, input.shape)
    sizes = zip(beginning_padding, input.shape, ending_padding, strict=True)
    # spec: pad 6.2-6.3
    shape = tuple(begin + size + end for begin, size, end in sizes)
    # spec: pad 7
    if any(size > MAX_DIMENSION for size in shape):
        refuse("the padded shape", shape, f"at most {MAX_DIMENSION} everywhere")
    return output(input.data_type, shape)


def _check_reflection(name: str, padding: Sequence[int], shape: Sequence[int]) -> None:
    """Refuse to mirror more elements than there are beyond the outermost."""
    # spec: pad 6.1.1-6.1.2
    if any(count >= size for count, size in zip(padding, shape, strict=True)):
        refuse(name, tuple(padding), f"less than the shape {list(shape)} everywhere, to be a reflection")


@operator("reshape", RESHAPE, selects=True, propagates_nan=True)
def reshape(input: MLOperand, new_shape: Sequence[int], *, label: str = "") -> MLOperandDescriptor:
    """Give the elements, in their row-major order, another shape.

    Args:
        input: the tensor to reshape.
        new_shape: the output's shape, of as many elements as the input has; no dimension is inferred.

    Returns:
        The same elements, in the shape ``new_shape``.
    """
    # spec: reshape 3
    _check_output_rank("new_shape", new_shape)
    # spec: reshape 6
    if any(not 1 <= size <= MAX_DIMENSION for size in new_shape):
        refuse("new_shape", tuple(new_shape), f"from 1 to {MAX_DIMENSION} everywhere")
    reshaped = output(input.data_type, new_shape)
    count = same(input).element_count
    # spec: reshape 8
    if reshaped.element_count != count:
        shapes = f"as many as the input {list(input.shape)} has, {count}"
        refuse(f"the number of elements of new_shape {listed(new_shape)}", reshaped.element_count, shapes)
    return reshaped


@operator("reverse", ANY_RANK, selects=True, propagates_nan=True)
def reverse(input: MLOperand, *, axes: Sequence[int] | None = None, label: str = "") -> MLOperandDescriptor:
    """Reverse the order of the elements along axes.

    Args:
        input: the tensor to reverse.
        axes: the axes, each at most once; absent: all of them, empty: none.
    """
    if axes is not None:
        # spec: reverse 6
        check_axes(axes, input)
    return same(input)


@operator("slice", SLICE, selects=True)
def slice_(
    input: MLOperand,
    starts: Sequence[int],
    sizes: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    label: str = "",
) -> MLOperandDescriptor:
    """Cut a window out of the input.

    Args:
        input: the tensor to cut.
        starts: the window's first element along each axis.
        sizes: the window's size along each axis, before striding: at least 1, and within the input.
        strides: the step from one element taken to the next, along each axis; absent: 1 everywhere.

    Returns:
        The window: along each axis ``sizes`` divided by ``strides``, rounded up.
    """
    # spec: slice 3, 9.4
    check_positive("sizes", sizes)
    # spec: slice 4
    check_length("starts", starts, input.rank)
    check_length("sizes", sizes, input.rank)
    if strides is None:
        strides = (1,) * input.rank
    # spec: slice 6.2
    check_length("strides", strides, input.rank)
    # spec: slice 9.5
    check_positive("strides", strides)
    for axis, (start, size, available) in enumerate(zip(starts, sizes, input.shape, strict=True)):
        # spec: slice 9.6-9.7
        if start + size > available:
            subject = f"the end of the window, starts[{axis}] + sizes[{axis}]"
            refuse(subject, start + size, f"at most {available}, the input's dimension")
    # spec: slice 9.8-9.10
    return output(input.data_type, (-(-size // stride) for size, stride in zip(sizes, strides, strict=True)))


@operator("split", SPLIT, selects=True, propagates_nan=True)
def split(
    input: MLOperand, splits: int | Sequence[int], *, axis: int = 0, label: str = ""
) -> list[MLOperandDescriptor]:
    """Cut the input into pieces along an axis.

    Args:
        input: the tensor to cut.
        splits: the number of pieces, of one size; or the size of each piece. 1 to 8192 pieces.
        axis: the axis along which to cut.

    Returns:
        A list of the pieces in order: the shape of ``input``, but along ``axis`` the size of the piece.
    """
    # spec: split 4
    check_axis(axis, input)
    size = input.shape[axis]
    if isinstance(splits, int):
        # spec: split 5.1
        _check_tensor_count("splits", splits)
        # spec: split 5.2
        if size % splits:
            refuse("splits", splits, f"a divisor of {size}, the size of axis {axis}")
        splits = (size // splits,) * splits
    else:
        # spec: split 6.1
        _check_tensor_count("the number of splits", len(splits))
        # spec: split 6.2
        check_positive("splits", splits)
        # spec: split 6.3
        if sum(splits) != size:
            refuse(f"the sum of splits {listed(splits)}", sum(splits), f"{size}, the size of axis {axis}")
    before, after = input.shape[:axis], input.shape[axis + 1 :]
    return [output(input.data_type, (*before, piece, *after)) for piece in splits]


@operator("tile", ANY_RANK, selects=True, propagates_nan=True)
def tile(input: MLOperand, repetitions: Sequence[int], *, label: str = "") -> MLOperandDescriptor:
    """Lay copies of the whole input side by side.

    Args:
        input: the tensor to repeat.
        repetitions: the number of copies along each axis, at least 1.

    Returns:
        The copies: along each axis the size of ``input`` times the number of copies.
    """
    # spec: tile 3
    check_length("repetitions", repetitions, input.rank)
    # spec: tile 4
    check_positive("repetitions", repetitions)
    return output(input.data_type, (size * count for size, count in zip(input.shape, repetitions, strict=True)))


@operator("transpose", ANY_RANK, selects=True, propagates_nan=True)
def transpose(input: MLOperand, *, permutation: Sequence[int] | None = None, label: str = "") -> MLOperandDescriptor:
    """Reorder the axes.

    Args:
        input: the tensor to transpose.
        permutation: for each axis of the output, the axis of the input that it is; absent: all in reverse order.

    Returns:
        The reordered tensor: its axis i has the size of axis ``permutation[i]`` of ``input``.
    """
    # spec: transpose 3
    if permutation is None:
        return output(input.data_type, reversed(input.shape))
    # spec: transpose 4.1
    check_length("permutation", permutation, input.rank)
    # spec: transpose 4.2-4.3
    check_axes(permutation, input, "permutation")
    return output(input.data_type, (input.shape[axis] for axis in permutation))


@operator("triangular", TRIANGULAR, no_larger=True)
def triangular(input: MLOperand, *, upper: bool = True, diagonal: Long = 0, label: str = "") -> MLOperandDescriptor:
    """Keep the upper or the lower triangle of each matrix, and put zeros elsewhere.

    Args:
        input: a matrix, or a batch of matrices in the last two axes.
        upper: whether to keep the elements on and above the diagonal, or those on and below it.
        diagonal: which diagonal: 0 is the main one, 1 the one above it, -1 the one below it, and so on.
    """
    return same(input)
