"""The real device of a context, watched: every step logged, and made to fail, wait or be lost on demand."""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from webnn_py import ML, InvalidStateError, MLBuffer, MLContext, MLPromise, UnknownError
from webnn_py.core.device.backend import Backend
from webnn_py.devices.wgpu.engines import engine_of

STEPS: Final = ("allocate", "write", "read", "copy", "clear", "compile", "dispatch")
ENDS: Final = ("free", "release_graph", "stop", "close")
REASONS: Final = {"numpy": "driver reset", "wgpu": "the GPU device was lost", "onnxruntime": "driver reset"}
"""How the message of a loss begins, by backend."""


def context_on(ml: ML, backend: Backend) -> MLPromise[MLContext]:
    """Create a context on a backend that the test has made, which no record registers."""
    return ml._create_context(backend)


class StepsOnDemand:
    """Steps that are logged, and made to fail or to wait.

    Attributes:
        log: the steps in the order in which they began: ``STEPS`` and ``ENDS``.
        failing: steps that will raise this instead, each once.
        waiting: steps that will not begin before their event is set, each once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.waiting: dict[str, trio.Event] = {}
        self._held: list[trio.Event] = []

    def _step(self, name: str, step: Callable, *arguments: object) -> object:
        self.log.append(name)
        event = self.waiting.pop(name, None)
        if event is not None:
            self._held.append(event)
            return self._later(name, event, partial(step, *arguments))
        self._fail(name)
        return step(*arguments)

    async def _later(self, name: str, event: trio.Event, step: Callable) -> Awaitable:
        await event.wait()
        self._fail(name)
        result = step()
        return await result if isawaitable(result) else result

    def _fail(self, name: str) -> None:
        error = self.failing.pop(name, None)
        if error is not None:
            raise error

    def let_go(self) -> None:
        """End every wait, also of steps that have not begun, so that a test that has failed does not hang."""
        for event in (*self.waiting.values(), *self._held):
            event.set()


class WatchedDevice(StepsOnDemand):
    """Stands before the methods of a context's backend.

    Attributes:
        reason: how the message of its loss begins.
    """

    def __init__(self, context: MLContext) -> None:
        super().__init__()
        self.context = context
        self.backend = context.device.backend
        self.reason = REASONS[self.backend.info.name]
        for name in STEPS:
            setattr(self.backend, name, partial(self._step, name, getattr(self.backend, name)))
        for name in ENDS:
            setattr(self.backend, name, partial(self._end, name, getattr(self.backend, name)))

    def _end(self, name: str, step: Callable, *arguments: object) -> object:
        self.log.append(name)
        return step(*arguments)

    @property
    def holds(self) -> bool:
        """Return whether a step waits for its event."""
        return not all(event.is_set() for event in self._held)

    async def quiet(self) -> None:
        """Wait until nothing more happens by itself."""
        await quiet(self.context, holds=lambda: self.holds)

    async def lose(self) -> None:
        """Lose the device for good, and return when the backend has said so: to the script timeline, which may wait."""
        if self.backend.info.name != "wgpu":
            self.backend.lost(f"{self.reason}: there is no such thing as a {self.backend.info.name} device")
            return
        assert self.backend._give_back is not None, "other tests run on this device; let the test have its own"
        if self.backend._watch._device is None:  # nobody listens to it any more
            destroy_and_log(self.context)
            await self.quiet()
            return
        said, say = trio.Event(), self.backend.lost

        def heard(message: str) -> None:
            say(message)
            said.set()

        self.backend.lost = heard
        destroy_and_log(self.context)
        with trio.fail_after(60):  # a loss that nobody notices shall not hang the tests
            await said.wait()


def destroy_and_log(context: MLContext) -> None:
    """Fail as a driver does: the device is lost, and the engine logs it, since it has nobody else to tell.

    It is lost between two submissions: a loss within one ends the process.
    """
    for other in context._ml._contexts:
        if other.backend.name == "wgpu":
            other.device.backend._queue.catch_up()
    device = context.device.backend.device
    device.destroy()
    engine_of(device).log.error("The WGPU device was lost (Unknown):\na test has destroyed it")


def finish_work(backend: object) -> None:
    """Have the GPU do all that is submitted, and take its answers, while the event loop stands still."""
    engine_of(backend.device).finish(backend.device)


async def quiet(*contexts: MLContext, holds: Callable[[], bool] = lambda: False) -> None:
    """Wait until nothing more happens by itself: all tasks are blocked, and none because a device is at work.

    A task that waits for a worker thread or a GPU counts as blocked, so ``wait_all_tasks_blocked()`` does not suffice.

    Args:
        contexts: those whose devices may be at work.
        holds: whether it is the test itself that holds the step which runs.
    """
    while True:
        await wait_all_tasks_blocked(cushion=0.0)
        if all(_is_at_rest(context.device_timeline, holds) for context in contexts):
            return
        await wait_all_tasks_blocked(cushion=0.0002)  # so that the worker thread gets its turn


def _is_at_rest(timeline, holds):
    if timeline._in_flight:
        return False
    if timeline._running:
        return holds()
    return not timeline._queue or timeline._permits == 0


async def assert_lost(context: MLContext, buffer: MLBuffer) -> None:
    """Check that a read is rejected because its device is lost, and that the context is lost then."""
    with pytest.raises((UnknownError, InvalidStateError), match="lost"):
        await context.read_buffer(buffer)
    assert "lost" in (await context.lost).message
