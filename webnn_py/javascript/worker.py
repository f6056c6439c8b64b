"""Test files in processes of their own: a crash or a hang costs that file and no other."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import attrs
import trio

from webnn_py.javascript.checkout import TestFile
from webnn_py.javascript.results import FileResult
from webnn_py.javascript.wpt_run import Settings, run_file

GRACE_SECONDS = 10.0
"""How long after its time limit a file, which should have ended by itself, is killed."""


@attrs.define(eq=False)
class _Running:
    test: TestFile
    process: BaseProcess
    connection: Connection
    since: float
    deadline: float

    def kill(self) -> None:
        """End the process and the Node that it may have started."""
        if self.process.pid is not None and hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()


def _child(settings: Settings, test: TestFile, folder: Path, connection: Connection) -> None:
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    # Scripts leave buffers to the garbage collector, as they may.
    warnings.simplefilter("ignore", ResourceWarning)
    try:
        result = trio.run(run_file, settings, test, folder)
    except BaseException as error:  # noqa: BLE001 - whatever it was, the file has crashed
        text = "".join(traceback.format_exception(error)).strip()
        result = FileResult(test.id, "CRASH", text)
    connection.send(result)
    connection.close()


def run_files(
    settings: Settings, tests: Sequence[TestFile], *, jobs: int, grace_seconds: float = GRACE_SECONDS
) -> Iterator[FileResult]:
    """Run files, ``jobs`` at a time, and yield each result as it comes."""
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(["webnn_py.javascript.preload"])
    # Long ones first, so that none is left alone at the end.
    waiting = sorted(tests, key=lambda test: -settings.file(test.path).stat().st_size)
    running: dict[Connection, _Running] = {}
    folder = Path(tempfile.mkdtemp(prefix="webnn_py-"))
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                own = Path(tempfile.mkdtemp(dir=folder))
                started = _start(context, settings, waiting.pop(0), own, grace_seconds)
                running[started.connection] = started
            soonest = min(one.deadline for one in running.values())
            ready = wait(list(running), max(0.0, soonest - time.monotonic()))
            now = time.monotonic()
            overdue = [one.connection for one in running.values() if one.deadline <= now]
            for connection in {*ready, *overdue}:
                one = running.pop(connection)  # type: ignore[call-overload]  # only connections wait
                yield _finish(one, overdue=connection not in ready)
    finally:
        for one in running.values():
            one.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _start(context: Any, settings: Settings, test: TestFile, folder: Path, grace_seconds: float) -> _Running:
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(settings, test, folder, theirs))
    child.start()
    theirs.close()
    since = time.monotonic()  # the first one waits until the process is there that they are forked from
    limit = test.seconds * settings.timeout_multiplier + grace_seconds
    return _Running(test, child, ours, since, since + limit)


def _finish(one: _Running, *, overdue: bool) -> FileResult:
    """Return the result of a file whose process has reported something, ended, or run out of time."""
    seconds = time.monotonic() - one.since
    try:
        if overdue:
            one.kill()
            return FileResult(one.test.id, "TIMEOUT", f"killed after {seconds:.0f} s", seconds=seconds)
        result: FileResult = one.connection.recv()
        one.process.join()
    except EOFError:
        one.process.join()
        status = one.process.exitcode
        return FileResult(one.test.id, "CRASH", f"its process ended with status {status}", seconds=seconds)
    finally:
        one.connection.close()
    return result
