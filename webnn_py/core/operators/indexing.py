"""Operators that read or write where a tensor of indices says: the gather and scatter families.

An index counts from 0, or, if negative, from the end; one that is out of range is clamped to the nearest in range.
"""

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.declaration import operator
from webnn_py.core.operators.limits import ANY, BYTES_TOO, COMMON, INDICES, MAX_RANK, LimitsRow, limit
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_axis, check_shape, output, refuse, same

GATHER: LimitsRow = {
    "input": limit(ANY, required=BYTES_TOO, rank=(1, MAX_RANK)),
    "indices": limit(INDICES, required=("int32",)),
    # The table says 1 for the lowest rank, but the steps make a scalar of scalar indices into a vector.
    "output": limit(ANY, required=BYTES_TOO, type_of="input", required_rank=(1, 5)),
}
GATHER_ELEMENTS: LimitsRow = {
    "input": limit(ANY, required=COMMON, rank=(1, MAX_RANK)),
    "indices": limit(INDICES, required=("int32",), rank=(1, MAX_RANK), rank_of="input"),
    "output": limit(ANY, required=COMMON, rank=(1, MAX_RANK), type_of="input", rank_of="input"),
}
GATHER_ND: LimitsRow = {
    "input": limit(ANY, required=BYTES_TOO, rank=(1, MAX_RANK)),
    "indices": limit(INDICES, required=("int32",), rank=(1, MAX_RANK)),
    "output": limit(ANY, required=BYTES_TOO, type_of="input"),
}
SCATTER_ELEMENTS: LimitsRow = {
    "input": limit(ANY, required=COMMON, rank=(1, MAX_RANK)),
    "indices": limit(INDICES, required=("int32",), rank=(1, MAX_RANK), rank_of="input"),
    "updates": limit(ANY, required=COMMON, rank=(1, MAX_RANK), type_of="input", rank_of="input"),
    "output": limit(ANY, required=COMMON, rank=(1, MAX_RANK), type_of="input", rank_of="input"),
}
SCATTER_ND: LimitsRow = {
    "input": limit(ANY, required=COMMON, rank=(1, MAX_RANK)),
    "indices": limit(INDICES, required=("int32",), rank=(1, MAX_RANK)),
    "updates": limit(ANY, required=COMMON, type_of="input"),
    "output": limit(ANY, required=COMMON, rank=(1, MAX_RANK), type_of="input"),
}


@operator("gather", GATHER, selects=("input",))
def gather(input: MLOperand, indices: MLOperand, *, axis: int = 0, label: str = "") -> MLOperandDescriptor:
    """Take slices of the input, across an axis, where the indices say.

    Args:
        input: the tensor to take from.
        indices: positions along ``axis``, in any shape, which takes the place of the axis in the output's.
        axis: the axis that the indices count along.

    Returns:
        The slices: the shape of ``input`` with that of ``indices`` in the place of ``axis``.
    """
    # spec: gather 7
    check_axis(axis, input)
    # spec: gather 8-18
    return output(input.data_type, (*input.shape[:axis], *indices.shape, *input.shape[axis + 1 :]))


@operator("gatherElements", GATHER_ELEMENTS, selects=("input",))
def gather_elements(input: MLOperand, indices: MLOperand, *, axis: int = 0, label: str = "") -> MLOperandDescriptor:
    """Take single elements: each from the place of its index, but along an axis from where the index says.

    Args:
        input: the tensor to take from.
        indices: positions along ``axis``; of the input's shape but for the size of ``axis``. The output's shape.
        axis: the axis that the indices count along.

    Returns:
        The elements, of the shape of ``indices``.
    """
    _check_element_indices(input, indices, axis)
    return output(input.data_type, indices.shape)


def _check_element_indices(input: MLOperand, indices: MLOperand, axis: int) -> None:
    """Refuse indices whose shape is not the input's, but for the size of ``axis``."""
    # spec: gatherElements 6; scatterElements 7
    check_axis(axis, input)
    # spec: gatherElements 7-8; scatterElements 8-9
    before, after = input.shape[:axis], input.shape[axis + 1 :]
    # spec: gatherElements 9; scatterElements 10
    check_shape("indices", indices, (*before, indices.shape[axis], *after))


@operator("gatherND", GATHER_ND, selects=("input",))
def gather_nd(input: MLOperand, indices: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Take slices of the input where coordinates say.

    Args:
        input: the tensor to take from.
        indices: coordinates in the last axis, into as many leading axes of the input as they are long.

    Returns:
        The slices: the shape of ``indices`` but for its last dimension, then the dimensions of ``input`` that the
        coordinates leave over.
    """
    return output(input.data_type, _slices_shape(input, indices))


def _slices_shape(input: MLOperand, indices: MLOperand) -> tuple[int, ...]:
    """Return the shape of the slices that coordinates select, arranged as the coordinates are."""
    length = indices.shape[-1]
    # spec: gatherND 10; scatterND 10
    if length > input.rank:
        refuse(
            f"the last dimension of indices {list(indices.shape)}", length, f"at most the input's rank, {input.rank}"
        )
    # spec: gatherND 11-13; scatterND 11-13
    return (*indices.shape[:-1], *input.shape[length:])


@operator("scatterElements", SCATTER_ELEMENTS, selects=("input", "updates"))
def scatter_elements(
    input: MLOperand, indices: MLOperand, updates: MLOperand, *, axis: int = 0, label: str = ""
) -> MLOperandDescriptor:
    """Copy the input, and put single elements: each in its own place, but along an axis where its index says.

    Where two go to one place, the one that comes later in row-major order stays.

    Args:
        input: the tensor to copy.
        indices: positions along ``axis``; of the input's shape but for the size of ``axis``.
        updates: the elements to put, in the shape of ``indices``.
        axis: the axis that the indices count along.

    Returns:
        The changed copy, of the shape of ``input``.
    """
    _check_element_indices(input, indices, axis)
    # spec: scatterElements 11
    check_shape("updates", updates, indices.shape)
    return same(input)


@operator("scatterND", SCATTER_ND, selects=("input", "updates"))
def scatter_nd(input: MLOperand, indices: MLOperand, updates: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Copy the input, and put slices where coordinates say.

    Where two go to one place, the one that comes later in row-major order stays.

    Args:
        input: the tensor to copy.
        indices: coordinates in the last axis, into as many leading axes of the input as they are long.
        updates: the slices to put, laid out as the coordinates are.

    Returns:
        The changed copy, of the shape of ``input``.
    """
    # spec: scatterND 14
    check_shape("updates", updates, _slices_shape(input, indices))
    return same(input)
