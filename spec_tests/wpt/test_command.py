"""The commands ``webnn-py wpt`` and ``webnn-py js``, as a user meets them."""

import json
import subprocess
import sys

import pytest

from spec_tests.support.scripts import FILES, both_engines
from webnn_py import cli
from webnn_py.distribution import install_command
from webnn_py.javascript import commands


def webnn_py(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "webnn_py.cli", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("engine", ["quickjs", "node"])
def test_a_green_run_ends_with_status_0_and_its_reports(engine, tmp_path):
    run = webnn_py("wpt", FILES, "--engine", engine, "--report", tmp_path / "r.json", "--report", tmp_path / "r.xml")
    assert run.returncode == 0, run.stdout + run.stderr
    totals = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["totals"]
    assert totals["passed"] == totals["subtests"] > 0
    assert f"{totals['passed']} of {totals['subtests']} sub-tests passed" in run.stdout
    assert (tmp_path / "r.xml").is_file()


def test_unexpected_failures_are_told_and_end_with_status_1():
    run = webnn_py("wpt", FILES, "broken/fails.any.js", "broken/throws_at_load.any.js", "scope.window.js")
    assert run.returncode == 1
    assert "UNEXPECTED FAILURE  broken/fails.any.js  fails" in run.stdout
    assert "one and two" in run.stdout
    assert "UNEXPECTED FAILURE  broken/throws_at_load.any.js  (harness)" in run.stdout


@both_engines
def test_the_last_line_counts_what_never_ran(engine):
    files = ["broken/never_settles.any.js", "broken/throws_at_load.any.js", "scope.window.js"]
    run = webnn_py("wpt", FILES, *files, "--engine", engine)
    assert run.returncode == 1
    assert run.stdout.endswith("; 1 sub-tests never ran, 2 files did not complete\n")


def test_unexpected_passes_are_told_as_loudly(tmp_path):
    expected = tmp_path / "expected.toml"
    expected.write_text(
        '[[failure]]\ncompatibility = "wpt-2026"\nfile = "broken/fails.any.js"\nsubtests = ["fails", "passes"]\n'
        'reason = "a reason"\nsection = "a section"\n',
        encoding="utf-8",
    )
    run = webnn_py("wpt", FILES, "broken/fails.any.js", "--expected", expected)
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
        (["js", "/nowhere.js"], "nowhere.js"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line_with_status_2(arguments, words, capsys):
    assert cli.main([str(argument) for argument in arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_a_missing_extra_is_named_with_the_cure(monkeypatch, capsys):
    monkeypatch.setattr("webnn_py.javascript.engine_commands.find_spec", lambda _name: None)
    assert cli.main(["wpt", str(FILES)]) == 2
    assert install_command("javascript") in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["quickjs", "node"])
@pytest.mark.parametrize(
    "program",
    [
        ("a.js", "console.log(typeof navigator.ml)", 0, "object\n"),
        ("a.js", "console.log('lone \\ud800, NUL \\0')", 0, "lone \\ud800, NUL \0\n"),
        ("a.mjs", "console.log((await navigator.ml.createContext()).accelerated)", 0, "true\n"),
        ("a.js", "fetch('https://example.com/').catch((error) => console.log(error.name))", 0, "TypeError\n"),
        ("a.js", "console.log('first'); throw new RangeError('mine')", 1, "first\n"),
        ("a.mjs", "throw new RangeError('mine')", 1, ""),
        ("a.js", "setTimeout(() => { throw new RangeError('mine') })", 1, ""),
    ],
)
def test_js_runs_a_program_to_its_end(tmp_path, capsys, engine, program):
    name, source, status, out = program
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    assert cli.main(["js", str(path), "--engine", engine]) == status
    printed = capsys.readouterr()
    assert printed.out == out
    assert printed.err.startswith("Uncaught RangeError: mine") is (status == 1)


@pytest.mark.parametrize(
    ("idl", "mode"),
    [("", "wpt-2026"), ("roundingType", "wpt-2025-03"), ("outputShapeRounding", "wpt-2026")],
)
def test_the_compatibility_mode_follows_the_age_of_the_idl(idl, mode):
    assert commands._mode("auto", idl).name == mode
    assert commands._mode("none", idl).name == "none"
