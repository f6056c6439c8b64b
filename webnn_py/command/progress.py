"""Bars on the standard error while something takes long, if that is a terminal and ``tqdm`` is installed."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import trio

from webnn_py.core.message_text import visible

Advance = Callable[[int, int], None]
"""Takes the number of steps that are done, and of all."""

SECONDS: Final = 0.2
"""Between two looks at a clock that is shown."""


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


@asynccontextmanager
async def clock(what: str) -> AsyncIterator[None]:
    """Show the elapsed time of the block."""
    shown = _tqdm(desc=visible(what), bar_format="{desc} {elapsed}")
    if shown is None:
        yield
        return

    async def tick() -> None:
        while True:
            shown.refresh()
            await trio.sleep(SECONDS)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            yield
            nursery.cancel_scope.cancel()
    finally:
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
