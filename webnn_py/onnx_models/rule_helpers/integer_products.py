"""Integer products by WebNN, which multiplies floats only: in sums so short that float32 is exact, added in int32.

A float32 holds every integer up to 2**24, and a sum of integers none of whose partial sums is greater is exact in any
order. How long sums may be follows from the types, or from the values where these are known.
"""

import math
from collections.abc import Callable
from functools import cached_property, reduce
from itertools import pairwise
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.decompositions.common import cut
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, StaticValue, Value
from webnn_py.onnx_models.rules.matrix import matmul

EXACT: Final = 2**24
"""Every integer up to this is a float32."""


@attrs.frozen(slots=False)
class Integers:
    """Integers of 8 bits and their zero point.

    Attributes:
        integers: the integers.
        zero_point: their zero point; None for 0.
        largest: the greatest magnitude that their differences can have.
        known: both, if they are known.
    """

    integers: MLOperand
    zero_point: MLOperand | None
    largest: int
    known: tuple[StaticValue, StaticValue] | None

    @cached_property
    def magnitudes(self) -> NDArray[np.float32]:
        """The magnitudes of the differences, which are known, as floats: numpy adds those up in far less time."""
        assert self.known is not None  # noqa: S101 - for type checkers
        x, zero = self.known
        differences = x.astype(np.float32)
        if self.zero_point is not None:
            differences -= zero.astype(np.float32)  # of another type numpy converts both to float64
        return np.abs(differences, out=differences)

    def largest_sum(self, starts: range, axis: int, over: tuple[int, ...] = ()) -> int:
        """Return the greatest sum of magnitudes along an axis, from each start to the next, and over other axes.

        It is exact up to ``EXACT``, and not below that if the sum is not.
        """
        ends = [*starts[1:], self.magnitudes.shape[axis]]
        before = (slice(None),) * axis
        parts = [self.magnitudes[(*before, slice(begin, end))] for begin, end in zip(starts, ends, strict=True)]
        return int(max(part.sum(axis=(axis, *over)).max() for part in parts))

    def ends(self, length: int, largest: int) -> list[int]:
        """Return the ends of groups of rows over which sums, of factors up to a magnitude, are exact in float32."""

        def largest_sum(starts: range) -> int:
            return self.largest_sum(starts, self.integers.rank - 2) * largest

        parts = bounds(length, self.largest * largest, None if self.known is None else largest_sum)
        return [end for _, end in parts]


@attrs.frozen(slots=False)
class Shifted(Integers):
    """Integers less their zero point.

    Attributes:
        operand: the differences, as float32.
    """

    operand: MLOperand


def shifted(context: ConversionContext, x: Value, zero_point: Value | None) -> Shifted:
    """Return integers of 8 bits less a zero point that broadcasts to them."""
    both = bytes_of(context, x, zero_point)
    floats = context.cast(both.integers, "float32")
    if both.zero_point is not None:
        floats = context.sub(floats, context.cast(both.zero_point, "float32"))
    return Shifted(both.integers, both.zero_point, both.largest, both.known, floats)


def bytes_of(context: ConversionContext, x: Value, zero_point: Value | None) -> Integers:
    """Return integers of 8 bits and a zero point that broadcasts to them."""
    operand = context.operand(x)
    if operand.data_type not in ("int8", "uint8"):
        refuse("the data type of an integer factor", operand.data_type, "int8 or uint8")
    low, high = INTEGER_RANGES[operand.data_type]
    if zero_point is None:
        zero, own = np.zeros((), np.int32), None
    else:
        own = context.operand(zero_point)
        _check_zero_point(operand, own)
        if isinstance(zero_point, MLOperand):
            return Integers(operand, own, high - low, None)
        zero = zero_point.astype(np.int32)
    largest = max(int(high - zero.min()), int(zero.max() - low))
    return Integers(operand, own if zero.any() else None, largest, (x, zero) if isinstance(x, np.ndarray) else None)


def _check_zero_point(x: MLOperand, zero_point: MLOperand) -> None:
    if zero_point.data_type != x.data_type:
        refuse("the data type of a zero point", zero_point.data_type, f"{x.data_type}, that of what it belongs to")
    broadcast = zip(reversed(zero_point.shape), reversed(x.shape), strict=False)
    if zero_point.rank > x.rank or any(size not in (1, target) for size, target in broadcast):
        refuse("the shape of a zero point", zero_point.shape, f"such that it broadcasts to {list(x.shape)}")


def product(context: ConversionContext, a: Shifted, b: Shifted) -> MLOperand:
    """Return the matrix product as int32; both have at least two dimensions."""
    if min(a.operand.rank, b.operand.rank) < 2:
        refuse("the ranks of the factors", (a.operand.rank, b.operand.rank), "at least 2")
    ends = b.ends(a.operand.shape[-1], a.largest)
    if len(ends) == 1:
        return context.cast(matmul(context, a.operand, b.operand), "int32")

    def part(begin: int, end: int) -> MLOperand:
        left = cut(context, a.operand, a.operand.rank - 1, begin, end)
        right = cut(context, b.operand, b.operand.rank - 2, begin, end)
        return context.cast(matmul(context, left, right), "int32")

    return reduce(context.add, [part(begin, end) for begin, end in pairwise([0, *ends])])


def convolution(
    context: ConversionContext,
    x: Shifted,
    w: Shifted,
    groups: int,
    convolved: Callable[[MLOperand, MLOperand], MLOperand],
) -> MLOperand:
    """Return a convolution as int32.

    Args:
        context: what to build with.
        x: the images, [N, C, ...].
        w: the filters, [M, C / groups, ...].
        groups: in how many the channels are.
        convolved: computes the convolution in float32, of any number of channels.
    """
    channels, window = w.operand.shape[1], math.prod(w.operand.shape[2:])

    def largest_sum(starts: range) -> int:
        return w.largest_sum(starts, 1, tuple(range(2, w.operand.rank))) * x.largest

    parts = bounds(channels, x.largest * w.largest * window, None if w.known is None else largest_sum)
    if len(parts) == 1:
        return context.cast(convolved(x.operand, w.operand), "int32")

    def part(begin: int, end: int) -> MLOperand:
        batch, _, *sizes = x.operand.shape
        by_group = context.reshape(x.operand, [batch, groups, channels, *sizes])
        images = context.reshape(cut(context, by_group, 2, begin, end), [batch, groups * (end - begin), *sizes])
        return context.cast(convolved(images, cut(context, w.operand, 1, begin, end)), "int32")

    return reduce(context.add, [part(begin, end) for begin, end in parts])


def bounds(length: int, largest_term: int, largest_sum: Callable[[range], int] | None) -> list[tuple[int, int]]:
    """Return where to cut sums of a length, so that each part is exact in float32.

    Args:
        length: the number of terms.
        largest_term: the greatest magnitude that a term can have.
        largest_sum: the greatest magnitude of the parts that begin at some indices, if it is known.

    Raises:
        Refused: a single term can be too large.
    """
    safe, size = EXACT // max(1, largest_term), length
    while size > safe and (largest_sum is None or largest_sum(range(0, length, size)) > EXACT):
        if size == 1:
            refuse("the sum of the products of one channel", f"of terms up to {largest_term}", f"at most {EXACT}")
        size = -(-size // 2)
    return [(begin, min(begin + size, length)) for begin in range(0, length, size)]
