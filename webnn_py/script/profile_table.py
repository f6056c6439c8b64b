"""A profile's numbers as text, in a table that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

WIDTH: Final = 100
"""Columns that a table takes at most."""

CUT: Final = "…"


def duration(seconds: float) -> str:
    """Return a time in three digits."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{_digits(seconds * factor)} {unit}"
    return f"{_digits(seconds * 1e6)} µs"


def share(part: float) -> str:
    """Return a part of something in per cent."""
    return f"{100 * part:.1f}%"


def rate(per_second: float, unit: float) -> str:
    """Return a rate in a unit, in three digits or three places; nothing for none."""
    value = per_second / unit
    if not value:
        return ""
    return f"{value:.3f}" if value < 1 else _digits(value)


def count(amount: float, unit: str) -> str:
    """Return an amount in three digits."""
    for prefix in ("", "k", "M", "G"):
        if amount < 1000:
            return f"{_digits(amount)} {prefix}{unit}" if amount else ""
        amount /= 1000
    return f"{_digits(amount)} T{unit}"


def _digits(value: float) -> str:
    """Three digits, or more where there are more before the point."""
    places = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{places}f}"


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table: numbers to the right, and the last column cut off where the line ends."""
    table = [headings, *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for row in table:
        *numbers, text = row
        line = "  ".join([*(cell.rjust(width) for cell, width in zip(numbers, widths, strict=False)), text])
        yield line if len(line) <= WIDTH else f"{line[: WIDTH - len(CUT)]}{CUT}"
