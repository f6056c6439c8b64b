"""Reductions, arg-reductions and the cumulative sum on arrays.

numpy reduces float32 and integers directly. Elements that must first be mapped or widened go through scratch blocks
that stay in the cache, so that nothing as large as the operand is ever allocated.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from webnn_py.core.graph import Node
from webnn_py.core.operators import reduction
from webnn_py.devices.numpy.routines.blocks import passes
from webnn_py.devices.numpy.routines.float16 import NARROWING, narrow
from webnn_py.devices.numpy.routines.rows import ReducedRows, RowBlock, fold
from webnn_py.devices.numpy.scratch import allowance, scratch
from webnn_py.devices.numpy.table import Array, Kernel, kernel, kernels, scalar

BLOCK = 1 << 16
"""The most elements of a scratch block: 256 KiB of float32."""

SHORT_RUN = 64
"""Runs of fewer contiguous elements than this are not worth a numpy call of their own."""

MOST_ZEROS = 2**12
"""The most means that are multiplied by zeros to test whether they are finite."""

Combine = Callable[[Array, Array], None]
"""Combines axis 1 of (outer, count, inner), which it may overwrite, into (outer, inner)."""

Finish = Callable[[Array], object]
"""Changes the combined values in place."""


def _axes(node: Node) -> tuple[int, ...]:
    axes: tuple[int, ...] | None = node.options["axes"]
    return tuple(range(node.operand("input").rank)) if axes is None else axes


def directly(node: Node, ufunc: np.ufunc) -> Kernel:
    """Make the kernel that reduces the operand directly, in its own data type."""
    axes, keep = _axes(node), node.options["keep_dimensions"]
    data_type = np.dtype(node.outputs[0].data_type)
    rows = ReducedRows.of(node.operand("input").shape, axes)

    def reduce(input: Array, output: Array) -> None:
        ufunc.reduce(input, axis=axes, dtype=data_type, out=output, keepdims=keep)

    if rows.permutation is not None or rows.inner == 1 or rows.count < 8:
        return reduce

    step = max(1, allowance(node) // (rows.count * rows.inner * data_type.itemsize))

    def reduce_rows(input: Array, output: Array) -> None:
        if not input.flags.c_contiguous:
            reduce(input, output)
            return
        values, totals = rows.arrange(input), output.reshape(rows.outer, rows.inner)
        for start in range(0, rows.outer, step):
            fold(ufunc, values[start : start + step], totals[start : start + step])

    return reduce_rows


def in_blocks(
    node: Node,
    combine: Combine,
    *,
    working: npt.DTypeLike,
    before: np.ufunc | None = None,
    finish: Finish | None = None,
) -> Kernel:
    """Make the kernel that reduces scratch blocks of the data type ``working``, after ``before`` on each element."""
    data_type, working = np.dtype(node.outputs[0].data_type), np.dtype(working)
    rows = ReducedRows.of(node.operand("input").shape, _axes(node))
    # Combining and rounding take less scratch for each row than one and a half of its elements.
    item_bytes = working.itemsize * (1.5 + 1.5 / rows.count) + NARROWING / rows.count
    limit = min(BLOCK, int(allowance(node) / item_bytes))
    blocks = rows.blocks(limit)
    in_pieces = len(blocks[0].pieces) > 1
    total_type = np.dtype(np.float64) if in_pieces and working.kind == "f" else working
    memory = scratch(limit, working)

    def combine_block(values: Array, block: RowBlock, total: Array) -> None:
        if not in_pieces:
            combine(_fill(memory, values[block.pieces[0]], block.shape(0), before), total)
            return
        parts = np.empty((1, len(block.pieces), total.shape[1]), working)
        for index, piece in enumerate(block.pieces):
            combine(_fill(memory, values[piece], block.shape(index), before), parts[:, index])
        combine(parts.astype(total_type), total)

    def reduce(input: Array, output: Array) -> None:
        values, outputs = rows.arrange(input), output.reshape(rows.outer, rows.inner)
        for block in blocks:
            result = outputs[block.outer, block.inner]
            total = result if total_type == data_type else np.empty(result.shape, total_type)
            combine_block(values, block, total)
            if finish is not None:
                finish(total)
            if total is not result:
                _round(total, result)

    return reduce


def _fill(memory: Array, values: Array, shape: tuple[int, ...], before: np.ufunc | None = None) -> Array:
    """Put ``values``, mapped by ``before``, into the beginning of the scratch; return that in ``shape``."""
    block = memory[: values.size]
    target = block.reshape(values.shape)
    if before is not None and values.dtype == block.dtype:
        before(values, out=target)
    else:
        np.copyto(target, values)
    if before is not None and values.dtype != block.dtype:
        before(block, out=block)
    return block.reshape(shape)


def _round(totals: Array, output: Array) -> None:
    if totals.dtype == np.float32:
        narrow(totals, output)
    else:
        np.copyto(output, totals, casting="same_kind")


def _working(node: Node, *, wide: bool = False) -> str:
    """Return the data type to compute in: float32 for float16, float64 for float32 if ``wide``, else the operand's."""
    data_type = node.outputs[0].data_type
    return {"float16": "float32", "float32": "float64" if wide else "float32"}.get(data_type, data_type)


