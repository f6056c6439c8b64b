"""A running realm: script tasks, microtask checkpoints and timers, all on the script timeline."""

import heapq
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import trio
from trio.lowlevel import enable_ki_protection

from webnn_py.browser_profiles import PortabilityReport
from webnn_py.javascript.api import API
from webnn_py.javascript.compatibility import NONE, Compatibility
from webnn_py.javascript.engine import (
    EngineError,
    EngineName,
    LimitError,
    ScriptError,
    own_source,
    start,
)
from webnn_py.javascript.engine_commands import UNLIMITED, Limits
from webnn_py.javascript.host import Host
from webnn_py.javascript.memory import TEXT_FACTOR
from webnn_py.javascript.words import OutputClosedError
from webnn_py.saved_graphs import SavedGraphs
from webnn_py.script.browser_rules import BrowserRules
from webnn_py.script.ml import open_ml
from webnn_py.timelines.script_timeline import ScriptTask, ScriptTimeline
from webnn_py.tracing.checks import Check, checking
from webnn_py.tracing.trace_file import traced_to

_PLACES = "places.js"
"""The one that is for traces alone."""

_WASM_OF_QUICKJS = "quickjs_wasm.js"
"""The one for an engine without WebAssembly."""

_FILES_OF_WASM = ("files.js", _WASM_OF_QUICKJS, "webassembly.js")
"""Those of programs that have WebAssembly."""

_WEBGPU = "webgpu.js"
"""The one that is for the proposal "webgpu-interop" alone."""

_FILES = (
    "builtins.js",
    "stacks.js",
    "calls.js",
    "conversions.js",
    "platform.js",
    "console.js",
    "web.js",
    "url.js",
    *_FILES_OF_WASM,
    _PLACES,
    _WEBGPU,
    "bindings.js",
)
"""The package's own, in the order in which they need each other; all before any script."""

MAX_TIMEOUT_MILLISECONDS = 2**31 - 1

MOST_CANCELLED = 64
"""So many cancelled timers, and as many as there are others, are kept until they are due."""


class World(Protocol):
    """The world outside of a script: where its output goes, and where files come from."""

    def log(self, level: str, text: str) -> None:
        """A line of the console, or an exception that nothing caught (level "uncaught" or "unhandled")."""
        ...

    def fetch(self, url: str, most: int | None) -> memoryview | None:
        """The bytes of a local file, ``most`` at most, or None; raises TypeError for one that it may not have."""
        ...

    def module(self, specifier: str, referrer: str, most: int | None) -> tuple[str, memoryview]:
        """Return the name and the source, of ``most`` bytes at most, of the module that ``referrer`` imports.

        Raises:
            TypeError: it may not be imported.
        """
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
        if len(self._heap) > 2 * len(self._live) + MOST_CANCELLED:
            self._heap = [entry for entry in self._heap if self._live.get(entry[2]) == entry[1]]
            heapq.heapify(self._heap)
        self._changed.set()

    async def run(self) -> None:
        """Wait for times and enqueue tasks; the body of a trio task."""
        while True:
            self._changed = trio.Event()
            while self._heap and self._heap[0][0] <= trio.current_time():
                _, count, timer = heapq.heappop(self._heap)
                self._timeline.enqueue(ScriptTask("timer", partial(self._due, timer, count)))
            until = self._heap[0][0] if self._heap else float("inf")
            with trio.move_on_at(until):
                await self._changed.wait()

    def _due(self, timer: int, count: int) -> None:
        if self._live.get(timer) == count:  # neither cancelled nor restarted
            del self._live[timer]
            self._fire(timer)


