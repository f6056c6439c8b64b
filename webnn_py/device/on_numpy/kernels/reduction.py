"""Reductions, arg-reductions and the cumulative sum on arrays.

numpy reduces float32 and integers as they are. What must first be computed from each element, or be widened, goes
through scratch blocks that stay in the cache, so that nothing as large as the operand is ever allocated.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.device.on_numpy.kernels._blocks import passes
from webnn_py.device.on_numpy.kernels._float16 import in_float32, narrow, widen
from webnn_py.device.on_numpy.table import Array, Kernel, kernel
from webnn_py.graph import Node
from webnn_py.operators import reduction

BLOCK = 1 << 16
"""Elements of a scratch block: 256 KiB of float32."""

RUN = 1024
"""Elements that numpy should find in a row: for fewer, starting its inner loop costs more than running it."""

SHORT_RUN = 64
"""Fewer elements side by side than this are not worth a numpy call of their own."""

MAX_BYTE = 255


@attrs.frozen
class Lanes:
    """An operand laid out as (outer, count, inner): ``outer * inner`` lanes of ``count`` elements to combine.

    Attributes:
        permutation: how to order the axes first, if those to reduce are not neighbours; then inner is 1.
        outer: the elements of the axes before the reduced ones.
        count: the elements of the reduced axes.
        inner: the elements of the axes after them.
    """

    permutation: tuple[int, ...] | None
    outer: int
    count: int
    inner: int

    @classmethod
    def of(cls, shape: Sequence[int], axes: Iterable[int]) -> "Lanes":
        """The layout for reducing ``axes``; those of size 1 do not matter."""
        reduced = sorted(axis for axis in axes if shape[axis] != 1)
        if not reduced:
            return cls(None, 1, 1, math.prod(shape))
        first, last = reduced[0], reduced[-1]
        if all(axis in reduced or shape[axis] == 1 for axis in range(first, last)):
            count = math.prod(shape[first : last + 1])
            return cls(None, math.prod(shape[:first]), count, math.prod(shape[last + 1 :]))
        kept = [axis for axis in range(len(shape)) if axis not in reduced]
        outer, count = (math.prod(shape[axis] for axis in group) for group in (kept, reduced))
        return cls((*kept, *reduced), outer, count, 1)

    def arrange(self, array: Array) -> Array:
        """The array as (outer, count, inner); a view if its layout allows."""
        if self.permutation is not None:
            array = array.transpose(self.permutation)
        return array.reshape(self.outer, self.count, self.inner)

    def blocks(self, run: int = RUN) -> "list[Block]":
        """Cut the lanes into blocks of at most BLOCK elements.

        Where that leaves less than ``run`` inner elements to a block, the lanes themselves are cut into pieces.
        """
        inner = min(self.inner, max(run, BLOCK // self.count))
        count = min(self.count, max(1, BLOCK // inner))
        outer = min(self.outer, max(1, BLOCK // (inner * count)))
        pieces = [slice(start, start + count) for start in range(0, self.count, count)]
        return [
            Block(slice(o, o + outer), slice(i, i + inner), pieces)
            for o in range(0, self.outer, outer)
            for i in range(0, self.inner, inner)
        ]


@attrs.frozen
class Block:
    """Some of the lanes, by their outer and inner positions, and the pieces to take them in."""

    outer: slice
    inner: slice
    pieces: list[slice]


Combine = Callable[[Array, Array], None]
"""Combines axis 1 of (outer, count, inner), which it may overwrite, into (outer, inner)."""

Finish = Callable[[Array], None]
"""Changes the combined values in place."""


def fold(ufunc: np.ufunc, values: Array, output: Array) -> None:
    """Combine axis 1 of (outer, count, inner), in long runs and, for the accuracy of sums, in two levels."""
    outer, count, inner = values.shape
    width = max(-(-RUN // inner), math.isqrt(count) if count > 64 else 1)
    if inner == 1 or count < 2 * width or not values.flags.c_contiguous:
        ufunc.reduce(values, axis=1, dtype=values.dtype, out=output)
        return
    rows = count // width
    whole = values[:, : rows * width].reshape(outer, rows, width * inner)
    level = ufunc.reduce(whole, axis=1, dtype=values.dtype).reshape(outer, width, inner)
    rest = values[:, rows * width :]
    begun = level[:, : rest.shape[1]]
    ufunc(begun, rest, out=begun)
    ufunc.reduce(level, axis=1, dtype=values.dtype, out=output)


def _axes(node: Node) -> tuple[int, ...]:
    axes: tuple[int, ...] | None = node.options["axes"]
    return tuple(range(node.operand("input").rank)) if axes is None else axes


def directly(node: Node, ufunc: np.ufunc) -> Kernel:
    """Reduce the operand as it is, in its own data type."""
    axes, keep = _axes(node), node.options["keep_dimensions"]
    data_type = np.dtype(node.outputs[0].data_type)
    lanes = Lanes.of(node.operand("input").shape, axes)

    def reduce(input: Array, output: Array) -> None:
        ufunc.reduce(input, axis=axes, dtype=data_type, out=output, keepdims=keep)

    if lanes.permutation is not None or lanes.inner == 1 or lanes.count < 8:
        return reduce

    def reduce_lanes(input: Array, output: Array) -> None:
        if input.flags.c_contiguous:
            fold(ufunc, lanes.arrange(input), output.reshape(lanes.outer, lanes.inner))
        else:
            reduce(input, output)

    return reduce_lanes


def in_blocks(
    node: Node,
    combine: Combine,
    *,
    working: npt.DTypeLike,
    before: np.ufunc | None = None,
    finish: Finish | None = None,
) -> Kernel:
    """Reduce in scratch blocks of the data type ``working``, after ``before`` on each element."""
    data_type, working = np.dtype(node.outputs[0].data_type), np.dtype(working)
    lanes = Lanes.of(node.operand("input").shape, _axes(node))
    blocks = lanes.blocks()
    in_pieces = len(blocks[0].pieces) > 1
    total_type = np.dtype(np.float64) if in_pieces and working.kind == "f" else working
    scratch = _scratch(lanes, working)

    def combine_piece(piece: Array, output: Array) -> None:
        combine(_fill(scratch, piece, before), output)

    def combine_block(values: Array, block: Block, total: Array) -> None:
        if not in_pieces:
            combine_piece(values[block.outer, :, block.inner], total)
            return
        parts = np.empty((1, len(block.pieces), total.shape[1]), working)
        for index, counts in enumerate(block.pieces):
            combine_piece(values[block.outer, counts, block.inner], parts[:, index])
        combine(parts.astype(total_type), total)

    def reduce(input: Array, output: Array) -> None:
        values = lanes.arrange(input)
        totals = output.reshape(lanes.outer, lanes.inner)
        if total_type != data_type:
            totals = np.empty(totals.shape, total_type)
        for block in blocks:
            combine_block(values, block, totals[block.outer, block.inner])
        if finish is not None:
            finish(totals)
        if total_type != data_type:
            _round(totals, output.reshape(totals.shape))

    return reduce


def _scratch(lanes: Lanes, data_type: npt.DTypeLike) -> Array:
    return np.empty(min(BLOCK, lanes.outer * lanes.count * lanes.inner), data_type)


def _fill(scratch: Array, values: Array, before: np.ufunc | None = None) -> Array:
    """Put ``values``, or what ``before`` makes of them, into the beginning of ``scratch``: a contiguous block."""
    block = scratch[: values.size].reshape(values.shape)
    if before is not None and values.dtype == block.dtype:
        before(values, out=block)
        return block
    if values.dtype == np.float16:
        widen(values, block)
    else:
        np.copyto(block, values)
    if before is not None:
        before(block, out=block)
    return block


def _round(totals: Array, output: Array) -> None:
    if totals.dtype == np.float32:
        narrow(totals, output)
    else:
        np.copyto(output, totals, casting="same_kind")


def _working(node: Node, *, wide: bool = False) -> str:
    """The data type to compute in: float32 for float16, float64 for float32 if ``wide``, or else the operand's."""
    data_type = node.outputs[0].data_type
    return {"float16": "float32", "float32": "float64" if wide else "float32"}.get(data_type, data_type)


