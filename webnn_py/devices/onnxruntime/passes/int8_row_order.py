"""Row orders of integer weights in which onnxruntime's int8 product by uint8 is both exact and fast.

On x86 without VNNI, onnxruntime multiplies rows 2k and 2k + 1 by two bytes and adds both products in 16 bits, which
saturate (``vpmaddubsw``). They cannot saturate where, in each column, the positive weights of the pair sum to at most
128, and the negative ones to at least -128: 255 · 128 is 32,640. The sums then equal those of uint8 by uint8, which
take twice the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

MOST: Final = 128
"""The largest sum of the positive weights of a pair, and of the magnitudes of its negative ones."""

LOUD: Final = MOST // 2
"""The magnitude that at least one of two weights exceeds whose sum is out of bounds."""

MOST_LOUD: Final = 2**14
"""The most loud weights of a matrix for which an order is searched: with more there is usually none."""

FIRST: Final = 64
"""The number of rows that suffice to detect a matrix with far too many loud weights."""

MOST_COMPARED: Final = 2**21
"""The most weights that are compared with loud ones in the search for an order: some 3 ms."""

MOST_ROWS: Final = 2**14
"""The most rows whose partial sums, less the zero points' share, fit into int32: with VNNI they saturate there."""

ROUNDS: Final = 4
"""How often all conflicting pairs are visited: a partner may become free when others are exchanged."""

Order = NDArray[np.intp]
Weights = NDArray[np.int8]
Flags = NDArray[np.bool_]


def paired(matrices: Sequence[Weights]) -> Order | None:
    """Return a row order in which no pair can saturate, with few rows moved; None where none is found.

    Args:
        matrices: the weights, [rows, columns], that get one common order; with an odd number of rows, the last row has
            no partner, and stays.
    """
    order = np.arange(len(matrices[0]))
    count = len(order) // 2 * 2
    if count > MOST_ROWS:
        return None
    loud = [one for matrix in matrices if (one := _Loud.from_rows(matrix[:count])) is not None]
    if len(loud) < len(matrices):
        return None
    are_wrong: Flags = np.logical_or.reduce([one.pairs() for one in loud], axis=0)
    if not are_wrong.any():
        return order
    if count * sum([len(one.columns) for one in loud]) > MOST_COMPARED:
        return None
    pairs = _exchanged(order[:count].reshape(-1, 2).T.copy(), are_wrong, loud)
    if pairs is None:
        return None
    order[:count] = pairs.T.ravel()
    return order


@attrs.frozen(eq=False)
class _Loud:
    """The loud weights of a matrix: those that saturate with some partners.

    rows: all weights.
    of_row: the row of each loud weight, ascending.
    columns: the column of each.
    flips: -1 for negative loud weights, whose bits, and those of their partners, are compared inverted, else 0.
    left: the largest allowed value of the partner, with these bits inverted.
    """

    rows: Weights
    of_row: Order
    columns: Order
    flips: Weights
    left: Weights

    @classmethod
    def from_rows(cls, rows: Weights) -> _Loud | None:
        """Return the loud weights of a matrix; None where there are too many."""
        if np.count_nonzero(rows[:FIRST] > LOUD) > MOST_LOUD:
            return None
        places = np.flatnonzero((rows.max(1, initial=0) > LOUD) | (rows.min(1, initial=0) < -LOUD))
        some = rows[places]
        are_loud = some > LOUD
        are_loud |= some < -LOUD
        if np.count_nonzero(are_loud) > MOST_LOUD:
            return None
        place, columns = np.divmod(np.flatnonzero(are_loud), rows.shape[1])
        weights = some[place, columns].astype(np.int16)
        flips = weights >> 15
        left = (np.where(weights > 0, MOST, -MOST) - weights) ^ flips  # in int8, since half of it is used up
        return cls(rows, places[place], columns, flips.astype(np.int8), left.astype(np.int8))

    def pairs(self) -> Flags:
        """Return whether each pair can saturate, in the current order of the rows."""
        wrong = np.zeros(len(self.rows) // 2, np.bool_)
        partner = self.rows[self.of_row ^ 1, self.columns] ^ self.flips
        wrong[self.of_row[partner > self.left] // 2] = True
        return wrong

    def conflicts(self) -> tuple[Order, Order]:
        """Return the row pairs that must not be partners, as two arrays."""
        are_beyond = (self.rows.take(self.columns, 1) ^ self.flips) > self.left
        partner, place = np.divmod(np.flatnonzero(are_beyond), max(len(self.columns), 1))
        return self.of_row[place], partner


def _exchanged(pairs: Order, are_wrong: Flags, loud: Sequence[_Loud]) -> Order | None:
    """Return the pairs, [2, pairs], with second rows exchanged until none can saturate; None where some still can."""
    conflicts = np.zeros((pairs.size, pairs.size), np.bool_)
    for one, other in [part.conflicts() for part in loud]:
        conflicts[one, other] = conflicts[other, one] = True

    def exchange(at: int) -> None:
        first, second = pairs[:, at]
        for side in (1, 0):
            are_right = ~(conflicts[first, pairs[side]] | conflicts[second, pairs[1 - side]])
            are_right[at] = False
            found = are_right.nonzero()[0]
            if found.size:
                other = found[are_wrong[found].argmax()]  # preferably a pair that conflicts itself
                pairs[1, at], pairs[side, other] = pairs[side, other], second
                are_wrong[[at, other]] = False
                return

    for _ in range(ROUNDS):
        for at in are_wrong.nonzero()[0].tolist():
            if are_wrong[at]:
                exchange(at)
        if not are_wrong.any():
            return pairs
    return None
