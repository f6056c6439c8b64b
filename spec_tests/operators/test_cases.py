"""Every case of every category computes what its oracle says, through the public API, on every backend."""

from typing import Any

import attrs
import numpy as np
import pytest
import trio

from spec_tests.operators.cases import flushed, load_all
from spec_tests.operators.choosing import Choice
from spec_tests.operators.exceptions import EXCEPTIONS, FOLDED
from spec_tests.operators.running import Computed, has_subnormals, run_cases, without_zeros
from spec_tests.support.adapter_arithmetic import with_subnormals_as_zero
from spec_tests.support.backends import BACKENDS, DEVICES, NO_ADAPTER, on_each
from spec_tests.support.sampled_engine import ENGINE, OPTION, owner
from webnn_py.testing.device_cases.graphs import DRAWERS

TINY = 2.0**-100
FILES = load_all()
OF_NAME = {file.operator: file for file in FILES}
EVERY_FILE = pytest.mark.parametrize("file", [pytest.param(file, id=file.operator) for file in FILES])
LISTED = [pytest.param(*listed, reason, id="-".join(listed)) for listed, reason in EXCEPTIONS.items()]


backend = on_each(DEVICES)


@pytest.fixture
def options(request, backend):
    """All files of a worker share a GPU device, and what has been compiled for it."""
    return {"gpu_device": request.getfixturevalue("shared_gpu")} if backend == "wgpu" else {}


@EVERY_FILE
def test_cases_compute_what_their_oracles_say(pytestconfig, backend, options, file):
    _check(pytestconfig, backend, options, file, "as_written")


@EVERY_FILE
@pytest.mark.parametrize("backend", BACKENDS, scope="module")
@pytest.mark.parametrize("drawer", ["as_constant", "as_view", "as_part"])
def test_cases_compute_the_same_from(pytestconfig, backend, options, file, drawer):
    """Constants, which are computed when the graph is built, and views, whose elements are not in order."""
    _check(pytestconfig, backend, options, file, drawer)


def _check(config, backend, options, file, drawer):
    cases = Choice(config).cases(backend, file, drawer)
    owners = {owner(backend), *([backend] if drawer == FOLDED else [])}
    known = {(operator, name) for owner, operator, name in EXCEPTIONS if owner in owners}
    some = tuple(case for case in cases if (file.operator, case.name) not in known)
    computed = Computed.of(backend, attrs.evolve(file, cases=some), DRAWERS[drawer], **options)
    wrong = {case.name: words for case in some if (words := computed.what_is_wrong(case))}
    raised = [error for name in wrong if isinstance(error := computed.results[name], Exception)]
    if wrong:
        said = "".join(f"\n{file.operator}, {name}: {words}" for name, words in wrong.items())
        raise AssertionError(f"{len(wrong)} of {len(some)} cases are wrong{said}") from next(iter(raised), None)


@pytest.mark.parametrize(("backend", "operator", "name", "reason"), LISTED, scope="module")
def test_a_listed_exception_is_still_one(request, backend, operator, name, reason):
    if backend not in BACKENDS and backend != request.config.getoption(OPTION):
        pytest.skip("the execution provider is not tested" if backend.endswith("ExecutionProvider") else NO_ADAPTER)
    if backend != owner(backend):
        pytest.skip("another execution provider is tested")
    backend = backend if backend in BACKENDS else ENGINE
    options = {"gpu_device": request.getfixturevalue("shared_gpu")} if backend == "wgpu" else {}
    file = OF_NAME[operator]
    case = next(case for case in file.cases if case.name == name)
    computed = Computed.of(backend, attrs.evolve(file, cases=(case,)), **options)
    assert computed.what_is_wrong(case), f"{operator}, {name}: passes, though it is listed: {reason}"
    pytest.xfail(reason)


