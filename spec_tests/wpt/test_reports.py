"""Reports: JSON, JUnit."""

import json
from xml.etree import ElementTree as ET

import pytest

from docs.make_conformance_page import operator_of
from webnn_py.javascript import reports
from webnn_py.javascript.expectations import Expected, judge
from webnn_py.javascript.results import FileResult, SubTest
from webnn_py.javascript.summary import Run

FILE = "webnn/conformance_tests/relu.https.any.js"
NASTY = "relu float16 <b>&\0\ud800 5D"


@pytest.fixture
def run():
    expected = {(FILE, "relu int8 known"): Expected("the text <says> so", "relu")}
    tests = [
        SubTest("relu float32 1D", "PASS"),
        SubTest("relu int8 known", "FAIL", "was expected"),
        SubTest(NASTY, "FAIL", "bad \x07 value"),
    ]
    files = [
        FileResult(f"{FILE}?cpu", "OK", None, tests, 0.25, ["log: hello"]),
        FileResult("webnn/x.any.js", "CRASH", "its process ended with status 70"),
    ]
    return Run({"backend": "numpy"}, files, {file.id: judge(file, expected) for file in files}, 2.0)


def test_json_has_every_sub_test_with_status_and_message(run):
    report = json.loads(reports.as_json(run))
    assert report["totals"] == {
        "files": 2,
        "files_not_ok": 1,
        "subtests": 3,
        "passed": 1,
        "never_ran": 0,
        "files_incomplete": 1,
        "expected_failures": 1,
        "unexpected_failures": 2,
        "unexpected_passes": 0,
        "seconds": 2.0,
    }
    relu, crashed = report["files"]
    assert relu["subtests"][2] == {
        "name": NASTY,
        "status": "FAIL",
        "verdict": "unexpected failure",
        "message": "bad \x07 value",
        "reason": None,
    }
    assert relu["subtests"][1]["reason"] == "the text <says> so (relu)"
    assert relu["log"] == ["log: hello"]
    assert (crashed["harness"], crashed["message"], crashed["subtests"]) == (
        "CRASH",
        "its process ended with status 70",
        [],
    )


def test_junit_skips_what_was_expected_and_fails_what_was_not(run):
    root = ET.fromstring(reports.as_junit(run))  # noqa: S314 - our own text
    relu, crashed = root.findall("testsuite")
    assert (relu.get("tests"), relu.get("failures"), relu.get("skipped")) == ("3", "1", "1")
    fine, known, bad = relu.findall("testcase")
    assert list(fine) == []
    assert known.find("skipped").get("message") == "the text <says> so (relu)"
    assert bad.get("name") == "relu float16 <b>&\\u0000\\ud800 5D"
    assert bad.find("failure").get("message") == "bad \\u0007 value"
    assert crashed.find("testcase/failure").get("type") == "unexpected failure"


@pytest.mark.parametrize(
    ("file", "name", "operator"),
    [
        (FILE, "relu float32 1D constant tensor", "relu"),
        ("webnn/v/elementwise-binary.any.js?op=sub&device=cpu", "[sub] throws", "sub"),
        ("webnn/conformance_tests/hard_sigmoid.any.js", "default options", "hardSigmoid"),
        ("webnn/conformance_tests/pooling.any.js", "l2Pool2d float16 4D", "l2Pool2d"),
        ("webnn/conformance_tests/tensor.any.js", "create / int64", "not of one operator"),
        ("webnn/idlharness.any.js", "MLGraph interface", "not of one operator"),
    ],
)
def test_the_page_of_conformance_reads_operators_from_names(file, name, operator):
    assert operator_of(file, name) == operator


@pytest.mark.parametrize("suffix", [".json", ".xml"])
def test_reports_are_written_by_their_names_endings(run, tmp_path, suffix):
    path = tmp_path / f"report{suffix}"
    reports.check(path)
    reports.write(run, path)
    assert path.read_text(encoding="utf-8")


def test_an_unknown_ending_and_a_missing_folder_are_refused_before_the_run(tmp_path):
    with pytest.raises(ValueError, match=r"\.json, \.xml"):
        reports.check(tmp_path / "report.txt")
    with pytest.raises(FileNotFoundError):
        reports.check(tmp_path / "nowhere" / "report.json")
