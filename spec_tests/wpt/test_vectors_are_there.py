"""Without the WPT vectors their tests say that they were not run."""

from types import SimpleNamespace

import pytest

from spec_tests.wpt.option import OPTION, VARIABLE, needed_vectors, why_not


def test_the_vectors_are_there(pytestconfig):
    if words := why_not(pytestconfig):
        pytest.skip(words)


def test_a_file_that_is_named_without_them_is_skipped(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"neither {OPTION} nor {VARIABLE} names their folder"):
        needed_vectors(SimpleNamespace(getoption=lambda *_: None))