def _plain(node: Node, ufunc: np.ufunc) -> Kernel:
    if node.outputs[0].data_type == "float16":
        return in_blocks(node, partial(fold, ufunc), working=np.float32)
    return directly(node, ufunc)


@kernel(reduction.reduce_sum)
def reduce_sum(node: Node) -> Kernel:
    return _plain(node, np.add)


@kernel(reduction.reduce_product, work=passes(4))
def reduce_product(node: Node) -> Kernel:
    return _plain(node, np.multiply)


@kernel(reduction.reduce_max)
def reduce_max(node: Node) -> Kernel:
    return _plain(node, np.maximum)


@kernel(reduction.reduce_min)
def reduce_min(node: Node) -> Kernel:
    return _plain(node, np.minimum)


@kernel(reduction.reduce_mean)
def reduce_mean(node: Node) -> Kernel:
    count = Lanes.of(node.operand("input").shape, _axes(node)).count

    def divide(totals: Array) -> None:
        np.divide(totals, count, out=totals)

    widened = in_blocks(node, partial(fold, np.add), working=_working(node, wide=True), finish=divide)
    if node.outputs[0].data_type == "float16":
        return widened
    add = directly(node, np.add)

    def mean(input: Array, output: Array) -> None:
        add(input, output)
        divide(output)
        if not np.isfinite(output).all():
            widened(input, output)  # the mean may be within the range of float32 where the sum is not

    return mean


