"""Run the tests of each fault in a process of its own, forked from one that has imported and collected them all."""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import deque
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

import attrs
import pytest

from spec_tests.labs.faults.records import Fault

ROOT = Path(__file__).parents[3]
OPTIONS = ("-q", "-x", "-n0", "-p", "no:cacheprovider", "-p", "spec_tests.labs.faults.plugin")
PLUGIN = "-p", "spec_tests.labs.faults.plugin"
LONGEST = 120
"""Seconds for the tests of one fault. A fault that keeps them from ending needs tests that fail instead."""

FORKING = multiprocessing.get_context("fork")


@attrs.frozen
class Outcome:
    """The outcome of a fault.

    Attributes:
        is_found: whether a test failed that passes without the fault.
        words: how it was found, or why not.
        seconds: how long its tests took.
    """

    is_found: bool
    words: str
    seconds: float

    def __str__(self):
        return f"{'found' if self.is_found else 'MISSED'} {self.words}, {self.seconds:.1f} s"


def cores():
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


class FirstFailure:
    """A plugin that notes the first test that fails."""

    def __init__(self):
        self.test = None
        self.why = ""
        self.ran = 0

    def pytest_runtest_logreport(self, report):
        self.ran += report.when == "call"
        self.pytest_collectreport(report)

    def pytest_collectreport(self, report):
        if report.failed and self.test is None:
            self.test = report.nodeid
            crash = getattr(report.longrepr, "reprcrash", None)
            self.why = f" ({report.when}: {crash.message.splitlines()[0]})" if crash else ""


def tests_of(fault):
    """Return the paths of the tests that concern a fault."""
    found = {pattern: sorted(ROOT.glob(pattern)) for pattern in fault.tests}
    missing = [pattern for pattern, paths in found.items() if not paths]
    if missing:
        raise SystemExit(f"{fault.name}: there are no tests {', '.join(missing)}; update the fault")
    return [str(path.relative_to(ROOT)) for paths in found.values() for path in paths]


def _pytest(arguments, connection, output):
    """Run pytest in this process, which was forked for that; send its status, the first failure and the tests run."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    failure = FirstFailure()
    status = pytest.main([*OPTIONS, *arguments], plugins=[failure])
    connection.send((int(status), failure.test, failure.why, failure.ran))
    connection.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


@attrs.define(eq=False)
class Run:
    """Tests that run in a process of their own.

    Attributes:
        fault: the fault that they concern.
        process: the process, which sends its answer and writes its output.
        began: when it was started.
        found_by: the test that failed, while it runs once more without the fault.
        why: how it failed.
        seconds: how long the tests with the fault took.
    """

    fault: Fault
    process: BaseProcess
    answer: Connection
    output: IO[bytes]
    began: float
    found_by: str | None = None
    why: str = ""
    seconds: float = 0

    @classmethod
    def begin(cls, fault, arguments, **more):
        """Start a process."""
        answer, there = FORKING.Pipe(duplex=False)
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the run ends
        process = FORKING.Process(target=_pytest, args=(arguments, there, output.fileno()))
        process.start()
        there.close()
        return cls(fault, process, answer, output, time.monotonic(), **more)

    def end(self):
        """Wait for the process; return what it sent, None if it sent nothing, and the last it wrote."""
        sent = None
        with contextlib.suppress(EOFError):
            sent = self.answer.recv() if self.answer.poll() else None
        self.process.join()
        self.output.seek(0)
        text = self.output.read().decode(errors="replace")[-3000:]
        self.output.close()
        self.answer.close()
        return sent, text

    @property
    def is_late(self):
        return time.monotonic() - self.began > LONGEST

    def kill(self):
        """End the process and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()


def collect(faults, options):
    """Import all tests that concern some faults, and what they import, so that forked processes have them."""
    paths = list(dict.fromkeys(path for fault in faults for path in tests_of(fault)))
    with tempfile.TemporaryFile("w+") as output, contextlib.redirect_stdout(output):
        status = pytest.main(["-q", "-n0", "--collect-only", "-p", "no:cacheprovider", *PLUGIN, *options, *paths])
        if status != pytest.ExitCode.OK:
            output.seek(0)
            raise SystemExit(f"the tests cannot be collected:\n{output.read()[-3000:]}")


def outcomes(faults, options, jobs):
    """Run the tests of each fault; yield it and its outcome, as they end."""
    os.chdir(ROOT)
    collect(faults, options)
    waiting, running = deque(faults), []
    while waiting or running:
        while waiting and len(running) < jobs:
            fault = waiting.popleft()
            chosen = ["-k", fault.only] if fault.only else []
            running.append(Run.begin(fault, ["--fault", fault.name, *options, *chosen, *tests_of(fault)]))
        wait([run.process.sentinel for run in running], timeout=0.5)
        for run in list(running):
            if run.process.is_alive() and not run.is_late:
                continue
            running.remove(run)
            outcome = _outcome(run, options)
            if isinstance(outcome, Run):
                running.append(outcome)
            else:
                yield run.fault, outcome


def _outcome(run, options):
    """Return the outcome of a run that has ended or taken too long, or the run that decides it."""
    seconds = run.seconds or time.monotonic() - run.began
    if run.process.is_alive():
        run.kill()
        return Outcome(False, f": no end after {LONGEST} s", seconds)
    sent, text = run.end()
    if sent is None:
        return Outcome(run.found_by is None, f"by the end of the process ({run.process.exitcode})", seconds)
    status, failed, why, count = sent
    if run.found_by is not None:
        passes = status == pytest.ExitCode.OK
        return Outcome(
            passes, f"by {run.found_by}{run.why}" if passes else f": {run.found_by} fails without it{why}", seconds
        )
    if status == pytest.ExitCode.TESTS_FAILED or (status == pytest.ExitCode.INTERRUPTED and failed):
        return Run.begin(run.fault, [*options, failed], found_by=failed, why=why, seconds=seconds)
    if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return Outcome(False, f"by {count} tests", seconds)
    raise SystemExit(f"{run.fault.name}: pytest ended with {status}\n{text}")
