"""Gathering and scattering. ONNX forbids indices out of range, which WebNN clamps."""

from webnn_py.onnx_models.axes import counted
from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.onnx_models.table import rule
from webnn_py.operators.operand import MLOperand


@rule("Gather", 1, 11, 13)
def gather(context: ConversionContext, data: MLOperand, indices: MLOperand, *, axis: int) -> MLOperand:
    """Take slices of the input, across an axis, where the indices say."""
    return context.gather(data, indices, axis=counted(axis, data.rank))


@rule("GatherElements", 11, 13)
def gather_elements(context: ConversionContext, data: MLOperand, indices: MLOperand, *, axis: int) -> MLOperand:
    """Take single elements; what lies beyond the indices, along the other axes, is not looked at."""
    axis = counted(axis, data.rank)
    if indices.rank == data.rank:
        sizes = [
            data.shape[index] if index == axis else min(size, data.shape[index])
            for index, size in enumerate(indices.shape)
        ]
        if tuple(sizes) != data.shape:
            data = context.slice(data, [0] * data.rank, sizes)
    return context.gather_elements(data, indices, axis=axis)


@rule("GatherND", 11, 12, 13)
def gather_nd(context: ConversionContext, data: MLOperand, indices: MLOperand) -> MLOperand:
    """Take slices of the input where coordinates say."""
    return context.gather_nd(data, indices)


@rule("ScatterElements", 11, 13, 16, 18)
def scatter_elements(
    context: ConversionContext, data: MLOperand, indices: MLOperand, updates: MLOperand, *, axis: int
) -> MLOperand:
    """Put single elements where the indices say."""
    return context.scatter_elements(data, indices, updates, axis=counted(axis, data.rank))


@rule("ScatterND", 11, 13, 16, 18)
def scatter_nd(context: ConversionContext, data: MLOperand, indices: MLOperand, updates: MLOperand) -> MLOperand:
    """Put slices where coordinates say."""
    return context.scatter_nd(data, indices, updates)