def _plain(node: Node, ufunc: np.ufunc) -> Kernel:
    if node.outputs[0].data_type == "float16":
        return in_blocks(node, partial(fold, ufunc), working=np.float32)
    return directly(node, ufunc)


kernels(_plain, {reduction.reduce_sum: np.add, reduction.reduce_max: np.maximum, reduction.reduce_min: np.minimum})
kernels(_plain, {reduction.reduce_product: np.multiply}, work=passes(4))
kernels(
    lambda node, before: in_blocks(node, partial(fold, np.add), working=_working(node), before=before),
    {reduction.reduce_l1: np.absolute, reduction.reduce_sum_square: np.square},
    work=passes(2),
)


@kernel(reduction.reduce_l2, work=passes(2))
def reduce_l2(node: Node) -> Kernel:
    working = _working(node, wide=True)
    return in_blocks(node, partial(fold, np.add), working=working, before=np.square, finish=_in_place(np.sqrt))


@kernel(reduction.reduce_log_sum, work=passes(2))
def reduce_log_sum(node: Node) -> Kernel:
    return in_blocks(node, partial(fold, np.add), working=_working(node, wide=True), finish=_in_place(np.log))


def _in_place(ufunc: np.ufunc) -> Finish:
    return lambda totals: ufunc(totals, out=totals)


@kernel(reduction.reduce_mean)
def reduce_mean(node: Node) -> Kernel:
    count = ReducedRows.of(node.operand("input").shape, _axes(node)).count

    def divide(totals: Array) -> None:
        np.divide(totals, count, out=totals)

    widened = in_blocks(node, partial(fold, np.add), working=_working(node, wide=True), finish=divide)
    if node.outputs[0].data_type == "float16":
        return widened
    add = directly(node, np.add)
    divisor, zeros = scalar(count, "float32"), np.zeros(min(node.outputs[0].element_count, MOST_ZEROS), np.float32)
    is_little = zeros.size == node.outputs[0].element_count

    def mean(input: Array, output: Array) -> None:
        add(input, output)
        np.divide(output, divisor, out=output)
        # The dot product by zeros, one call of BLAS, is 0, or NaN where a mean is not finite.
        if (np.vdot(output, zeros) != 0) if is_little else not np.isfinite(output).all():
            widened(input, output)  # the mean may be within the range of float32 where the sum is not

    return mean


@kernel(reduction.reduce_log_sum_exp, work=passes(5))
def reduce_log_sum_exp(node: Node) -> Kernel:
    return in_blocks(node, log_sum_exp, working=np.float32)


def log_sum_exp(values: Array, output: Array) -> None:
    """Combine axis 1 without overflow of exponentials: the maximum is subtracted first, unless it is infinite."""
    fold(np.maximum, values, output)
    shift = np.where(np.isfinite(output), output, 0)
    np.subtract(values, shift[:, np.newaxis], out=values)
    np.exp(values, out=values)
    fold(np.add, values, output)
    np.log(output, out=output)
    np.add(output, shift, out=output)


