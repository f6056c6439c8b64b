"""A realm at work: script tasks, microtask checkpoints and timers, all on the script timeline."""

import heapq
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

import trio

from webnn_py.javascript.api import API
from webnn_py.javascript.compatibility import NONE, Compatibility
from webnn_py.javascript.engine import Engine, EngineName, ScriptError, own_source, start
from webnn_py.javascript.host import Host
from webnn_py.script.ml import ML, open_ml
from webnn_py.timelines.script_timeline import ScriptTimeline

MAX_TIMEOUT_MILLISECONDS = 2**31 - 1


class World(Protocol):
    """What is outside of a script: where its words go, and where files come from."""

    def log(self, level: str, text: str) -> None:
        """A line of the console, or an exception that nothing caught (level "uncaught" or "unhandled")."""
        ...

    def fetch(self, url: str) -> memoryview | None:
        """The bytes of a local file, or None."""
        ...

    def serve(self, message: dict[str, Any]) -> Any:
        """Answer any other message."""
        ...


class Timers:
    """Fires timers as tasks of the script timeline, in the order of their times, then of their starts."""

    def __init__(self, timeline: ScriptTimeline, fire: Callable[[int], None]) -> None:
        self._timeline = timeline
        self._fire = fire
        self._heap: list[tuple[float, int, int]] = []
        self._live: dict[int, int] = {}
        self._count = 0
        self._changed = trio.Event()

    def __len__(self) -> int:
        return len(self._live)

    def start(self, timer: int, milliseconds: float) -> None:
        """Fire ``timer`` after so long."""
        self._count += 1
        seconds = min(milliseconds, MAX_TIMEOUT_MILLISECONDS) / 1000
        heapq.heappush(self._heap, (trio.current_time() + seconds, self._count, timer))
        self._live[timer] = self._count
        self._changed.set()

    def cancel(self, timer: int) -> None:
        """Do not fire ``timer``."""
        self._live.pop(timer, None)
        self._changed.set()

    async def run(self) -> None:
        """Wait for times and enqueue tasks; the body of a trio task."""
        while True:
            self._changed = trio.Event()
            while self._heap and self._heap[0][0] <= trio.current_time():
                _, count, timer = heapq.heappop(self._heap)
                self._timeline.enqueue(partial(self._due, timer, count))
            until = self._heap[0][0] if self._heap else float("inf")
            with trio.move_on_at(until):
                await self._changed.wait()

    def _due(self, timer: int, count: int) -> None:
        if self._live.get(timer) == count:  # neither cancelled nor started anew
            del self._live[timer]
            self._fire(timer)


class Session:
    """One realm of an engine, with the API and a world.

    Every script, timer and settlement is an entry of the script timeline; after each, microtasks run until there
    are none. That is the platform's event loop.
    """

    def __init__(
        self, ml: ML, engine_name: EngineName, world: World, compatibility: Compatibility, backend: str | None
    ) -> None:
        self._world = world
        self._timeline = ml.script_timeline
        self._host = Host(API(ml, compatibility, backend), compatibility, self, self._settle)
        self.engine: Engine = start(engine_name, self._host.handle)
        self.timers = Timers(self._timeline, self._fire_timer)
        self._entered = False
        self._closed = False
        self._idle = trio.Event()
        # After each entry microtasks must run, before any other entry does: only the timeline's task can do that.
        self._timeline.after_task = self._after_task

    # --- tasks -------------------------------------------------------------------------------------------------

    def _after_task(self) -> None:
        if self._entered:
            self._entered = False
            self.engine.run_jobs()
        waiting = self._timeline.queued_operations > 1  # this one still counts
        if not waiting and not self.timers and not self._host.pending:
            self._idle.set()

    def call(self, function: str, argument: object, payload: memoryview | None = None) -> None:
        """Call a function of the runtime; its microtasks run at the end of the task."""
        self._entered = True
        try:
            self.engine.call(function, json.dumps(argument), payload)
        except ScriptError as error:
            self._report(error)

    def _settle(self, settlement: dict[str, Any], data: memoryview | None) -> None:
        if not self._closed:
            self.call("settle", settlement, data)

    def _fire_timer(self, timer: int) -> None:
        self.call("fire", {"timer": timer})

    def _report(self, error: ScriptError) -> None:
        self.engine.call("reportText", json.dumps({"message": str(error), "stack": error.stack}))

    def load(self, name: str) -> None:
        """Evaluate one of the package's own files."""
        self._entered = True
        self.engine.load(own_source(name), name)

    def evaluate(self, source: str, name: str) -> None:
        """Evaluate a script, now: to be called in a task. What it throws is reported to it."""
        self._entered = True
        try:
            self.engine.evaluate(source, name)
        except ScriptError as error:
            self._report(error)

    def evaluate_module(self, source: str, name: str) -> None:
        """Evaluate a module, now: to be called in a task. What it throws is reported to it."""
        self._entered = True
        try:
            self.engine.evaluate_module(source, name)
        except ScriptError as error:
            self._report(error)

    async def run(self, task: Callable[[], None]) -> None:
        """Run a task and all that follows from it, until nothing waits: no task, no timer, no promise."""
        self._idle = trio.Event()
        self.enqueue(task)
        await self.idle()

    def enqueue(self, task: Callable[[], None]) -> None:
        """Put a task behind all others of the script timeline."""
        self._timeline.enqueue(task)

    async def idle(self) -> None:
        """Wait until nothing waits."""
        await self._idle.wait()

    def close(self) -> None:
        """End the realm; what is settled from now on is settled in Python only."""
        self._closed = True
        self._timeline.after_task = None
        self.engine.close()

    # --- services ----------------------------------------------------------------------------------------------

    def serve(self, message: dict[str, Any], payload: memoryview | None) -> tuple[Any, memoryview | None]:
        """Answer a message that is no call of the API."""
        match message:
            case {"log": level, "text": text}:
                self._world.log(level, text)
            case {"timer": timer, "delay": milliseconds}:
                self.timers.start(timer, milliseconds)
            case {"cancel": timer}:
                self.timers.cancel(timer)
            case {"clock": _}:
                return time.monotonic() * 1000, None
            case {"decode": _}:
                return bytes(payload or b"").decode("utf-8-sig", "replace"), None
            case {"fetch": url}:
                data = self._world.fetch(url)
                return (404, memoryview(b"")) if data is None else (200, data)
            case _:
                return self._world.serve(message), None
        return None, None


@asynccontextmanager
async def open_session(
    engine_name: EngineName,
    world: World,
    description: dict[str, Any],
    *,
    compatibility: Compatibility = NONE,
    backend: str | None = None,
) -> AsyncIterator[Session]:
    """Open the API and a realm that has it as ``navigator.ml``."""
    async with open_ml() as ml:
        session = Session(ml, engine_name, world, compatibility, backend)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.timers.run)
                session.engine.load(
                    f"(runtime) => {{ runtime.description = {json.dumps(description)}; }}", "description"
                )
                for name in ("calls.js", "conversions.js", "platform.js", "bindings.js"):
                    session.load(name)
                yield session
                nursery.cancel_scope.cancel()
        finally:
            session.close()
