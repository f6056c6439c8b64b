"""A context's queue: launches are collected, and submitted together.

Errors are raised as wgpu-py's own exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import get_ident
from typing import Any, Protocol

import attrs
import trio
import wgpu

from webnn_py.devices.wgpu.engines import engine_of
from webnn_py.devices.wgpu.engines.engine import Encodes, Engine, Launch, Ticket

Command = Launch | Encodes


@attrs.frozen(eq=False)
class BufferCopy:
    """Bytes to copy from one buffer to another; offsets and length are multiples of 4."""

    source: wgpu.GPUBuffer
    target: wgpu.GPUBuffer
    byte_length: int
    source_offset: int = 0
    target_offset: int = 0

    def encode(self, engine: Engine, encoder: Any) -> None:
        engine.encode_copy(encoder, self.source, self.source_offset, self.target, self.target_offset, self.byte_length)


@attrs.frozen(eq=False)
class BufferClear:
    """Bytes to set to zero, from the beginning of a buffer; a multiple of 4."""

    buffer: wgpu.GPUBuffer
    byte_length: int

    def encode(self, engine: Engine, encoder: Any) -> None:
        engine.encode_clear(encoder, self.buffer, self.byte_length)


class EncodedAhead(Protocol):
    """The first of some launches, as command buffers."""

    def launched(self) -> None:
        """Take note that all of them are launched."""

    def take(self) -> tuple[list[Any], int]:
        """Return the command buffers, which are the caller's now, and how many launches are in them."""


MOST_COLLECTED = 32
"""The launches that take the host about as long as a submission takes."""

FIRST_SUBMITTED = 8
LEAST_LAUNCHES = 16
"""A GPU that has nothing to do gets the first launches by themselves, if there are so many, then twice as many each
time, and works on them while the host encodes the others: 4 to 7 µs each, and 50 for a submission."""


