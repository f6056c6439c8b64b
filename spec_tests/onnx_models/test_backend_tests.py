"""Every test of ``onnx.backend.test`` that is in the package has the outcome that ``backend_tests.toml`` gives."""

import onnx
import trio

from spec_tests.onnx_models.backend_cases import backend_cases, outcome
from spec_tests.onnx_models.backend_list import LISTED, listed
from spec_tests.support import depth
from spec_tests.support.backends import BACKENDS, on_each

PARTS = {"quick": 3, "full": 1, "thorough": 1}
"""One test in this many runs on numpy; the tests of the rules all run."""

PARTS_ELSEWHERE = {"quick": 73, "full": 8, "thorough": 1}
"""One test in this many runs on the other devices; on the GPU compiling kernels takes most of the time."""

LONGEST = 60
"""The most seconds that a test may take; the slowest takes less than one."""


backend = on_each(BACKENDS)


def test_the_list_is_of_the_installed_onnx_and_names_its_tests():
    version, _ = listed()
    assert version == onnx.__version__, f"write {LISTED.name} again, and pin this version in pyproject.toml"


async def test_every_test_has_the_listed_outcome(context, backend, pytestconfig):
    _, known = listed()
    wrong = []
    parts = depth.amount(pytestconfig, **(PARTS if backend == "numpy" else PARTS_ELSEWHERE))
    for name, case in backend_cases().items():
        kind, reason = known[name]
        if not depth.has_turn(pytestconfig, f"{backend} {name}", parts):
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
