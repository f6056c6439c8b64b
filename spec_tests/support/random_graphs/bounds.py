"""Static bounds of a value: its range, its grid, and the largest allowed difference between two devices.

A device rounds as it likes within what the operator promises, so two devices compute values apart by no more than

* what the operands are apart, times the operator's steepest slope over their ranges (the *spread*), and
* what each of the devices rounds: a few units in the last place of the greatest magnitude.

Both are added up along the graph, so that every value has an absolute bound for all data in the ranges. It is 0, and
the devices have to agree to the bit (but for the sign of zeros), for everything that only moves elements, for
integers, and for floats that are multiples of one power of two, the *grid*, and too few bits long to be rounded: sums
and products of these are exact in whatever order. What jumps (comparisons, rounding, casts to integers, the position
of the greatest) is drawn for such values only.
"""

import math

import attrs

from webnn_py.core.operators.casting import INTEGER_RANGES

FLOAT32_BITS = 24
FLOAT16_LEAST = 2.0**-14
"""The least float16 with all bits; an adapter may make zeros of what is below."""

FINEST = 2.0**-40
"""Grids that are finer are not kept track of."""

EXACT_SUM = 2
"""Units in the last place for one sum or product on each device."""

SMOOTH = 8
"""Units in the last place for a function: 4 on each device, which the operators' cases allow at most."""


@attrs.frozen
class Known:
    """Bounds that hold for every element.

    Attributes:
        low: the least value, up to ``error``.
        high: the greatest, likewise.
        step: a power of two of which all are multiples, or 0 where none is known.
        error: how far two devices may be apart.
        relative: how much further, as a share of what they compute; the oracles ask for it.
    """

    low: float
    high: float
    step: float = 0
    error: float = 0
    relative: float = 0

    @property
    def most(self) -> float:
        return max(abs(self.low), abs(self.high))

    @property
    def is_exact(self) -> bool:
        return self.error == 0


def rounded(data_type, low, high, *, step=0.0, spread=0.0, ulps=EXACT_SUM, sums=None) -> Known:
    """Return the bounds of floats that are computed in float32 and rounded once.

    Args:
        data_type: what they are rounded to.
        low: the least exact value.
        high: the greatest.
        step: the grid of everything on the way to the result, 0 where there is none.
        spread: how far apart the devices' results would be if they did not round.
        ulps: what the devices round, in float32's units in the last place of the greatest magnitude on the way.
        sums: that magnitude, where it is not the result's.
    """
    most = max(abs(low), abs(high))
    sums = most if sums is None else sums
    step = step if step >= (FLOAT16_LEAST if data_type == "float16" else FINEST) else 0.0
    if spread == 0 and step and sums <= step * 2**FLOAT32_BITS:
        return Known(low, high, step)
    return Known(low, high, step, spread + ulps * 2**-23 * sums + float16_unit(data_type, most))


def float16_unit(data_type, most):
    """Return the error that rounding to float16 may add: one ULP, where the devices are on either side of a tie."""
    return most * 2**-10 + FLOAT16_LEAST if data_type == "float16" else 0.0


def moved(*values) -> Known:
    """Elements of any of these values, as they are."""
    steps = [value.step for value in values]
    return Known(
        min(value.low for value in values),
        max(value.high for value in values),
        min(steps),
        max(value.error for value in values),
    )


def number(value) -> Known:
    """A number that both devices know exactly, a multiple of 1/64."""
    return Known(value, value, 1 if isinstance(value, int) else 2.0**-6)


def whole(data_type, low, high) -> Known:
    """Integers, which wrap around where they do not fit."""
    lowest, highest = INTEGER_RANGES[data_type]
    low, high = math.floor(low), math.ceil(high)
    return Known(low, high, 1) if lowest <= low and high <= highest else Known(lowest, highest, 1)


def computed(data_type, low, high, **of_floats) -> Known:
    """Results of arithmetic, whatever the data type."""
    return rounded(data_type, low, high, **of_floats) if is_float(data_type) else whole(data_type, low, high)


def is_float(data_type) -> bool:
    return data_type.startswith("float")


def product(a, b) -> Known:
    """Products of two values, before they are rounded: the error is the spread."""
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    spread = a.most * b.error + b.most * a.error + a.error * b.error
    return Known(min(corners), max(corners), a.step * b.step, spread)


def of_sum(data_type, a, b) -> Known:
    """Sums of two values."""
    low, high, error = a.low + b.low, a.high + b.high, a.error + b.error
    if error == 0 and data_type == "float32":  # rounded once, by both devices alike
        return Known(low, high, min(a.step, b.step))
    return computed(data_type, low, high, step=min(a.step, b.step), spread=error)


def total(data_type, count, terms, *, plus=None, ulps=0) -> Known:
    """Sums of ``count`` terms, and of one value more.

    Rounding errors of a sum add up like a random walk: with the square root of the number of terms. Four times that
    is not exceeded in practice; that they all have one sign, and add up in full, is not either.
    """
    low, high = count * terms.low, count * terms.high
    spread, step, sums = count * terms.error, terms.step, count * terms.most
    if plus is not None:
        low, high, spread = low + plus.low, high + plus.high, spread + plus.error
        step, sums = min(step, plus.step), sums + plus.most
    ulps += 2 * EXACT_SUM + min(count, 4 * math.sqrt(count))
    return computed(data_type, low, high, step=step, spread=spread, ulps=ulps, sums=sums)


@attrs.frozen(eq=False)
class Value:
    """A value of a program; operators' shape rules take it for an operand."""

    name: str
    data_type: str
    shape: tuple[int, ...]
    known: Known

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return self.name
