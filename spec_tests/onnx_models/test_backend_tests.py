"""``onnx.backend.test``: every test of it that is in the package comes to what ``backend_tests.toml`` says."""

import onnx
import pytest
import trio

from spec_tests.onnx_models.backend_cases import backend_cases, outcome
from spec_tests.onnx_models.backend_list import LISTED, listed
from spec_tests.support import depth
from spec_tests.support.backends import BACKENDS

PARTS = {"quick": 3, "full": 1, "thorough": 1}
"""On numpy one test in so many runs each day; a rule of an operator has tests of its own, which run every day."""

PARTS_ELSEWHERE = {"quick": 73, "full": 8, "thorough": 1}
"""Likewise on the other devices: on the GPU most of the time goes into compiling kernels."""

LONGEST = 60
"""Seconds; the slowest test takes less than one."""


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    return request.param


def test_the_list_is_of_the_installed_onnx_and_has_every_test():
    version, known = listed()
    assert version == onnx.__version__, f"write {LISTED.name} anew, and pin this version in pyproject.toml"
    assert known.keys() == backend_cases().keys()


async def test_every_test_comes_to_what_the_list_says(context, backend, pytestconfig):
    _, known = listed()
    wrong = []
    parts = depth.amount(pytestconfig, **(PARTS if backend == "numpy" else PARTS_ELSEWHERE))
    for position, (name, case) in enumerate(backend_cases().items()):
        kind, reason = known[name]
        if not depth.has_turn(pytestconfig, position, parts):
            continue
        try:
            with trio.fail_after(LONGEST):
                result = await outcome(context, case)
        except Exception as error:
            error.add_note(f"in {name}")
            raise
        rounds_otherwise = backend != "numpy" and kind == "wrong"  # by one unit, where the list was written: on numpy
        if result.kind != kind and not (rounds_otherwise and result.kind == "run"):
            wrong.append(f'{name}: listed as "{kind}" {reason}, but is "{result.kind}" {result.wrong}')
    assert not wrong, "\n".join([f"{len(wrong)} tests are not as {LISTED.name} says:", *wrong])