@kernel(reduction.reduce_l1, work=passes(2))
def reduce_l1(node: Node) -> Kernel:
    return in_blocks(node, partial(fold, np.add), working=_working(node), before=np.absolute)


@kernel(reduction.reduce_sum_square, work=passes(2))
def reduce_sum_square(node: Node) -> Kernel:
    return in_blocks(node, partial(fold, np.add), working=_working(node), before=np.square)


@kernel(reduction.reduce_l2, work=passes(2))
def reduce_l2(node: Node) -> Kernel:
    def root(totals: Array) -> None:
        np.sqrt(totals, out=totals)

    working = _working(node, wide=True)
    return in_blocks(node, partial(fold, np.add), working=working, before=np.square, finish=root)


@kernel(reduction.reduce_log_sum, work=passes(2))
def reduce_log_sum(node: Node) -> Kernel:
    def logarithm(totals: Array) -> None:
        np.log(totals, out=totals)

    return in_blocks(node, partial(fold, np.add), working=_working(node, wide=True), finish=logarithm)


@kernel(reduction.reduce_log_sum_exp, work=passes(5))
def reduce_log_sum_exp(node: Node) -> Kernel:
    return in_blocks(node, log_sum_exp, working=np.float32)


def log_sum_exp(values: Array, output: Array) -> None:
    """Combine axis 1 so that no exponential overflows: the highest is taken out first, unless it is infinite."""
    fold(np.maximum, values, output)
    shift = np.where(np.isfinite(output), output, 0)
    np.subtract(values, shift[:, np.newaxis], out=values)
    np.exp(values, out=values)
    fold(np.add, values, output)
    np.log(output, out=output)
    np.add(output, shift, out=output)


@kernel(reduction.arg_min, work=passes(2))
def arg_min(node: Node) -> Kernel:
    return _arg(node, np.argmin, np.minimum)


@kernel(reduction.arg_max, work=passes(2))
def arg_max(node: Node) -> Kernel:
    return _arg(node, np.argmax, np.maximum)


