"""Tables and counts in texts for people to read."""

from collections.abc import Iterable, Iterator, Sequence

from webnn_py.core.message_text import visible


def table(rows: Iterable[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as their longest cell; control characters are escaped."""
    rows = [[*map(visible, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def counted(count: int, noun: str) -> str:
    """Return a count and what is counted: ``1 node``, ``2,000 nodes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
