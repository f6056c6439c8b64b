"""The context of an environment: opened by its first user, shared by all, ended by its last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, final

import trio

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.message_text import in_brackets
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.devices.lending import Lends
from webnn_py.memory_by_label import LabelledMemory, memory_by_label
from webnn_py.runtime.records import EnvironmentDevice, TensorLocation
from webnn_py.saved_graphs import SavedGraphs

T = TypeVar("T")

DEFAULT_ID: Final = 0
"""The number of the one context that an environment has at a time."""


async def received(promise: MLPromise[T]) -> T:
    """Await something that has to be destroyed; it is, when it comes after the wait was cancelled."""
    try:
        return await promise
    except BaseException:
        promise.on_settled(partial(_destroy, promise))
        raise


def _destroy(promise: MLPromise[Any]) -> None:
    if promise.state == "fulfilled":
        thing: Any = promise.outcome
        thing.destroy()


async def created(context: MLContext, data_type: Any, shape: Any, label: Any = "") -> MLBuffer:
    """Create a buffer that can be read and written; the arguments are checked there."""
    return await received(
        context.create_buffer(data_type=data_type, shape=shape, readable=True, writable=True, label=label)
    )


@final
class OpenContext:
    """A context of an environment, and the number of its users.

    Attributes:
        context: the context.
        record: the environment's record of it.
        location: where tensors on it are.
        cast_graphs: graphs of one ``cast`` each, those used last behind; they end with the context.
    """

    def __init__(self, context: MLContext, owner: ContextOwner) -> None:
        self.context = context
        self.record = EnvironmentDevice(DEFAULT_ID, context, context.backend)
        self.location: TensorLocation = "gpu-buffer" if isinstance(context.device.backend, Lends) else "ml-tensor"
        self.owner = owner
        self.references = 0
        self.cast_graphs: OrderedDict[object, MLGraph] = OrderedDict()

    @property
    def is_lost(self) -> bool:
        """Return whether the context is lost or destroyed."""
        return self.context.lost_message is not None

    def hold(self) -> ContextReference:
        """Refer to it."""
        self.references += 1
        return ContextReference(self)

    def check_usable(self, method: str, what: str) -> None:
        """Refuse ``what``, which is on it, when it is lost.

        Raises:
            InvalidStateError: it is lost.
        """
        message = self.context.lost_message
        if message is not None:
            raise InvalidStateError(
                f"{method}(): {what} is gone with its device{in_brackets(self.context.label)}, which was lost: "
                f"{message}"
            )


@final
class ContextReference:
    """One reference to a context."""

    __slots__ = ("is_released", "opened")

    def __init__(self, opened: OpenContext) -> None:
        self.opened = opened
        self.is_released = False

    def release(self) -> None:
        """Give the reference up; the last one ends the context, unless it is preserved.

        Raises:
            InvalidStateError: it was given up before.
        """
        if self.is_released:
            raise InvalidStateError("this reference to the environment's context was released before")
        self.is_released = True
        self.opened.references -= 1
        self.opened.owner.end_unused()


@final
class ContextOwner:
    """Opens the environment's context when it is needed, counts its users, forgets it when it is lost.

    Args:
        open_context: opens a fresh context.
        given: a user's own context to use instead, which is never destroyed.
        saved_graphs: where sessions keep their graphs; None for nowhere.
        preserve: whether the context outlives its last user.
        run_soon: calls a function in the trio thread, from any thread.
    """

    def __init__(
        self,
        open_context: Callable[[], MLPromise[MLContext]],
        *,
        given: MLContext | None,
        saved_graphs: SavedGraphs | None,
        preserve: bool,
        run_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self.run_soon = run_soon
        self._open_context = open_context
        self._given = given
        self.saved_graphs = saved_graphs
        self._preserve = preserve
        self._current: OpenContext | None = None
        self._opening: MLPromise[MLContext] | None = None
        self._waiting = 0
        self._closed = False
        self._former: list[MLContext] = []
        self._former_host_copies = 0
        if given is not None:
            self._take(given)

    @property
    def current(self) -> OpenContext | None:
        """The context that there is: never one that is lost."""
        return self._current

    async def acquire(self, method: str) -> ContextReference:
        """Refer to the context, which is opened if there is none; concurrent callers get the same one.

        Raises:
            InvalidStateError: the environment is closed, or the context that it was given is lost.
        """
        self._waiting += 1
        try:
            self.check_open(method)
            while self._current is None:
                await self._wait_opened(method)
                self.check_open(method)
            return self._current.hold()
        finally:
            self._waiting -= 1
            self.end_unused()

    async def _wait_opened(self, method: str) -> None:
        if self._given is not None:
            raise InvalidStateError(
                f"{method}(): the context{in_brackets(self._given.label)} that the environment was given is lost: "
                f"{self._given.lost_message}"
            )
        opening = self._opening
        if opening is None:
            opening = self._opening = self._open_context()
            opening.on_settled(partial(self._opened, opening))
        await opening

    def _opened(self, promise: MLPromise[MLContext]) -> None:
        self._opening = None
        if promise.state == "fulfilled":
            context: Any = promise.outcome
            if context.lost_message is None:
                self._take(context)
            if self._closed:
                context.destroy()
            self.end_unused()

    def _take(self, context: MLContext) -> None:
        opened = OpenContext(context, self)
        self._current = opened
        # Called by what loses the context, before anything else runs, so that no dead one is ever handed out.
        context.lost.on_settled(partial(self._forget, opened))

    def _forget(self, lost: OpenContext) -> None:
        if self._current is lost:
            self._current = None
            self._drop_ended()  # or they would pile up if statistics are never requested
            self._former.append(lost.context)

    def _drop_ended(self) -> None:
        """Let go of the former contexts that have given everything back."""
        ending = []
        for context in self._former:
            statistics = context.statistics()
            if context.device_timeline.ended and not statistics.live_buffers:
                self._former_host_copies += statistics.host_copies
            else:
                ending.append(context)
        self._former = ending

    def end_unused(self) -> None:
        """Destroy the context if it has no users, nor will have in a moment, and is not to be preserved."""
        current = self._current
        if current is not None and not (current.references or self._waiting or self._preserve):
            self._end(current)

    def _end(self, opened: OpenContext) -> None:
        if self._given is None:
            opened.context.destroy()
        elif self._closed:
            self._current = None
            self._former_host_copies += opened.context.statistics().host_copies
            for graph in opened.cast_graphs.values():
                graph.destroy()

    def close(self) -> None:
        """End the context, and open none any more."""
        self._closed = True
        if self._current is not None:
            self._end(self._current)

    async def drain(self) -> None:
        """Wait until the context has done what was asked of it, and former ones have given everything back."""
        await trio.lowlevel.checkpoint()
        if self._current is not None:
            await self._current.context.drain()
        for context in list(self._former):
            await context.device_timeline.wait_ended()

    async def wait_ended(self) -> None:
        """Wait until the contexts that were destroyed have given everything back."""
        for context in list(self._former):
            await context.device_timeline.wait_ended()
        if self._given is not None and self._given.lost_message is None:
            await self._given.drain()

    def check_open(self, method: str) -> None:
        """Refuse a call when the environment is closed.

        Raises:
            InvalidStateError: it is.
        """
        if self._closed:
            raise InvalidStateError(f"{method}(): the environment is closed")

    def books(self) -> tuple[int, int, int, tuple[LabelledMemory, ...]]:
        """Live buffers, live bytes, host copies since the environment was made, and what lives under each label."""
        self._drop_ended()
        looked_at = [context.statistics() for context in self._former]
        if self._current is not None:
            looked_at.append(self._current.context.statistics())
        return (
            sum(item.live_buffers for item in looked_at),
            sum(item.live_bytes for item in looked_at),
            self._former_host_copies + sum(item.host_copies for item in looked_at),
            () if self._current is None else memory_by_label(self._current.context),
        )
