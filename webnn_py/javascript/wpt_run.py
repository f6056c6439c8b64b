"""Runs one test file of web-platform-tests in Node, with this process as its host."""

import json
import math
import re
import subprocess
import time
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from webnn_py.core.operators.declaration import spec_name_of
from webnn_py.core.operators.limits import TensorLimits
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.javascript.checkout import ALIASES, TestFile
from webnn_py.javascript.compatibility import Compatibility
from webnn_py.javascript.node_files import own_node, own_path, own_source
from webnn_py.javascript.node_program import NodeProgram, environment_for, hosted
from webnn_py.javascript.results import FileResult, HarnessStatus, SubTest

HARNESS_SCRIPT = "resources/testharness.js"
IDL_FILE = "interfaces/webnn.idl"
HELPERS = "wpt_helpers.js"
"""The file of helpers that the newest tests need and an older checkout lacks."""

REQUIRED_FILE = "webnn/resources/minimum_datatype_set.json"
"""Where helpers since 2025 look for them (webnn issue 910)."""

ORIGIN = "https://web-platform.test"


@attrs.frozen
class Settings:
    """Options of a run.

    Attributes:
        root: the checkout, or any folder with the files and ``resources/testharness.js``.
        description: the API, for the bindings.
        idl: the IDL itself, given to scripts that fetch ``/interfaces/webnn.idl``.
        backend: the device of contexts.
        compatibility: the deviations of the bindings from the specification.
        newer: a folder of files that replace those of the checkout, or join them; None for none.
        timeout_multiplier: stretches every time limit.
        traces: the folder for a trace of each file; None for none.
        experimental: the proposals that are switched on.
    """

    root: Path
    description: dict[str, Any]
    idl: str
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


class Results:
    """The results of a test file, as ``js/wpt_window.cjs`` reports them."""

    def __init__(self, test: TestFile) -> None:
        self._open: dict[int, SubTest] = {}
        self._counts: dict[str, int] = {}
        self.result = FileResult(test.id, "ERROR", "the file ended without a result")
        self.complete = False

    def take(self, message: dict[str, Any]) -> None:
        """Take a message."""
        match message:
            case {"log": text}:
                self.result.log.append(text)
            case {"known": index, "name": name, "started": started}:
                self._open[index] = SubTest(name, "TIMEOUT" if started else "NOTRUN")
            case {"ended": index, "name": name, "status": status, "message": text}:
                self._open.pop(index, None)
                self.result.subtests.append(SubTest(self._unique(name), status, text))
            case {"harness": status, "message": text}:
                self.result.harness, self.result.message = status, text
                self.complete = True
            case _:
                raise ValueError(f"unknown message {message}")

    def _unique(self, name: str) -> str:
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else f"{name} #{count}"

    def end(self, status: HarnessStatus, message: str) -> None:
        """Record that the file did not complete: its tests that had begun have timed out, the others never ran."""
        self.result.harness, self.result.message = status, message
        for test in self._open.values():
            name = self._unique(test.name)
            self.result.subtests.append(attrs.evolve(test, name=name, message=message))
        self._open.clear()


async def run_file(settings: Settings, test: TestFile, folder: Path) -> FileResult:
    """Run one file and return its result; raises only what is a defect of this package.

    Args:
        settings: the options.
        test: the file.
        folder: an empty folder for temporary files.
    """
    results = Results(test)
    since = time.perf_counter()
    seconds = test.seconds * settings.timeout_multiplier
    program = NodeProgram(
        settings.backend,
        trace=settings.trace(test),
        compatibility=settings.compatibility,
        experimental=settings.experimental,
        description=settings.description,
    )
    job = folder / "job.json"
    job.write_text(json.dumps(_job(settings, test)), encoding="utf-8")
    async with hosted(program, folder):
        with trio.move_on_after(seconds if math.isfinite(seconds) else math.inf) as scope:
            await _play(results, folder, job)
        if scope.cancelled_caught:
            results.end("TIMEOUT", f"not complete after {seconds:g} s")
    if results.result.harness == "OK" and not results.result.subtests:
        results.end("ERROR", "the file has no tests")
    results.result.seconds = time.perf_counter() - since
    return results.result


async def _play(results: Results, folder: Path, job: Path) -> None:
    """Run the job in Node until it is complete, or nothing is left that could make it so."""
    process = await trio.lowlevel.open_process(
        [own_node(), own_path("wpt_window.cjs"), job],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment_for(folder),
    )
    try:
        async for line in _lines(cast("trio.abc.ReceiveStream", process.stdout)):
            results.take(json.loads(line))
        status = await process.wait()
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.wait()
    if results.complete:
        return
    if status == 0:
        results.end("TIMEOUT", "not complete, and nothing waits: a promise that is never settled")
    else:
        results.end("CRASH", f"Node ended with status {status}")


async def _lines(stream: trio.abc.ReceiveStream) -> AsyncIterator[bytes]:
    received = bytearray()
    async for data in stream:
        *lines, rest = (received + data).split(b"\n")
        received = rest
        for line in lines:
            yield bytes(line)


def _job(settings: Settings, test: TestFile) -> dict[str, Any]:
    """Return what ``js/wpt_window.cjs`` is to run, and the files that it is given.

    Raises:
        OSError: one of the scripts cannot be read.
    """
    paths = (HARNESS_SCRIPT, *test.scripts)
    scripts = [(f"/{path}", settings.file(path).read_text(encoding="utf-8")) for path in paths]
    scripts.append((HELPERS, own_source(HELPERS)))
    scripts.append((f"/{test.path}", settings.file(test.path).read_text(encoding="utf-8")))
    given = {IDL_FILE: settings.idl}
    if not settings.file(REQUIRED_FILE).is_file():
        given[REQUIRED_FILE] = required_json()
    return {
        "scripts": [{"name": name, "source": source} for name, source in scripts],
        "harness": f"/{HARNESS_SCRIPT}",
        "location": _location(test),
        "isolated": test.isolated,
        "folders": [str(folder.resolve()) for folder in (settings.newer, settings.root) if folder is not None],
        "given": given,
        "aliases": ALIASES,
    }


def _location(test: TestFile) -> dict[str, str]:
    return {
        "href": f"{ORIGIN}/{test.path}{test.variant}",
        "origin": ORIGIN,
        "protocol": "https:",
        "host": "web-platform.test",
        "hostname": "web-platform.test",
        "pathname": f"/{test.path}",
        "search": test.variant,
        "hash": "",
    }


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
