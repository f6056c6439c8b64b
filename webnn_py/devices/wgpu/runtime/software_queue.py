"""The queue of a software adapter, whose driver compiles and computes within each submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread, get_ident
from time import sleep
from typing import Any, final

import trio
import wgpu

from webnn_py.core.message_text import device_text
from webnn_py.devices.wgpu.engines.engine import Ticket
from webnn_py.devices.wgpu.runtime.context_queue import Command, ContextQueue
from webnn_py.devices.wgpu.runtime.device_loss import is_lost

Call = tuple[Callable[[], None], Future[None]]


def _make_calls(calls: SimpleQueue[Call | None]) -> None:
    """Make calls in turn, until None comes."""
    while (entry := calls.get()) is not None:
        call, done = entry
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - as an executor does it
            done.set_exception(error)
        else:
            done.set_result(None)
        del entry, call, done  # while none comes, it must not keep what they refer to


@final
class SoftwareQueue(ContextQueue):
    """Makes all calls that submit, or wait for a submission, in a thread, in their order; so the event loop goes on.

    wgpu-native ends the process when a device, or memory, is destroyed between the check of a submission and the
    submission. So what the thread may still submit is destroyed in the thread, or behind :meth:`close`, which comes
    before the device is given back, and before a user's own memory is used.
    """

    most_collected = 4
    """Few, since what is submitted goes on when the context is lost; a kernel may take a second to compile."""

    def __init__(self, device: wgpu.GPUDevice) -> None:
        super().__init__(device)
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._error = ""
        self._last: Future[None] = Future()  # of all calls
        self._last.set_result(None)
        # An executor takes no calls while the program ends, when contexts are closed.
        self._worker: Thread | None = Thread(
            target=_make_calls, args=[self._calls], name="webnn-software-gpu", daemon=True
        )
        self._worker.start()

    def in_turn(self, call: Callable[[], None], ticket: Ticket | None = None) -> None:
        """Make a call in the thread, behind all that came before."""
        make = partial(self._make, call, ticket)
        if self._worker is None:
            make()
        else:
            self._put(make)

    def _put(self, call: Callable[[], None]) -> Future[None]:
        done: Future[None] = Future()
        self._calls.put((call, done))
        self._last = done
        return done

    def _make(self, call: Callable[[], None], ticket: Ticket | None) -> None:
        """Make a call and give the answers to it, in the thread."""
        try:
            if self._error and ticket is not None:
                raise wgpu.GPUError(self._error)
            call()
            self.engine.finish(self._device)
        except Exception as error:  # noqa: BLE001 - nothing else would hear of it
            if ticket is None:
                self._error = device_text(error)  # nothing that is read later would be right
            elif ticket.done is None:
                ticket.done = device_text(error)

    def _hand_over(self, commands: Sequence[Any]) -> None:
        if self.ending.done() or is_lost(self._device):
            self.engine.release(commands)  # on a lost device the library ends the process
        else:
            super()._hand_over(commands)

    def run(self, launches: Sequence[Command]) -> None:
        """Submit kernels by themselves; a build goes on when they have run, since it may destroy what they used."""
        super().run(launches)
        if get_ident() != self._thread:
            self.catch_up()

    def poll(self) -> None:
        """Let the thread have the interpreter."""
        sleep(0)

    def wait(self, ticket: Ticket, *, is_shared: bool) -> None:
        """Block until the thread has made all calls, and they are answered."""
        self.catch_up()

    def catch_up(self) -> None:
        """Block until the thread has made all calls."""
        self._last.result()

    async def destroy(self, destroy: Callable[[], None]) -> None:
        """Destroy memory by a call in the thread."""
        if self._worker is None:
            destroy()
            return
        destroyed = trio.Event()
        token = trio.lowlevel.current_trio_token()
        future = self._put(destroy)
        future.add_done_callback(lambda _: token.run_sync_soon(destroyed.set))
        await destroyed.wait()
        future.result()

    def close(self) -> None:
        """Block until the thread has ended."""
        if self._worker is not None:
            self._calls.put(None)
            self._worker.join()
            self._worker = None
