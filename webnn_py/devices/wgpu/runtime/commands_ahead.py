"""Commands that are encoded ahead: while the host waits for a graph's run, those of the run that is likely to follow.

A graph that is run again on the same buffers has the same commands. So what is left to do then, is to submit them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import wgpu

from webnn_py.devices.wgpu.engines.engine import Launch
from webnn_py.devices.wgpu.runtime.context_queue import ContextQueue

LEAST_LAUNCHES_AHEAD: Final = 16
"""Fewer launches are encoded with what comes before and behind them, in hardly more than the time of a submission."""

MOST_AHEAD: Final = 128
"""The most launches in one command buffer: it is made in one go, and each costs its submission some 10 µs."""

ENCODING_SECONDS: Final = 1.2e-5
"""About what a launch takes at most to be encoded and finished, on a slow host."""

RUNS_BEFORE: Final = 2
"""The runs on the same buffers after which another one is likely; doubled each time that none came.

wgpu-native leaks some 100 kB of each command buffer that is finished and not submitted.
"""


class CommandsAhead:
    """The commands of a graph's next run, in the buffers of its last one: as many as there was time for.

    Args:
        queue: of the context.
    """

    def __init__(self, queue: ContextQueue) -> None:
        self._queue = queue
        self._launches: Sequence[Launch] = ()
        self._finished: list[Any] = []  # command buffers
        self._count = 0
        self._runs = 0
        self._runs_before = RUNS_BEFORE

    def forget(self, launches: Sequence[Launch] | None) -> None:
        """Let go of what is encoded.

        Args:
            launches: those of the runs that follow; None where nothing may be encoded ahead.
        """
        finished, _ = self.take()
        self._queue.engine.release(finished)
        self._runs_before *= 2 if finished else 1
        self._launches = () if launches is None or len(launches) < LEAST_LAUNCHES_AHEAD else launches
        self._runs = 0

    def take(self) -> tuple[list[Any], int]:
        """Return the command buffers, which are the caller's now, and how many launches are in them."""
        taken = self._finished, self._count
        self._finished, self._count = [], 0
        return taken

    def launched(self) -> None:
        """Take note of a run."""
        self._runs += 1

    def encode_within(self, seconds: float) -> bool:
        """Encode some more launches, if they are likely to be wanted and there is time; whether any were encoded."""
        left = len(self._launches) - self._count
        count = min(left, MOST_AHEAD, int(seconds / ENCODING_SECONDS))
        if self._runs < self._runs_before or not left or count < min(left, LEAST_LAUNCHES_AHEAD):
            return False
        try:
            part = self._launches[self._count : self._count + count]
            self._finished.append(self._queue.encoded(part))
        except wgpu.GPUError:  # the run itself will meet it, and raise
            self.forget(None)
            return False
        self._count += count
        return True
