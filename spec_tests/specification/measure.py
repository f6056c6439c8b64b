"""Measure which tests reach which step, and write ``build/specification/coverage.json`` for the pages of steps.

``python -m spec_tests.specification.measure --wpt CHECKOUT [FILE…]`` runs web-platform-tests, one file after the other,
with ``--newer FOLDER`` those of a folder, and ``… --ours TEST…`` runs tests of this package; what follows are pytest's
arguments. Each replaces what was recorded of the same kind. After the last of the three kinds the status is 1 where
steps are neither reached nor explained in ``reasons.toml``.
"""

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest
import trio

from spec_tests.specification import coverage
from spec_tests.specification.tracing import Tracer
from webnn_py.javascript import arguments, checkout, commands, wpt_run

SHOWN = 2
"""The number of tests that are recorded by name for each step: those that reach the fewest steps."""


class Plugin:
    """Tells the tracer which test runs."""

    def __init__(self, tracer):
        self._tracer = tracer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self._tracer.test = item.nodeid.removeprefix("spec_tests/")
        self._tracer.start()
        try:
            return (yield)
        finally:
            self._tracer.stop()
            self._tracer.test = None


def of_ours(tracer, tests):
    """Run tests of this package."""
    return pytest.main(["-n0", "-q", "-p", "no:cacheprovider", "-p", "no:cov", *tests], plugins=[Plugin(tracer)])


def of_wpt(tracer, options):
    """Run files of web-platform-tests in this process."""
    settings = commands._settings(options, options.checkout)
    warnings.simplefilter("ignore", ResourceWarning)
    serve = wpt_run.Results.take
    for test in checkout.find(options.newer or options.checkout, options.files, options.device):
        name = test.path.removeprefix("webnn/")

        def watch(world, message, name=name):
            if message.get("started"):
                tracer.test = f"{name} > {message['name']}"
            elif "ended" in message:
                tracer.test = name
            serve(world, message)

        wpt_run.Results.take = watch
        tracer.test = name
        tracer.start()
        try:
            trio.run(wpt_run.run_file, settings, test)
        finally:
            tracer.stop()
            wpt_run.Results.take = serve


def recorded(tracer):
    """Return what is written of each step: the number of tests, and the names of a few."""
    found = tracer.steps()
    width = Counter(test for tests in found.values() for test in tests)
    return {
        f"{name} {identifier}": [len(tests), *sorted(tests, key=lambda test: (width[test], test))[:SHOWN]]
        for (name, identifier), tests in found.items()
    }


def main():
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m spec_tests.specification.measure", description=__doc__)
    parser.add_argument("--ours", nargs=argparse.REMAINDER, metavar="TEST")
    parser.add_argument("--wpt", type=Path, metavar="CHECKOUT")
    parser.add_argument("--newer", type=Path, metavar="FOLDER")
    parser.add_argument("files", nargs="*")
    given = parser.parse_args()
    tracer = Tracer()
    if given.ours:
        of_ours(tracer, given.ours)
        coverage.write("ours", recorded(tracer))
    else:
        command = ["wpt", str(given.wpt), *given.files]
        if given.newer:
            command += ["--newer", str(given.newer)]
        of_wpt(tracer, arguments_of(command))
        coverage.write("proposed" if given.newer else "wpt", recorded(tracer))
    wrong = coverage.unexplained()
    for line in wrong:
        print(line)
    return int(bool(wrong))


def arguments_of(command):
    """Return the options of a command line of ``webnn-py``."""
    parser = argparse.ArgumentParser()
    arguments.add_parsers(parser.add_subparsers(dest="command"))
    return parser.parse_args(command)


if __name__ == "__main__":
    sys.exit(main())
