"""Runs one test file of web-platform-tests in this process."""

import json
import math
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import trio

from webnn_py.javascript.checkout import TestFile, resolve
from webnn_py.javascript.compatibility import Compatibility
from webnn_py.javascript.engine import EngineName, own_source
from webnn_py.javascript.results import FileResult, HarnessStatus, SubTest
from webnn_py.javascript.session import Session, open_session
from webnn_py.operators.declaration import spec_name_of
from webnn_py.operators.limits import TensorLimits
from webnn_py.operators.registry import OPERATORS

HARNESS_SCRIPT = "resources/testharness.js"
IDL_FILE = "interfaces/webnn.idl"
HELPERS = "wpt_helpers.js"
"""The file of helpers that the newest tests need and an older checkout lacks."""

REQUIRED_FILE = "webnn/resources/minimum_datatype_set.json"
"""Where helpers since 2025 look for them (webnn issue 910)."""


@attrs.frozen
class Settings:
    """Options of a run.

    Attributes:
        root: the checkout, or any folder with the files and ``resources/testharness.js``.
        description: the API, for the bindings.
        idl: the IDL itself, given to scripts that fetch ``/interfaces/webnn.idl``.
        engine: the engine.
        backend: the device of contexts.
        compatibility: what the bindings do otherwise.
        newer: a folder of files that replace those of the checkout, or join them; None for none.
        timeout_multiplier: stretches every time limit.
        traces: the folder for a trace of each file; None for none.
        experimental: the proposals that are switched on.
    """

    root: Path
    description: dict[str, Any]
    idl: str
    engine: EngineName
    backend: str
    compatibility: Compatibility
    newer: Path | None = None
    timeout_multiplier: float = 1.0
    traces: Path | None = None
    experimental: tuple[str, ...] = ()

    def file(self, path: str) -> Path:
        """Return the place of a file, given from the root of the checkout; the newer one where there are two."""
        newer = None if self.newer is None else self.newer / path
        return newer if newer is not None and newer.is_file() else self.root / path

    def trace(self, test: TestFile) -> Path | None:
        """Return the file for the trace of a test file: its name with what a file's may not have replaced."""
        return None if self.traces is None else self.traces / f"{re.sub('[^A-Za-z0-9.-]+', '_', test.id)}.json"


class WindowWorld:
    """The world of a test file: a window of a page of the checkout, and its results."""

    def __init__(self, settings: Settings, test: TestFile) -> None:
        self._settings = settings
        self._test = test
        self._open: dict[int, SubTest] = {}
        self._counts: dict[str, int] = {}
        self.result = FileResult(test.id, "ERROR", "the file ended without a result")
        self.complete = trio.Event()

    def log(self, level: str, text: str) -> None:
        """Keep a message; an exception outside of tests makes the file an error, as in the harness itself."""
        self.result.log.append(f"{level}: {text}")

    def fetch(self, url: str, most: int | None) -> memoryview | None:
        """Return a file of the checkout."""
        try:
            path = resolve(self._test.path, url)
        except ValueError as error:
            raise TypeError(f"fetch(): {error}") from None
        if path == IDL_FILE:
            return memoryview(self._settings.idl.encode())
        file = self._settings.file(path)
        if not file.is_file() and path == REQUIRED_FILE:
            return memoryview(required_json().encode())
        return memoryview(file.read_bytes()) if file.is_file() else None

    def module(self, specifier: str, referrer: str, most: int | None) -> tuple[str, memoryview]:
        """Return a module of the checkout.

        Raises:
            TypeError: there is none.
        """
        try:
            path = resolve(referrer.removeprefix("/"), specifier)
            return path, memoryview(self._settings.file(path).read_bytes())
        except (OSError, ValueError) as error:
            raise TypeError(f"cannot import {specifier!r} in {referrer}: {error}") from None

    def serve(self, message: dict[str, Any]) -> None:
        """Take the results that ``js/wpt.js`` sends."""
        match message:
            case {"known": index, "name": name, "started": started}:
                self._open[index] = SubTest(name, "TIMEOUT" if started else "NOTRUN")
            case {"ended": index, "name": name, "status": status, "message": text}:
                self._open.pop(index, None)
                self.result.subtests.append(SubTest(self._unique(name), status, text))
            case {"harness": status, "message": text}:
                self.result.harness, self.result.message = status, text
                self.complete.set()
            case _:
                raise ValueError(f"unknown message {message}")

    def _unique(self, name: str) -> str:
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else f"{name} #{count}"

    def end(self, status: HarnessStatus, message: str) -> None:
        """The file did not complete by itself: what had begun has timed out, and what had not never ran."""
        self.result.harness, self.result.message = status, message
        for test in self._open.values():
            name = self._unique(test.name)
            self.result.subtests.append(attrs.evolve(test, name=name, message=message))
        self._open.clear()


