"""The runner shows red when something is wrong: a green run of it means something."""

import pytest

from spec_tests.support.scripts import run, statuses
from webnn_py.core.operators import activation
from webnn_py.devices.numpy.backend import NumpyBackend
from webnn_py.javascript.expectations import judge


def unexpected(result):
    return {one.name for one in judge(result, {}) if one.verdict == "unexpected failure"}


async def test_a_device_that_returns_shifted_values_is_red(monkeypatch):
    read = NumpyBackend.read

    def shifted(self, storage):
        data = read(self, storage)
        return data + 1 if data.dtype.kind == "f" else data

    monkeypatch.setattr(NumpyBackend, "read", shifted)
    result = await run("graphs.any.js")
    assert result.harness == "OK"
    wrong = {name for name, status in statuses(result).items() if status == "FAIL"}
    assert wrong == {name for name in statuses(result) if "float32" in name}
    assert unexpected(result) == wrong


async def test_a_builder_that_forgets_one_validation_is_red(monkeypatch):
    assert activation.softmax.parameters  # read from the function once, and kept: it must be the right one
    monkeypatch.setattr(activation.softmax, "function", lambda **arguments: arguments["input"]._descriptor)
    result = await run("validation.any.js")
    assert unexpected(result) == {"[softmax] a refusal says the label"}


async def test_a_promise_that_never_settles_with_nothing_to_wait_for_is_a_time_out_before_the_limit():
    result = await run("broken/never_settles.any.js")
    assert result.harness == "TIMEOUT"
    assert "never settled" in result.message
    assert statuses(result) == {
        "one that ends": "PASS",
        "one that never ends": "TIMEOUT",
        "one that never runs": "NOTRUN",
    }
    assert unexpected(result) == {"one that never ends", "one that never runs", "(harness)"}


BROKEN = {
    "throws_at_load": ("nobodyDefinedThis", {"a test before the exception": "PASS"}),
    "does_not_parse": ("SyntaxError", {}),
    "empty": ("no tests", {}),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_file_that_does_not_run_to_its_end_is_red(name):
    message, told = BROKEN[name]
    result = await run(f"broken/{name}.any.js")
    assert (result.harness, statuses(result)) == ("ERROR", told)
    assert message in result.message
    assert unexpected(result) == {"(harness)"}


async def test_a_sub_test_that_fails_says_why():
    result = await run("broken/fails.any.js")
    assert result.harness == "OK"
    (failed,) = (test for test in result.subtests if test.status != "PASS")
    assert (failed.name, failed.status) == ("fails", "FAIL")
    assert "one and two" in failed.message


async def test_a_script_that_is_missing_is_no_result_but_an_error():
    with pytest.raises(FileNotFoundError, match=r"nowhere\.js"):
        await run("broken/needs_what_is_not_there.any.js")
