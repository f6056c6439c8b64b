"""The test files of our own: what a checkout's files need of the runner."""

import pytest

from spec_tests.support.scripts import FILES, run, run_file, settings
from webnn_py.javascript import checkout

OURS = sorted({test.path for test in checkout.find(FILES, [], "cpu")})


@pytest.mark.parametrize("path", OURS)
async def test_every_sub_test_passes(path):
    result = await run(path)
    assert result.harness == "OK", result.message
    assert result.subtests
    assert {test.name: test.message for test in result.subtests if test.status != "PASS"} == {}


async def test_a_variant_is_what_the_script_sees_as_its_query():
    (test,) = checkout.find(FILES, ["webnn/tensors.any.js?gpu"], "cpu")
    assert (await run_file(settings(), test)).id == "webnn/tensors.any.js?gpu"
