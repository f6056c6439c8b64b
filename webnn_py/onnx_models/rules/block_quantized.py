"""Tables of weights of a few bits, with a scale for each block of a row: gathered rows become floats."""

from typing import Final

import numpy as np

from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.rule_helpers.axes import counted
from webnn_py.onnx_models.rule_table.declaration import rule
from webnn_py.onnx_models.rules.conversion import WIDER
from webnn_py.operators.decomposing.common import cut
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import refuse

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
    numbers = _taken(context, data, indices, is_halved=is_halved)
    scale = context.gather(scales, indices, axis=0)
    blocks, length = scale.shape[-1], numbers.shape[-1]
    if blocks != -(-length // block_size):
        refuse("the shape of input scales", tuple(scales.shape), f"of {-(-length // block_size)} blocks to a row")
    if zero_points is not None:
        point = context.cast(_taken(context, zero_points, indices, is_halved=is_halved), scale.data_type)
        point = context.slice(point, [0] * point.rank, scale.shape)  # the last of an odd number fills a byte alone
        point = _repeated(context, point, block_size, length)
    else:
        point = context.number((1 << (bits - 1)) if is_packed else 0, scale)
    centred = context.sub(context.cast(numbers, scale.data_type), point)
    return context.mul(centred, _repeated(context, scale, block_size, length))


def _taken(context: ConversionContext, table: Value, indices: MLOperand, *, is_halved: bool) -> MLOperand:
    """Gather rows of integers."""
    if isinstance(table, np.ndarray) and table.dtype.name in WIDER:
        context.reserve(table.size)
        table = table.astype(WIDER[table.dtype.name])
    taken = context.gather(context.operand(table), indices, axis=0)
    if not is_halved:
        return taken
    whole = context.reshape(context.cast(taken, "float32"), [*taken.shape, 1])
    high = context.floor(context.div(whole, context.number(16, whole)))
    low = context.sub(whole, context.mul(high, context.number(16, whole)))
    pairs = context.concat([low, high], taken.rank)
    return context.reshape(pairs, [*taken.shape[:-1], 2 * taken.shape[-1]])


def _repeated(context: ConversionContext, x: MLOperand, block: int, length: int) -> MLOperand:
    """Repeat each number of a row for each element of its block; the last block may be shorter."""
    repeated = context.expand(context.reshape(x, [*x.shape, 1]), [*x.shape, block])
    rows = context.reshape(repeated, [*x.shape[:-1], x.shape[-1] * block])
    return cut(context, rows, rows.rank - 1, 0, length)