class Session:
    """One realm of an engine, with the API and a world.

    Every script, timer and settlement is an entry of the script timeline; after each, microtasks run until there
    are none. That is the platform's event loop.

    Attributes:
        unsettled: the name of the module whose evaluation has neither ended nor failed; None when there is none.
    """

    def __init__(
        self, world: World, api: API, compatibility: Compatibility, engine_name: EngineName, limits: Limits
    ) -> None:
        self._world = world
        self._timeline = api.ml.script_timeline
        self._host = Host(api, compatibility, self.serve, partial(self.call, "settle"), limits.memory_bytes)
        self.engine = start(engine_name, limits, self._host.handle, self._host.refuse)
        self.timers = Timers(self._timeline, self._fire_timer)
        self._entered = False
        self._closed = False
        self._ended: BaseException | None = None
        self.unsettled: str | None = None
        self._idle = trio.Event()
        # After each entry microtasks must run, before any other entry does: only the timeline's task can do that.
        self._timeline.after_task = self._after_task

    # --- tasks -------------------------------------------------------------------------------------------------

    def _after_task(self) -> None:
        if self._entered:
            self._entered = False
            self._enter(self.engine.run_jobs)
        waiting = self._timeline.queued_operations > 1  # this one still counts
        if not waiting and not self.timers and not self._host.pending:
            self._idle.set()

    def _enter(self, what: Callable[[], None]) -> None:
        """Have the engine do something; what ends it is raised where the session's end is waited for.

        The timelines go on, as they must for everything to be given back in order; what they still have for a realm
        that is closed or ended, a due timer say, does nothing.
        """
        if self._closed or self._ended is not None:
            return
        try:
            what()
        except ScriptError as error:
            self._enter(partial(self._report, error))
        except (EngineError, KeyboardInterrupt, LimitError, OutputClosedError) as error:
            self._ended = error
            self._idle.set()

    def _report(self, error: ScriptError) -> None:
        """Report an exception that nothing caught to the realm, or to the world where the realm cannot take it."""
        try:
            self.engine.call("reportText", json.dumps({"message": str(error), "stack": error.stack}))
        except ScriptError as second:
            self._world.log("uncaught", f"{error}, and telling so: {second}")

    def call(self, function: str, argument: object, payload: memoryview | None = None) -> None:
        """Call a function of the runtime; its microtasks run at the end of the task."""
        self._entered = True
        self._enter(partial(self.engine.call, function, json.dumps(argument), payload))

    def _fire_timer(self, timer: int) -> None:
        self.call("fire", {"timer": timer})

    def load(self, name: str) -> None:
        """Evaluate one of the package's own files."""
        self._entered = True
        self.engine.load(own_source(name), name)

    def evaluate(self, source: str, name: str, *, module: bool = False) -> None:
        """Evaluate a script or a module, now: to be called in a task. What it throws is reported to it."""
        self._entered = True
        self.unsettled = name if module else self.unsettled
        self._enter(partial(self.engine.evaluate, source, name, module=module))

    async def run(self, task: Callable[[], None]) -> None:
        """Run a task and all that follows from it, until nothing waits: no task, no timer, no promise.

        Raises what :meth:`idle` raises.
        """
        self._idle = trio.Event()
        self.enqueue(task)
        await self.idle()

    def enqueue(self, task: Callable[[], None]) -> None:
        """Put a task behind all others of the script timeline."""
        self._timeline.enqueue(ScriptTask("script", task))

    @enable_ki_protection
    async def idle(self) -> None:
        """Wait until nothing is pending.

        Raises:
            EngineError: the engine died.
            LimitError: a limit was reached.
            OutputClosedError: the output is closed.
            KeyboardInterrupt: Ctrl-C ended a script.
        """
        await self._idle.wait()
        if self._ended is not None:
            raise self._ended

    def close(self) -> None:
        """End the realm; what is settled or due from now on is so in Python only."""
        self._closed = True
        self._timeline.after_task = None
        self.engine.close()

    # --- services ----------------------------------------------------------------------------------------------

    def serve(self, message: dict[str, Any], payload: memoryview | None) -> tuple[Any, memoryview | None]:
        """Answer a message that is no call of the API."""
        answer: tuple[Any, memoryview | None] = (None, None)
        match message:
            case {"log": level, "text": text}:
                self._world.log(level, text)
            case {"timer": timer, "delay": milliseconds}:
                self.timers.start(timer, milliseconds)
            case {"cancel": timer}:
                self.timers.cancel(timer)
            case {"clock": _}:
                answer = time.monotonic() * 1000, None
            case {"decode": _}:
                self._host.memory.admit("decode()", TEXT_FACTOR * (0 if payload is None else payload.nbytes))
                answer = bytes(payload or b"").decode("utf-8-sig", "replace"), None
            case {"random": count}:
                answer = None, memoryview(os.urandom(count))
            case {"evaluated": _}:
                self.unsettled = None
            case {"module": specifier, "from": referrer}:
                answer = self._world.module(specifier, referrer, self._host.memory.room)
            case {"fetch": url}:
                data = self._world.fetch(url, self._host.memory.room)
                answer = (404, memoryview(b"")) if data is None else (200, data)
            case _:
                answer = self._world.serve(message), None
        return answer


@asynccontextmanager
async def open_session(  # noqa: PLR0913 - each but three has a default
    engine_name: EngineName,
    world: World,
    description: dict[str, Any],
    *,
    compatibility: Compatibility = NONE,
    backend: str | None = None,
    limits: Limits = UNLIMITED,
    graph_cache: Path | None = None,
    trace: Path | None = None,
    browser: str | None = None,
    portability: PortabilityReport | None = None,
    experimental: Collection[str] = (),
    checks: list[Check] | None = None,
) -> AsyncIterator[Session]:
    """Open the API and a realm that has it as ``navigator.ml``.

    ``trace`` is a file for a trace of it, ``browser`` the browser profile of its contexts; ``portability`` gathers what
    other browsers would refuse, ``experimental`` are the proposals that it may try, and ``checks`` gets what is wrong
    with it.
    """
    async with open_ml(experimental=experimental) as ml, traced_to(ml, trace):
        if portability is not None:
            ml._watching = BrowserRules(portability)
        saved = None if graph_cache is None else SavedGraphs(graph_cache)
        api = API(ml, compatibility, backend, browser, saved=saved)
        session = Session(world, api, compatibility, engine_name, limits)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.timers.run)
                session.engine.load(
                    f"(runtime) => {{ runtime.description = {json.dumps(description)}; }}", "description"
                )
                wanted = {
                    _PLACES: trace is not None or checks is not None,
                    _WEBGPU: "webgpu-interop" in experimental,
                    **dict.fromkeys(_FILES_OF_WASM, limits.wasm),
                    _WASM_OF_QUICKJS: limits.wasm and engine_name == "quickjs",
                }
                for name in _FILES:
                    if wanted.get(name, True):
                        session.load(name)
                with checking(ml, checks):
                    yield session
                nursery.cancel_scope.cancel()
        finally:
            session.close()
