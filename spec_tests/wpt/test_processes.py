"""Files in processes of their own: what one does to itself, others do not feel."""

import os

import attrs

from spec_tests.support.scripts import settings, statuses, test_file
from webnn_py.javascript.worker import run_files

SECONDS = {"broken/hangs.any.js": 1}
"""For how long files may run; others for long enough on any machine."""


def results(names, **changes):
    tests = [attrs.evolve(test_file(name), seconds=SECONDS.get(name, 60)) for name in names]
    return {
        result.id: result
        for result in run_files(settings(timeout_multiplier=1, **changes), tests, jobs=2, grace_seconds=60)
    }


def test_a_file_that_hangs_is_ended_and_the_others_run():
    found = results(["broken/hangs.any.js", "graphs.any.js"])
    hung, well = found["broken/hangs.any.js"], found["webnn/graphs.any.js"]
    assert (hung.harness, hung.subtests) == ("TIMEOUT", [])
    assert "not complete after 1 s" in hung.message
    assert set(statuses(well).values()) == {"PASS"}


def test_a_process_that_dies_is_a_crash_and_is_told():
    (crashed,) = results(["graphs.any.js"], description=_Deadly()).values()
    assert (crashed.harness, crashed.subtests) == ("CRASH", [])
    assert "ended with status 70" in crashed.message


class _Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (70,)


def test_an_exception_of_the_runner_itself_is_a_crash_with_its_traceback():
    (crashed,) = results(["broken/needs_what_is_not_there.any.js"]).values()
    assert crashed.harness == "CRASH"
    assert "FileNotFoundError" in crashed.message
