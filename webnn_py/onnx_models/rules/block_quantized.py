"""Tables of weights of a few bits, with a scale for each block of a row: gathered rows become floats."""

from typing import Final

import numpy as np

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.devices.composites.block_quantized import GATHER_BLOCK_QUANTIZED, dequantized_rows
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.conversion import WIDER

HALF: Final = 4
"""Bits of an integer of which two share a byte, the first in the lower bits."""


@rule("com.microsoft.GatherBlockQuantized", 1)
def gather_block_quantized(
    context: ConversionContext,
    data: Value,
    indices: MLOperand,
    scales: MLOperand,
    zero_points: Value | None = None,
    *,
    bits: int = HALF,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> MLOperand:
    """Gather rows of a table, and unpack and dequantize only these."""
    rank = len(data.shape)
    if rank < 2 or counted(gather_axis, rank, "attribute gather_axis"):
        refuse("attribute gather_axis", f"{gather_axis} of {list(data.shape)}", "0, of a table of rank 2 or more")
    if counted(quantize_axis, rank, "attribute quantize_axis") != rank - 1:
        refuse("attribute quantize_axis", quantize_axis, f"{rank - 1}, the last one")
    is_packed = (data.data_type if isinstance(data, MLOperand) else data.dtype.name) == "uint8"
    if bits not in (HALF, 8) or block_size < 1:
        refuse("attributes bits and block_size", f"{bits} and {block_size}", "4 or 8, and at least 1")
    is_halved = is_packed and bits == HALF
    length, blocks = data.shape[-1] * (2 if is_halved else 1), scales.shape[-1] if scales.rank else 0
    if blocks != -(-length // block_size):
        refuse("the shape of input scales", scales.shape, f"of {-(-length // block_size)} blocks to a row")
    if is_halved:
        operands = {"data": data, "indices": indices, "scales": scales, "zero_points": zero_points}
        there = {name: context.operand(item) for name, item in operands.items() if item is not None}
        (y,) = context.composite(GATHER_BLOCK_QUANTIZED, there, block_size=block_size)
        return y
    scale = context.gather(scales, indices, axis=0)
    point = context.number((1 << (bits - 1)) if is_packed else 0, scale)
    if zero_points is not None:
        point = _taken(context, zero_points, indices)
    return dequantized_rows(context, _taken(context, data, indices), scale, point, block_size)


def _taken(context: ConversionContext, table: Value, indices: MLOperand) -> MLOperand:
    """Gather rows of integers."""
    if isinstance(table, np.ndarray) and table.dtype.name in WIDER:
        context.reserve(table.size)
        table = table.astype(WIDER[table.dtype.name])
    return context.gather(context.operand(table), indices, axis=0)
