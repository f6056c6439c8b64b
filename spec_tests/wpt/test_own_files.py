"""The test files of our own, in both engines: what a checkout's files need of the runner."""

import pytest

from spec_tests.support.scripts import FILES, both_engines, run, settings, statuses
from webnn_py.javascript import checkout
from webnn_py.javascript.wpt_run import run_file

OURS = sorted({test.path for test in checkout.find(FILES, [], "cpu")})


@both_engines
@pytest.mark.parametrize("path", OURS)
async def test_every_sub_test_passes(path, engine):
    result = await run(path, engine)
    assert result.harness == "OK", result.message
    assert result.subtests
    assert {test.name: test.message for test in result.subtests if test.status != "PASS"} == {}


async def test_a_variant_is_what_the_script_sees_as_its_query():
    (test,) = checkout.find(FILES, ["webnn/tensors.any.js?gpu"], "cpu")
    assert (await run_file(settings(), test)).id == "webnn/tensors.any.js?gpu"


@pytest.mark.parametrize("path", OURS)
async def test_both_engines_agree_on_every_sub_test(path):
    assert statuses(await run(path, "quickjs")) == statuses(await run(path, "node"))
