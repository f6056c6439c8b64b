"""Count the turns of trio's scheduler."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Turns(trio.abc.Instrument):
    """Counts how often trio has looked for tasks that can go on."""

    count = 0

    def after_io_wait(self, timeout: float) -> None:
        self.count += 1


@contextmanager
def counted_turns() -> Iterator[Turns]:
    """Count the turns of trio while this lasts."""
    turns = Turns()
    trio.lowlevel.add_instrument(turns)
    try:
        yield turns
    finally:
        trio.lowlevel.remove_instrument(turns)