@EVERY_FILE
def test_a_shifted_expectation_is_reported(file):
    """The runner can fail: for each operator, in each output, by the least that the tolerance forbids."""
    cases = (case for case in file.cases if not has_subnormals(case))  # with these two results may be right
    case = next(case for case in cases if all(_can_be_shifted(array).any() for array in case.expected))
    computed = Computed.of("numpy", attrs.evolve(file, cases=(case,)))
    for index, array in enumerate(case.expected):
        position = int(np.argmax(_can_be_shifted(array)))
        shifted = list(case.expected)
        shifted[index] = _shifted(array, position, case.tolerance)
        wrong = computed.what_is_wrong(case, shifted)
        place = [int(i) for i in np.unravel_index(position, array.shape)]
        assert wrong.startswith(f"output {index}: {place} is "), f"{case.name}: output {index} is wrong, but {wrong!r}"


def _can_be_shifted(array: np.ndarray) -> np.ndarray:
    """Where a neighbouring number is another one for every adapter: not at 0, since some have no subnormal numbers."""
    if array.dtype.kind != "f":
        return np.ones(array.shape, bool)
    with np.errstate(invalid="ignore"):
        return np.isfinite(array) & (np.abs(array) > TINY)


def _shifted(array: np.ndarray, position: int, tolerance: dict[str, Any]) -> np.ndarray:
    """A copy with the element at ``position`` moved beyond any tolerated result around the old one."""
    shifted = array.copy()
    flat = shifted.reshape(-1)
    old = flat[position].item()
    steps = 2 * int(tolerance.get("ulp", 0)) + 1
    with np.errstate(all="ignore"):
        if "absolute" in tolerance:
            flat[position] += max(3 * tolerance["absolute"], float(np.spacing(abs(flat[position]))))
        elif array.dtype.kind == "f":
            for _ in range(steps):
                flat[position] = np.nextafter(flat[position], array.dtype.type(-np.inf if old > 0 else np.inf))
        else:
            flat[position] = old + (steps if old + steps <= np.iinfo(array.dtype).max else -steps)
    return shifted


SUBNORMAL = 2.0**-130


@pytest.mark.parametrize(
    ("got", "expected", "with_zeros", "is_explained"),
    [
        (0, SUBNORMAL, 0, True),
        (-0.0, SUBNORMAL, 1, True),
        (np.nan, 0, np.nan, True),
        (np.inf, 2.0**127, np.inf, True),
        (1, 2, 1, True),
        (2.0**-120, 0, 0, False),
        (np.nan, 0, 0, False),
        (np.inf, 2.0**127, 1, False),
        (1, 1 + 2.0**-23, 2, False),
    ],
)
def test_only_what_subnormal_numbers_taken_for_zero_explain_is_forgiven(got, expected, with_zeros, is_explained):
    got, expected, with_zeros = (np.float32([number]) for number in (got, expected, with_zeros))
    left = without_zeros(got, expected, with_zeros, {"exact": True})
    np.testing.assert_array_equal(left, expected if is_explained else got)


@pytest.mark.parametrize(
    ("got", "expected", "is_forgiven"),
    [(0, SUBNORMAL, True), (0, 2.0**-126, False), (SUBNORMAL / 2, SUBNORMAL, False), (SUBNORMAL, 0, False)],
)
def test_only_zeros_are_forgiven_where_a_result_is_subnormal(got, expected, is_forgiven):
    got, expected = np.float32([got]), np.float32([expected])
    np.testing.assert_array_equal(flushed(got, expected), expected if is_forgiven else got)


def test_an_adapter_that_takes_subnormal_numbers_for_zero_passes_only_as_such():
    files = [file for file in FILES if file.operator in ("add", "mul", "linear", "prelu", "reduce_l2")]
    wrong = {True: [], False: []}
    for file in files:
        zeros = trio.run(run_cases, "numpy", file, None, with_subnormals_as_zero)
        results = {
            name: result if isinstance(result, Exception) else [with_subnormals_as_zero(array) for array in result]
            for name, result in zeros.items()
        }
        for said, computed in ((True, Computed(results, zeros)), (False, Computed(results))):
            wrong[said] += [case.name for case in file.cases if computed.what_is_wrong(case)]
    assert not wrong[True]
    assert len(wrong[False]) >= len(files)
