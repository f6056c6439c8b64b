"""A trace for code that is not asynchronous: it begins and ends in the loop's thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from webnn_py.errors import InvalidStateError
from webnn_py.runtime.loop_thread import LoopThread
from webnn_py.tracing.trace import Trace


@contextmanager
def traced(loop: LoopThread, *, kernels: bool, most_events: int) -> Iterator[Trace]:
    """Record what happens on the timelines of a loop."""
    trace = loop.run_sync(lambda: loop.ml.trace(kernels=kernels, most_events=most_events).__enter__())
    try:
        yield trace
    finally:
        try:
            loop.run_sync(trace.__exit__, None, None, None)
        except InvalidStateError:  # the loop has ended with the last environment: nothing happens there any more
            trace.__exit__(None, None, None)
