"""A real checkout of web-platform-tests, when one is given: the whole suite, in both engines."""

import json
import subprocess
import sys

import pytest

from spec_tests.support.given import CHECKOUT, SPECIFICATION, given
from webnn_py.javascript.engine import ENGINES


def report_of(folder, *arguments):
    path = folder / "report.json"
    run = subprocess.run(
        [sys.executable, "-m", "webnn_py.cli", "wpt", *map(str, arguments), "--report", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole_suite(tmp_path_factory):
    """The report of the whole suite for each engine."""
    checkout = given(CHECKOUT)
    return {engine: report_of(tmp_path_factory.mktemp(engine), checkout, "--engine", engine) for engine in ENGINES}


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_in_the_whole_suite_is_unexpected(engine, whole_suite):
    totals = whole_suite[engine]["totals"]
    assert totals["passed"] >= 3380
    assert totals["files_not_ok"] == 0


def test_the_engines_agree_on_every_sub_test(whole_suite):
    def statuses(report):
        return {(file["id"], test["name"]): test["status"] for file in report["files"] for test in file["subtests"]}

    assert statuses(whole_suite["quickjs"]) == statuses(whole_suite["node"])


@pytest.mark.parametrize("engine", ENGINES)
def test_idlharness_passes_with_the_specifications_own_idl(engine, tmp_path):
    arguments = [given(CHECKOUT), "webnn/idlharness.https.any.js", "--idl", given(SPECIFICATION)]
    totals = report_of(tmp_path, *arguments, "--compatibility", "none", "--engine", engine)["totals"]
    assert totals["passed"] == totals["subtests"] > 600
