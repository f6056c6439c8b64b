"""Bars on the standard error while something takes long, if that is a terminal and ``tqdm`` is installed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from webnn_py.core.message_text import visible

Advance = Callable[[int, int], None]
"""Takes the number of steps that are done, and of all."""


@contextmanager
def bar(what: str, unit: str) -> Iterator[Advance]:
    """Show a bar for something that can be counted."""
    shown = _tqdm(desc=visible(what), unit=f" {unit}")

    def advance(done: int, total: int) -> None:
        if shown is not None:
            shown.total = total
            shown.update(done - shown.n)

    try:
        yield advance
    finally:
        if shown is not None:
            shown.close()


def _tqdm(**options: Any) -> Any:
    """Return a bar that is cleared at its end; None where it would not be visible."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    tqdm.monitor_interval = 0  # no thread of its own: what is shown is refreshed here
    return tqdm(file=sys.stderr, leave=False, dynamic_ncols=True, **options)
