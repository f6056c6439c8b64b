"""A real checkout of web-platform-tests, when one is given: the whole suite."""

import json
import subprocess
import sys

from spec_tests.support.given import CHECKOUT, SPECIFICATION, given


def totals_of(folder, *arguments):
    path = folder / "report.json"
    run = subprocess.run(
        [sys.executable, "-m", "webnn_py.cli", "wpt", *map(str, arguments), "--report", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(path.read_text(encoding="utf-8"))["totals"]


def test_nothing_in_the_whole_suite_is_unexpected(tmp_path):
    totals = totals_of(tmp_path, given(CHECKOUT))
    assert totals["passed"] >= 3380
    assert totals["files_not_ok"] == 0


def test_idlharness_passes_with_the_specifications_own_idl(tmp_path):
    arguments = [given(CHECKOUT), "webnn/idlharness.https.any.js", "--idl", given(SPECIFICATION)]
    totals = totals_of(tmp_path, *arguments, "--compatibility", "none")
    assert totals["passed"] == totals["subtests"] > 600
