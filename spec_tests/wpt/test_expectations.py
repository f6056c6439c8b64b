"""Expected failures, and what a result is worth in their light."""

import pytest

from webnn_py.javascript.compatibility import MODES
from webnn_py.javascript.expectations import SHIPPED, Expected, judge, load
from webnn_py.javascript.results import FileResult, SubTest
from webnn_py.javascript.summary import Run, line

FILE = "webnn/a.any.js"
EXPECTED = {(FILE, "known"): Expected("the text says so", "section 1")}


def result(*tests, harness="OK", variant="?cpu"):
    return FileResult(FILE + variant, harness, None, [SubTest(name, status) for name, status in tests])


def verdicts(of, expectations=EXPECTED):
    return {one.name: one.verdict for one in judge(of, expectations)}


def test_the_four_verdicts():
    assert verdicts(result(("fine", "PASS"), ("known", "FAIL"), ("new", "FAIL"))) == {
        "fine": "pass",
        "known": "expected failure",
        "new": "unexpected failure",
    }
    assert verdicts(result(("known", "PASS"))) == {"known": "unexpected pass"}


@pytest.mark.parametrize("status", ["TIMEOUT", "NOTRUN", "PRECONDITION_FAILED"])
def test_what_did_not_pass_has_failed(status):
    assert verdicts(result(("known", status), ("new", status))) == {
        "known": "expected failure",
        "new": "unexpected failure",
    }


@pytest.mark.parametrize("harness", ["ERROR", "TIMEOUT", "CRASH"])
def test_a_file_that_ends_badly_is_a_failure_of_its_own(harness):
    assert verdicts(result(("known", "FAIL"), harness=harness))["(harness)"] == "unexpected failure"


def test_an_expectation_of_what_the_file_does_not_have_is_red():
    assert verdicts(result(("fine", "PASS"))) == {"fine": "pass", "known": "unexpected failure"}


def test_expectations_of_other_files_do_not_matter():
    other = {("webnn/b.any.js", "known"): Expected("r", "s")}
    assert verdicts(result(("fine", "PASS")), other) == {"fine": "pass"}


@pytest.mark.parametrize(
    ("tests", "ends_well"),
    [
        ([("fine", "PASS"), ("known", "FAIL")], True),
        ([("fine", "PASS"), ("known", "PASS")], False),
        ([("fine", "FAIL"), ("known", "FAIL")], False),
    ],
)
def test_a_run_ends_well_when_nothing_is_unexpected(tests, ends_well):
    of = result(*tests)
    run = Run({}, [of], {of.id: judge(of, EXPECTED)}, 1.5)
    assert run.as_expected is ends_well
    assert f"{sum(status == 'PASS' for _, status in tests)} of 2 sub-tests passed in 1 files, 1.5 s" in line(run)


def test_a_run_of_nothing_does_not_end_well():
    assert not Run({}, [], {}, 0.0).as_expected


ENTRY = """
[[failure]]
compatibility = "none"
file = "webnn/a.any.js"
subtests = ["one", "two"]
reason = "because"
section = "section 1"
"""


def test_entries_are_read_for_one_mode(tmp_path):
    path = tmp_path / "expected.toml"
    path.write_text(ENTRY, encoding="utf-8")
    assert set(load(path, "none", "numpy")) == {(FILE, "one"), (FILE, "two")}
    assert load(path, "wpt-2025-03", "numpy") == {}


def test_entries_may_be_for_some_backends_only(tmp_path):
    path = tmp_path / "expected.toml"
    path.write_text(ENTRY + 'backends = ["wgpu"]\n', encoding="utf-8")
    assert load(path, "none", "numpy") == {}
    assert len(load(path, "none", "wgpu")) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENTRY.replace('reason = "because"\n', ""), "reason"),
        (ENTRY.replace("section 1", ""), "a reason or a section"),
        (ENTRY + ENTRY, "listed twice"),
    ],
)
def test_bad_entries_are_refused(tmp_path, text, words):
    path = tmp_path / "expected.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        load(path, "none", "numpy")


def test_what_is_shipped_can_be_read_and_is_for_a_mode_that_exists():
    import tomllib  # noqa: PLC0415 - here only

    groups = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))["failure"]
    assert {group["compatibility"] for group in groups} <= set(MODES)
    assert sum(len(group["subtests"]) for group in groups) == len(load(SHIPPED, "wpt-2025-03", "numpy"))
