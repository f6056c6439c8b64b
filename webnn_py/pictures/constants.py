"""Statistics of constants, computed piece by piece, so that a large weight takes no memory."""

import math
from collections.abc import Iterator
from typing import Any, Final, Self

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.core.descriptors import FOUR_BITS, INT4, MLOperandDescriptor

PIECE: Final = 2**20
"""The number of elements that are processed at a time."""

Array = npt.NDArray[Any]


@attrs.frozen
class ConstantStatistics:
    """Statistics of a constant's elements.

    Attributes:
        min: the smallest, infinities among them; None where every element is NaN.
        max: the largest, in the same form.
        mean: of the finite elements, in float64; None where there is none.
        std: their standard deviation, that of the whole population.
        zeros: how many elements are 0 or -0.
        nan: how many are NaN.
        infinite: how many are infinite.
    """

    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: int
    nan: int
    infinite: int

    @classmethod
    def from_data(cls, data: Array, descriptor: MLOperandDescriptor) -> Self:
        """Compute the statistics of all elements.

        Args:
            data: the host's copy of the constant; a byte holds two elements of four bits.
            descriptor: the constant's data type and shape.
        """
        smallest: list[float] = []
        largest: list[float] = []
        zeros = nan = infinite = finite = 0
        mean = deviations = 0.0
        for piece in _pieces(data, descriptor):
            numbers = piece[~np.isnan(piece)]
            wide = numbers[np.isfinite(numbers)].astype(np.float64)
            zeros += piece.size - int(np.count_nonzero(piece))
            nan += piece.size - numbers.size
            infinite += numbers.size - wide.size
            if numbers.size:
                smallest.append(numbers.min().item())
                largest.append(numbers.max().item())
            if wide.size:  # Chan's sums of pieces, in which nothing cancels
                own = float(wide.mean())
                total = finite + wide.size
                deviations += float(np.square(wide - own).sum()) + (own - mean) ** 2 * finite * wide.size / total
                mean += (own - mean) * wide.size / total
                finite = total
        return cls(
            min(smallest, default=None),
            max(largest, default=None),
            mean if finite else None,
            math.sqrt(deviations / finite) if finite else None,
            zeros,
            nan,
            infinite,
        )


def _pieces(data: Array, descriptor: MLOperandDescriptor) -> Iterator[Array]:
    """Yield the elements in their order."""
    flat = data.reshape(-1)
    if descriptor.data_type not in FOUR_BITS:
        for start in range(0, flat.size, PIECE):
            yield flat[start : start + PIECE]
        return
    left = descriptor.element_count
    for start in range(0, flat.size, PIECE):
        both = flat[start : start + PIECE]
        elements = np.stack([both & 15, both >> 4], 1).reshape(-1)[:left]
        left -= elements.size
        yield (elements ^ 8).astype(np.int8) - np.int8(8) if descriptor.data_type == INT4 else elements
