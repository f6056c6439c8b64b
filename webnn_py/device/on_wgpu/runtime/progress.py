"""Telling a program's function how far a build is, from the build's thread."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

import trio

TELL_SECONDS: Final = 0.01
"""No more often than this, since the build waits until it is told."""


def now_and_then(progress: Callable[[int, int], object]) -> Callable[[int, int], None]:
    """Return a function that calls ``progress`` now and then, in the event loop's thread, and at the end.

    Args:
        progress: the program's; what it raises is raised in the build's thread.
    """
    told = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal told
        now = perf_counter()
        if done == total or now - told >= TELL_SECONDS:
            told = now
            trio.from_thread.run_sync(progress, done, total)

    return tell
