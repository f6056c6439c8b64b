"""Orders of rows of integer weights in which onnxruntime multiplies them by uint8 as int8, rightly and fast.

On x86 without VNNI it multiplies rows 2k and 2k + 1 by two bytes and adds both products in 16 bits, which saturate
(``vpmaddubsw``). They cannot where, in each column, what is positive of the two is at most 128 together, and what is
negative at least -128: 255 · 128 is 32,640. The sums of such weights are those of uint8 by uint8, in half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

MOST: Final = 128
"""What the positive weights of a pair may be together, and the negative ones less than 0."""

LOUD: Final = MOST // 2
"""Of two weights that are too much together, one is beyond this."""

MOST_LOUD: Final = 2**14
"""How many loud weights a matrix may have for an order to be looked for: more leave none, as a rule."""

FIRST: Final = 64
"""Of how many rows it shows soon if far too many weights are loud."""

MOST_COMPARED: Final = 2**21
"""How many weights are looked at, beside loud ones, for other orders: some 3 ms."""

MOST_ROWS: Final = 2**14
"""Of how many rows sums on the way, with what zero points take away, fit into int32: with VNNI they saturate there."""

ROUNDS: Final = 4
"""How often all pairs that are too loud are looked at: a partner may be free after others were exchanged."""

Order = NDArray[np.intp]
Weights = NDArray[np.int8]
Flags = NDArray[np.bool_]


def paired(matrices: Sequence[Weights]) -> Order | None:
    """An order of the rows in which no pair is too loud, of few rows elsewhere than now; None where none is found.

    Args:
        matrices: the weights, [rows, columns], that are to be in one order; of an odd number of rows the last one has
            no partner, and stays.
    """
    order = np.arange(len(matrices[0]))
    count = len(order) // 2 * 2
    if count > MOST_ROWS:
        return None
    loud = [one for matrix in matrices if (one := _Loud.of(matrix[:count])) is not None]
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
    """The weights of a matrix that are too much beside some.

    Attributes:
        rows: all weights.
        of_row: the row of each of them, ascending.
        columns: their columns.
        flips: -1 for those below 0, whose bits, and those of others beside them, are looked at inverted, else 0.
        left: the most that the other one of a pair may be, of these bits.
    """

    rows: Weights
    of_row: Order
    columns: Order
    flips: Weights
    left: Weights

    @classmethod
    def of(cls, rows: Weights) -> _Loud | None:
        """Those of a matrix; None where there are too many."""
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
        """Whether each pair, as the rows are now, is too loud."""
        wrong = np.zeros(len(self.rows) // 2, np.bool_)
        beside = self.rows[self.of_row ^ 1, self.columns] ^ self.flips
        wrong[self.of_row[beside > self.left] // 2] = True
        return wrong

    def conflicts(self) -> tuple[Order, Order]:
        """Which rows may be no partners of which."""
        are_beyond = (self.rows.take(self.columns, 1) ^ self.flips) > self.left
        beside, place = np.divmod(np.flatnonzero(are_beyond), max(len(self.columns), 1))
        return self.of_row[place], beside


def _exchanged(pairs: Order, are_wrong: Flags, loud: Sequence[_Loud]) -> Order | None:
    """Pairs, [2, pairs], whose second rows are exchanged until none is wrong; None where some are left."""
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
                other = found[are_wrong[found].argmax()]  # best of a pair that is wrong itself
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
