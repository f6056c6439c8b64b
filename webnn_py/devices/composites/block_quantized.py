"""Matrices of a few bits an element, with a scale for each block of a row: onnxruntime's MatMulNBits, gathered rows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from webnn_py.core.decompositions.common import cut, number
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.limits import FLOATS, MAX_RANK, LimitsRow, limit
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import check_shape, output, refuse
from webnn_py.devices.composites.tree_ensemble import constant

Array = npt.NDArray[Any]

BLOCKS: Final = (16, 32, 64, 128, 256)
"""The sizes of blocks for which onnxruntime has kernels."""

BITS: Final = (4, 8)

MATMUL_NBITS_LIMITS: Final[LimitsRow] = {
    "a": limit(FLOATS, rank=(1, MAX_RANK)),
    "b": limit(("uint8",), rank=3),
    "scales": limit(FLOATS, rank=2, type_of="a"),
    "zero_points": limit(("uint8",), rank=2),
    "bias": limit(FLOATS, rank=1, type_of="a"),
    "output0": limit(FLOATS, rank=(1, MAX_RANK), type_of="a"),
}


def matmul_nbits(
    a: MLOperand,
    b: MLOperand,
    scales: MLOperand,
    *,
    zero_points: MLOperand | None = None,
    bias: MLOperand | None = None,
    inner: int,
    bits: int,
    block_size: int,
    accuracy_level: int = 0,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Multiply by the transposition of a matrix whose elements have a few bits.

    Args:
        a: [..., inner].
        b: a constant, [columns, blocks, bytes of a block]; the first element is in the lowest bits of a byte.
        scales: the factor of each block, [columns, blocks].
        zero_points: a constant, the number of each block that stands for 0, [columns, bytes of a column's]; half of
            the range when absent.
        bias: what is added, [columns].
        inner: the elements of a row; others fill up its last block.
        bits: how many an element has.
        block_size: the elements of a block.
        accuracy_level: 4 where the model allows that ``a`` is quantized to int8 on the way, which is faster; else 0.
        label: the name of the node.

    Returns:
        [..., columns].
    """
    columns, blocks = scales.shape
    if bits not in BITS or block_size not in BLOCKS:
        refuse("the block", f"{block_size} of {bits} bits", f"one of {BLOCKS}, of {BITS} bits")
    if a.shape[-1] != inner or blocks != -(-inner // block_size):
        refuse("the last dimension", a.shape[-1], f"{inner}, of {blocks} blocks")
    check_shape("b", b, [columns, blocks, block_size * bits // 8])
    check_shape("zero_points", zero_points, [columns, -(-blocks * bits // 8)])
    check_shape("bias", bias, [columns])
    return [output(a.data_type, (*a.shape[:-1], columns))]


GATHER_LIMITS: Final[LimitsRow] = {
    "data": limit(("uint8",), rank=(2, MAX_RANK)),
    "indices": limit(("int32", "uint32", "int64"), rank=(0, MAX_RANK)),
    "scales": limit(FLOATS, rank=(2, MAX_RANK)),
    "zero_points": limit(("uint8",), rank=(2, MAX_RANK)),
    "output0": limit(FLOATS, rank=(1, MAX_RANK), type_of="scales"),
}


def gather_block_quantized(
    data: MLOperand,
    indices: MLOperand,
    scales: MLOperand,
    *,
    zero_points: MLOperand | None = None,
    block_size: int,
    label: str = "",
) -> list[MLOperandDescriptor]:
    """Gather rows of a table of integers of four bits, and dequantize these.

    Args:
        data: two integers in a byte, the first in the lower bits, [rows, ..., bytes].
        indices: of rows; negative ones count from the end.
        scales: the factor of each block, [rows, ..., blocks].
        zero_points: the number of each block that stands for 0, two in a byte, [rows, ..., bytes]; 8 when absent.
        block_size: the integers of a block; the last one of a row may be shorter.
        label: the name of the node.

    Returns:
        [indices' shape, ..., 2 · bytes].
    """
    rows, *inner, length = data.shape
    length *= 2
    blocks = -(-length // block_size)
    check_shape("scales", scales, [rows, *inner, blocks])
    check_shape("zero_points", zero_points, [rows, *inner, -(-blocks // 2)])
    return [output(scales.data_type, (*indices.shape, *inner, length))]


def by_unpacking(
    builder: Builder,
    data: MLOperand,
    indices: MLOperand,
    scales: MLOperand,
    *,
    zero_points: MLOperand | None = None,
    block_size: int,
) -> list[MLOperand]:
    """Draw :func:`gather_block_quantized`."""
    rows, points = (
        None if item is None else _halves(builder, builder.gather(item, indices, axis=0))
        for item in (data, zero_points)
    )
    assert rows is not None  # noqa: S101 - data is there
    scale = builder.gather(scales, indices, axis=0)
    point = number(builder, 8, scale)
    if points is not None:
        point = builder.slice(points, [0] * points.rank, scale.shape)  # the last of an odd number fills a byte alone
    return [dequantized_rows(builder, rows, scale, point, block_size)]


def _halves(builder: Builder, x: MLOperand) -> MLOperand:
    """Return the two integers of each byte side by side, as float32."""
    whole = builder.reshape(builder.cast(x, "float32"), [*x.shape, 1])
    high = builder.floor(builder.div(whole, number(builder, 16, whole)))
    low = builder.sub(whole, builder.mul(high, number(builder, 16, whole)))
    return builder.reshape(builder.concat([low, high], x.rank), [*x.shape[:-1], 2 * x.shape[-1]])


def dequantized_rows(
    builder: Builder, rows: MLOperand, scale: MLOperand, point: MLOperand, block_size: int
) -> MLOperand:
    """Return (integer - zero point) · scale; the last two have a number for each block of a row, or one for all."""
    length = rows.shape[-1]
    point = builder.cast(point, scale.data_type)
    point = _by_element(builder, point, block_size, length) if point.rank else point
    centred = builder.sub(builder.cast(rows, scale.data_type), point)
    return builder.mul(centred, _by_element(builder, scale, block_size, length))


def _by_element(builder: Builder, x: MLOperand, block_size: int, length: int) -> MLOperand:
    """Repeat each number of a row for each element of its block; the last block may be shorter."""
    repeated = builder.expand(builder.reshape(x, [*x.shape, 1]), [*x.shape, block_size])
    rows = builder.reshape(repeated, [*x.shape[:-1], x.shape[-1] * block_size])
    return cut(builder, rows, rows.rank - 1, 0, length)


def by_dequantizing(
    builder: Builder,
    a: MLOperand,
    scales: MLOperand,
    *,
    b: Array,
    zero_points: Array | None = None,
    bias: MLOperand | None = None,
    inner: int,
    bits: int,
    block_size: int,
    accuracy_level: int = 0,
) -> list[MLOperand]:
    """Draw :func:`matmul_nbits`, whose ``b`` and ``zero_points`` are given as arrays, exactly at each level."""
    columns, blocks = scales.shape
    weights = constant(builder, unpacked(b, bits, columns, blocks * block_size))
    if zero_points is None:
        points = np.full([columns, blocks], 1 << (bits - 1), np.uint8)
    else:
        points = unpacked(zero_points, bits, columns, blocks)
    matrix = builder.dequantize_linear(weights, scales, constant(builder, points))
    return [times_columns(builder, a, matrix, bias, inner)]


def times_columns(builder: Builder, a: MLOperand, matrix: MLOperand, bias: MLOperand | None, inner: int) -> MLOperand:
    """Multiply by a transposed matrix, of which each row may have padding at its end."""
    rows = builder.reshape(a, [1, inner]) if a.rank == 1 else a
    y = builder.matmul(rows, builder.transpose(cut(builder, matrix, 1, 0, inner)))
    y = builder.reshape(y, [*a.shape[:-1], matrix.shape[0]]) if a.rank == 1 else y
    return y if bias is None else builder.add(y, bias)


def unpacked(packed: Array, bits: int, rows: int, columns: int) -> Array:
    """Unpack rows of integers of a few bits, the first in the lowest bits of a byte; each row starts a byte.

    Raises:
        Refused: it is not of bytes, or of another length.
    """
    check_packed(packed, bits, rows, columns)
    flat = packed.reshape(rows, -1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    integers = (flat[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.ascontiguousarray(integers.reshape(rows, -1)[:, :columns])


def check_packed(packed: Array, bits: int, rows: int, columns: int) -> None:
    """Refuse what are not rows of integers of a few bits in bytes."""
    if packed.dtype != np.uint8 or packed.size != rows * -(-columns * bits // 8):
        refuse(
            "packed integers", f"{packed.dtype.name} {list(packed.shape)}", f"uint8, {bits} bits for {rows}·{columns}"
        )


def packed_in_bytes(elements: Array) -> Array:
    """Pack integers of four bits, two in a byte, the first in the lower bits."""
    halves = elements.astype(np.int8).reshape(-1).view(np.uint8) & np.uint8(15)
    if halves.size % 2:
        halves = np.append(halves, np.uint8(0))
    packed: Array = halves[::2] | halves[1::2] << np.uint8(4)
    return packed


MATMUL_NBITS: Final = Composite(
    matmul_nbits, "matmulNBits", MATMUL_NBITS_LIMITS, by_dequantizing, tables=("b", "zero_points")
)


GATHER_BLOCK_QUANTIZED: Final = Composite(gather_block_quantized, "gatherBlockQuantized", GATHER_LIMITS, by_unpacking)