def _arg(node: Node, search: Callable[..., Array]) -> Kernel:
    rows = ReducedRows.of(node.operand("input").shape, (node.options["axis"],))
    in_float16 = node.operand("input").data_type == "float16"
    # Where rows are interleaved, numpy transposes them first; indices are 64 bits.
    item_bytes = (4 if in_float16 else 0) + (8 if rows.inner > 1 else 0) + 8 / rows.count
    limit = int(allowance(node) / item_bytes)
    if not in_float16 and rows.inner == 1:
        limit = max(limit, rows.count)
    blocks = rows.blocks(limit, run=1)
    memory = scratch(limit if in_float16 else 0)

    def filled(values: Array, shape: tuple[int, ...]) -> Array:
        return _fill(memory, values, shape) if in_float16 else values.reshape(shape)

    def arg(input: Array, output: Array) -> None:
        values, indices = rows.arrange(input), output.reshape(rows.outer, rows.inner)
        for block in blocks:
            result = indices[block.outer, block.inner]
            if len(block.pieces) == 1:
                found = search(filled(values[block.pieces[0]], block.shape(0)), axis=1)
            else:
                pieces = (filled(values[piece], block.shape(index)) for index, piece in enumerate(block.pieces))
                found = _first_of(pieces, [counts.start for counts in block.counts], search)
            np.copyto(result, found, casting="same_kind")

    return arg


kernels(_arg, {reduction.arg_min: np.argmin, reduction.arg_max: np.argmax}, work=passes(2))


def _first_of(pieces: Iterator[Array], starts: list[int], search: Callable[..., Array]) -> Array:
    """Return the first place of the extreme, or of NaN, in rows that come in pieces."""
    bests, places = [], []
    for piece, start in zip(pieces, starts, strict=True):
        place = search(piece, axis=1)
        bests.append(np.take_along_axis(piece, place[:, np.newaxis], 1))
        places.append(place + start)
    choice = search(np.concatenate(bests, 1), axis=1)
    return np.take_along_axis(np.stack(places, 1), choice[:, np.newaxis], 1)[:, 0]


@kernel(reduction.cumulative_sum, work=passes(8))
def cumulative_sum(node: Node) -> Kernel:
    rows = ReducedRows.of(node.operand("input").shape, (node.options["axis"],))
    exclusive, step = node.options["exclusive"], -1 if node.options["reversed"] else 1
    working = np.dtype(_working(node, wide=True))
    scan: Callable[..., object] = partial(np.add.accumulate, axis=1, dtype=working)
    if working != node.outputs[0].data_type:
        memory = scratch(max(SHORT_RUN, min(BLOCK, allowance(node) // working.itemsize)), working)
        scan = partial(_scan_side_by_side if rows.inner >= SHORT_RUN else _scan_rows, memory)

    def accumulate(input: Array, output: Array) -> None:
        values = rows.arrange(input)[:, ::step]
        sums = output.reshape(rows.outer, rows.count, rows.inner)[:, ::step]
        if exclusive:
            sums[:, 0] = 0
            values, sums = values[:, :-1], sums[:, 1:]
        scan(values, out=sums)

    return accumulate


def _scan_side_by_side(memory: Array, values: Array, *, out: Array) -> None:
    """Accumulate along axis 1, for many interleaved rows at once."""
    outer, count, inner = values.shape
    width = min(inner, memory.size)
    rows = max(1, memory.size // width)
    for row, column in itertools.product(range(0, outer, rows), range(0, inner, width)):
        block = slice(row, row + rows), slice(None), slice(column, column + width)
        some, sums = values[block], out[block]
        lines, _, columns = some.shape
        total = memory[: lines * columns].reshape(lines, columns)
        total.fill(0)
        for position in range(count):
            np.add(total, some[:, position], out=total)
            np.copyto(sums[:, position], total, casting="same_kind")


def _scan_rows(memory: Array, values: Array, *, out: Array) -> None:
    """Accumulate along axis 1, some rows at a time, or one row in successive pieces."""
    outer, count, inner = values.shape
    step = max(1, min(count, memory.size // inner))
    rows = max(1, memory.size // (step * inner))
    for row in range(0, outer, rows):
        carry: Array | None = None
        for start in range(0, count, step):
            piece = slice(row, row + rows), slice(start, start + step)
            block = memory[: values[piece].size].reshape(values[piece].shape)
            np.copyto(block, values[piece])
            if carry is not None:
                np.add(block[:, 0], carry, out=block[:, 0])
            np.add.accumulate(block, axis=1, out=block)
            np.copyto(out[piece], block, casting="same_kind")
            carry = block[:, -1].copy()