async def run_file(settings: Settings, test: TestFile) -> FileResult:
    """Run one file and return its result; raises only what is a defect of this package or of the engine."""
    world = WindowWorld(settings, test)
    since = time.perf_counter()
    seconds = test.seconds * settings.timeout_multiplier
    async with open_session(
        settings.engine,
        world,
        settings.description,
        compatibility=settings.compatibility,
        backend=settings.backend,
        trace=settings.trace(test),
        experimental=settings.experimental,
    ) as session:
        session.load("wpt.js")
        session.call("openWindow", _window(test))
        with trio.move_on_after(seconds if math.isfinite(seconds) else math.inf) as scope:
            await _evaluate(session, settings, test)
            await _complete(session, world)
        if scope.cancelled_caught:
            world.end("TIMEOUT", f"not complete after {seconds:g} s")
    if world.result.harness == "OK" and not world.result.subtests:
        world.end("ERROR", "the file has no tests")
    world.result.seconds = time.perf_counter() - since
    return world.result


def _window(test: TestFile) -> dict[str, Any]:
    page = f"https://web-platform.test/{test.path}"
    location = {
        "href": page + test.variant,
        "origin": "https://web-platform.test",
        "protocol": "https:",
        "host": "web-platform.test",
        "hostname": "web-platform.test",
        "pathname": f"/{test.path}",
        "search": test.variant,
        "hash": "",
    }
    return {"location": location, "isolated": test.isolated}


async def _evaluate(session: Session, settings: Settings, test: TestFile) -> None:
    """Run the scripts in one task: between those of a page, no promise of the harness may be settled."""
    done = trio.Event()

    def task() -> None:
        for path in (HARNESS_SCRIPT, *test.scripts, test.path):
            if path == test.path:
                session.evaluate(own_source(HELPERS), HELPERS)
            session.evaluate(settings.file(path).read_text(encoding="utf-8"), f"/{path}")
            if path == HARNESS_SCRIPT:
                session.call("watchTests", None)
        done.set()

    session.enqueue(task)
    await done.wait()


async def _complete(session: Session, world: WindowWorld) -> None:
    """Wait until the harness says that it is complete, or until nothing is left that could make it so."""
    async with trio.open_nursery() as nursery:

        async def idle() -> None:
            await session.idle()
            if not world.complete.is_set():
                world.end("TIMEOUT", "not complete, and nothing waits: a promise that is never settled")
            world.complete.set()

        nursery.start_soon(idle)
        await world.complete.wait()
        nursery.cancel_scope.cancel()


def _row(limits: TensorLimits) -> dict[str, Any]:
    ranks = limits.required_ranks
    return {"dataTypes": list(limits.required), "rankRange": {"min": ranks.min, "max": ranks.max}}


@cache
def required_json() -> str:
    """They, of each operand and output of each operator, by the names of the IDL: for checkouts without the file."""
    found = {
        operator.spec_name: {spec_name_of(name): _row(limits) for name, limits in operator.limits.items()}
        for operator in OPERATORS.values()
    }
    return json.dumps(found)
