"""Bars on the standard error while something takes long, if that is a terminal and ``tqdm`` is installed."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import trio

from webnn_py.message_text import visible

Advance = Callable[[int, int], None]
"""Is told how much of how much is done."""

SECONDS: Final = 0.2
"""Between two looks at a clock that is shown."""


@contextmanager
def bar(what: str, unit: str) -> Iterator[Advance]:
    """A bar for something that can be counted."""
    shown = _tqdm(desc=visible(what), unit=f" {unit}")
    try:
        yield (lambda done, total: _advance(shown, done, total)) if shown is not None else _nothing
    finally:
        if shown is not None:
            shown.close()


@asynccontextmanager
async def clock(what: str) -> AsyncIterator[None]:
    """The time that something has taken so far, while it goes on."""
    shown = _tqdm(desc=visible(what), bar_format="{desc} {elapsed}")
    if shown is None:
        yield
        return
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tick, shown)
            yield
            nursery.cancel_scope.cancel()
    finally:
        shown.close()


async def _tick(shown: Any) -> None:
    while True:
        shown.refresh()
        await trio.sleep(SECONDS)


def _advance(shown: Any, done: int, total: int) -> None:
    shown.total = total
    shown.update(done - shown.n)


def _nothing(done: int, total: int) -> None:
    """Show nothing."""


def _tqdm(**options: Any) -> Any:
    """A bar that is cleared at its end; None where nobody would see it."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    tqdm.monitor_interval = 0  # no thread of its own: what is shown is refreshed here
    return tqdm(file=sys.stderr, leave=False, dynamic_ncols=True, **options)
