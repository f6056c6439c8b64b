"""Gathering and scattering. ONNX forbids indices out of range, which WebNN clamps."""

import numpy as np

from webnn_py.onnx_models.axes import counted
from webnn_py.onnx_models.conversion_context import ConversionContext
from webnn_py.onnx_models.table import rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse


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