def _arg(node: Node, search: Callable[..., Array], extreme: np.ufunc) -> Kernel:
    lanes = Lanes.of(node.operand("input").shape, (node.options["axis"],))
    if 1 < lanes.count <= MAX_BYTE and lanes.inner >= SHORT_RUN:
        return _arg_in_bytes(node, lanes, search, extreme)
    half = node.operand("input").data_type == "float16"

    def arg(input: Array, output: Array) -> None:
        values = lanes.arrange(in_float32(input) if half else input)
        np.copyto(output.reshape(lanes.outer, lanes.inner), search(values, axis=1), casting="same_kind")

    return arg


def _arg_in_bytes(node: Node, lanes: Lanes, search: Callable[..., Array], extreme: np.ufunc) -> Kernel:
    """Search lanes that lie side by side, where numpy's own search would transpose the operand first.

    Whatever equals the extreme of its lane gets a byte that counts down along the lane; the highest byte tells the
    first of them.
    """
    data_type = node.operand("input").data_type
    scratch = _scratch(lanes, np.float32) if data_type == "float16" else None
    marks, ranks = _scratch(lanes, np.bool), _scratch(lanes, np.uint8)
    countdown = np.arange(lanes.count, 0, -1, dtype=np.uint8)[:, np.newaxis]
    blocks = lanes.blocks(run=1)

    def arg_block(values: Array, output: Array) -> None:
        best = np.empty(output.shape, values.dtype)
        fold(extreme, values, best)
        if best.dtype.kind == "f" and np.isnan(best).any():  # NaN equals nothing, but is to be found
            np.copyto(output, search(values, axis=1), casting="same_kind")
            return
        equal = marks[: values.size].reshape(values.shape)
        np.equal(values, best[:, np.newaxis], out=equal)
        rank = ranks[: values.size].reshape(values.shape)
        np.multiply(equal.view(np.uint8), countdown, out=rank)
        np.subtract(lanes.count, np.maximum.reduce(rank, axis=1), out=output, dtype=output.dtype)

    def arg(input: Array, output: Array) -> None:
        values, indices = lanes.arrange(input), output.reshape(lanes.outer, lanes.inner)
        for block in blocks:
            lane = values[block.outer, :, block.inner]
            arg_block(lane if scratch is None else _fill(scratch, lane), indices[block.outer, block.inner])

    return arg


@kernel(reduction.cumulative_sum, work=passes(8))
def cumulative_sum(node: Node) -> Kernel:
    lanes = Lanes.of(node.operand("input").shape, (node.options["axis"],))
    exclusive, step = node.options["exclusive"], -1 if node.options["reversed"] else 1
    scan = _scan_side_by_side if lanes.inner >= SHORT_RUN else _scan_rows
    working = np.dtype(_working(node, wide=True))

    def accumulate(input: Array, output: Array) -> None:
        values = lanes.arrange(input)[:, ::step]
        sums = output.reshape(lanes.outer, lanes.count, lanes.inner)[:, ::step]
        if exclusive:
            sums[:, 0] = 0
            values, sums = values[:, :-1], sums[:, 1:]
        scan(values, sums, working)

    return accumulate


def _scan_side_by_side(values: Array, sums: Array, working: np.dtype[Any]) -> None:
    """Accumulate along axis 1, all lanes at once."""
    total = np.zeros((values.shape[0], values.shape[2]), working)
    for position in range(values.shape[1]):
        np.add(total, values[:, position], out=total)
        np.copyto(sums[:, position], total, casting="same_kind")


def _scan_rows(values: Array, sums: Array, working: np.dtype[Any]) -> None:
    """Accumulate along axis 1, lane by lane, widening a block of lanes at a time."""
    outer, count, inner = values.shape
    step = max(1, BLOCK // max(1, count * inner))
    for start in range(0, outer, step):
        rows = slice(start, start + step)
        np.copyto(sums[rows], np.add.accumulate(values[rows], axis=1, dtype=working), casting="same_kind")
