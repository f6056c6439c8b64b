"""The proposed tests pass here, and in the text's own mode, and their page has what is recorded."""

import re

import pytest

from spec_tests.support.scripts import run_file, settings
from spec_tests.wpt_proposed import verdicts
from webnn_py.javascript import checkout
from webnn_py.javascript.compatibility import NONE, WPT_2026

TESTS = checkout.find(verdicts.FOLDER, [], "cpu")


async def results(path, mode):
    """The sub-tests of a file."""
    (test,) = [test for test in TESTS if test.path == path]
    return await run_file(settings(newer=verdicts.FOLDER, compatibility=mode), test)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", verdicts.paths())
async def test_every_sub_test_passes(path):
    result = await results(path, WPT_2026)
    assert result.harness == "OK", result.message
    assert {test.name: test.message for test in result.subtests if test.status != "PASS"} == {}
    _, recorded = verdicts.read()
    assert {test.name for test in result.subtests} == set(recorded[path])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", verdicts.paths())
async def test_every_sub_test_passes_in_the_mode_of_the_text(path):
    result = await results(path, NONE)
    assert {test.name: test.message for test in result.subtests if test.status != "PASS"} == {}


def test_each_is_in_the_form_of_web_platform_tests():
    for path in verdicts.paths():
        text = (verdicts.FOLDER / path).read_text(encoding="utf-8")
        assert re.match(r"// META: title=.+\n// META: global=window,worker\n// META: variant=\?cpu\n", text)
        assert "'use strict';" in text
        assert "script=" not in text


def test_the_page_says_what_is_recorded():
    assert verdicts.PAGE.read_text(encoding="utf-8") == verdicts.page()
    assert sum(map(len, verdicts.read()[1].values())) >= 50