class ContextQueue:
    """A context's queue of a device.

    Launches, and copies between buffers, are collected and submitted together, before anything else that goes into the
    queue: a submission costs more than ten launches, and the GPU pauses between two of them.

    Submissions are made in the thread that this was made in, the event loop's: a task that destroyed the device between
    the check of a submission and the submission itself would end the process.

    Attributes:
        most_collected: as many launches are submitted without waiting for more.
    """

    most_collected = MOST_COLLECTED

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self.engine = engine_of(device)
        self._device = device  # a thread may still be polling when nobody else has the device any more
        self._launches: list[Command] = []
        self._thread = get_ident()
        self.ending: Future[None] = Future()  # done when the context is lost: then builds end
        self._submissions = 0
        self._answered = 0  # so many of them are known to be done
        self._has_fills = False

    def end(self) -> None:
        """The context is lost."""
        if not self.ending.done():
            self.ending.set_result(None)

    @property
    def _is_idle(self) -> bool:
        """Return whether the GPU is known to have done all that was submitted."""
        return self._answered == self._submissions

    def launch(self, launches: Sequence[Command], ahead: EncodedAhead | None = None) -> None:
        """Collect kernels and copies for the next submission; submit while there are many, so that the GPU begins.

        Args:
            launches: what to collect.
            ahead: has the first of them, as far as they are encoded; nobody else may have destroyed what they use.
        """
        if ahead is not None:
            ahead.launched()
            if self._is_idle:
                finished, count = ahead.take()
                if count:
                    self._submit(self._take_launches(), finished)
                    launches = launches[count:]
        waiting = [*self._take_launches(), *launches]
        is_first = self._is_idle and len(waiting) >= LEAST_LAUNCHES
        piece = min(FIRST_SUBMITTED, self.most_collected) if is_first else self.most_collected
        while len(waiting) >= piece:
            self._submit(waiting[:piece])
            del waiting[:piece]
            piece = min(2 * piece, self.most_collected)
        self._launches = waiting

    def submit(self) -> None:
        """Submit what is collected."""
        if self._launches:
            self._submit(self._take_launches())

    def run(self, launches: Sequence[Command]) -> None:
        """Submit kernels by themselves and now; what is collected stays so, and fails for itself.

        A build calls it in its worker thread.
        """
        if get_ident() == self._thread:
            self._submit(launches)
        else:
            trio.from_thread.run_sync(self._submit, launches)

    def write(self, buffer: wgpu.GPUBuffer, data: Any, byte_length: int) -> None:
        """Copy ``data``, a contiguous buffer, into ``buffer`` behind everything before."""
        self.submit()
        self.in_turn(partial(self.engine.write, self._device, buffer, data, byte_length))

    def fill(self, buffer: wgpu.GPUBuffer, data: Any, byte_length: int) -> None:
        """Copy ``data`` into memory that nothing has used yet; in any thread."""
        self._has_fills = True
        self.engine.write(self._device, buffer, data, byte_length)

    def submit_fills(self) -> None:
        """Submit the copies of :meth:`fill`: the first dispatch neither waits for them nor keeps their memory."""
        if self._has_fills and not self.ending.done():
            self._submit([])

    def submit_copies(self, copies: Encodes) -> None:
        """Submit what is collected, and copies behind it."""
        self._submit([*self._take_launches(), copies])

    def _take_launches(self) -> list[Command]:
        launches, self._launches = self._launches, []
        return launches

    def _submit(self, launches: Sequence[Command], finished: Sequence[Any] = ()) -> None:
        """Submit launches, and behind them command buffers that were finished before."""
        try:
            encoded = self.encoded(launches)
        except BaseException:
            self.engine.release(finished)
            raise
        self._submissions += 1
        self._has_fills = False
        self.in_turn(partial(self._hand_over, [encoded, *finished]))

    def _hand_over(self, commands: Sequence[Any]) -> None:
        try:
            self.engine.submit(self._device, commands)
        finally:
            self.engine.release(commands)

    def in_turn(self, call: Callable[[], None], ticket: Ticket | None = None) -> None:
        """Make a call that uses the queue, behind all that came before.

        Args:
            call: the call.
            ticket: what it asks for.
        """
        call()

    def catch_up(self) -> None:
        """Block until the engine has been given all that was submitted."""

    async def destroy(self, destroy: Callable[[], None]) -> None:
        """Destroy memory by a call, which waits for a submission that is under way."""
        destroy()

    def close(self) -> None:
        """Make all calls in the thread of their caller from now on; block until another has made its."""

    def encoded(self, launches: Sequence[Command]) -> Any:
        """Return a command buffer, as the engine's handle.

        Raises:
            wgpu.GPUError: they cannot be encoded.
        """
        return self.engine.encoded(self._device, launches)

    def map(self, buffer: wgpu.GPUBuffer, byte_length: int, *, writes: bool = False) -> Ticket:
        """Ask for the buffer's memory on the host's side, to read or to write it."""
        ticket = Ticket(self._submissions)
        self.in_turn(partial(self.engine.map, ticket, buffer, byte_length, writes=writes), ticket)
        return ticket

    def work_done(self) -> Ticket:
        """Submit everything collected, and return a ticket for all submissions so far."""
        self.submit()
        ticket = Ticket(self._submissions)
        self.in_turn(partial(self.engine.work_done, ticket, self._device), ticket)
        return ticket

    def answered(self, ticket: Ticket) -> None:
        """Take note that the GPU has done all that was submitted before a ticket was asked for."""
        self._answered = max(self._answered, ticket.behind)

    def poll(self) -> None:
        """Let finished work say so."""
        self.engine.poll(self._device)

    def wait(self, ticket: Ticket, *, is_shared: bool) -> None:
        """Block until a ticket is answered, or about to be; see :meth:`.Engine.wait`."""
        self.engine.wait(self._device, ticket, is_shared=is_shared)
