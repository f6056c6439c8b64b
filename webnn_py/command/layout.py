"""Tables, lengths and times as text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webnn_py.message_text import visible

NARROWER: Final = {"float64": "float32", "int64": "int32"}
"""What narrower types stand for these."""


def table(rows: Iterable[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as their longest cell; control characters are escaped."""
    rows = [[*map(visible, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def in_bytes(length: float) -> str:
    """Return a length in bytes, in a unit that suits it."""
    for unit in ("bytes", "kB", "MB"):
        if length < 1000:
            return f"{length:.0f} {unit}" if unit == "bytes" or length >= 100 else f"{length:.1f} {unit}"
        length /= 1000
    return f"{length:.1f} GB"


def in_time(seconds: float) -> str:
    """Return a duration in milliseconds, or, if it is long, in seconds."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def number(value: float | None) -> str:
    """Return a number in four digits; "none" for none."""
    return "none" if value is None else f"{value:.4g}"


def counted(count: int, noun: str) -> str:
    """Return a count and what is counted: ``1 node``, ``2,000 nodes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
