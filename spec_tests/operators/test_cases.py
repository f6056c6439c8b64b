"""Every case of every room computes what its oracle says, through the public API, on every backend."""

from typing import Any

import numpy as np
import pytest

from spec_tests.operators.cases import CaseFile, load_all
from spec_tests.operators.exceptions import EXCEPTIONS
from spec_tests.operators.running import Results, as_constant, as_view, run_file, what_is_wrong
from spec_tests.support.backends import BACKENDS

FILES = load_all()
CASES = [pytest.param(file, case, id=f"{file.operator}-{case.name}") for file in FILES for case in file.cases]
EVERY_FILE = pytest.mark.parametrize("file", [pytest.param(file, id=file.operator) for file in FILES])


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def results_of(backend):
    """The results of a whole file, by the names of its cases; computed once."""
    computed: dict[str, Results] = {}

    def look_up(file: CaseFile) -> Results:
        if file.operator not in computed:
            computed[file.operator] = run_file(backend, file)
        return computed[file.operator]

    return look_up


@pytest.mark.parametrize(("file", "case"), CASES)
def test_a_case_computes_what_its_oracle_says(backend, results_of, file, case):
    result = results_of(file)[case.name]
    wrong = what_is_wrong(result, case)
    reason = EXCEPTIONS.get((backend, file.operator, case.name))
    if reason is not None:
        assert wrong, f"{case.operator}, {case.name}: passes, though it is listed: {reason}"
        pytest.xfail(reason)
    if wrong and isinstance(result, Exception):
        raise AssertionError(f"{case.operator}, {case.name}: {wrong}") from result
    assert not wrong, f"{case.operator}, {case.name}: {wrong}"


@EVERY_FILE
@pytest.mark.parametrize("drawer", [as_constant, as_view])
def test_cases_compute_the_same_from(backend, file, drawer):
    """Constants, which are computed when the graph is built, and views, whose elements are not in order."""
    results = run_file(backend, file, drawer)
    wrong = {
        case.name: what_is_wrong(results[case.name], case)
        for case in file.cases
        if (backend, file.operator, case.name) not in EXCEPTIONS
    }
    assert not any(wrong.values()), {name: words for name, words in wrong.items() if words}


@EVERY_FILE
def test_a_shifted_expectation_is_reported(results_of, file):
    """The runner can fail: for each operator, in each output, by the least that the tolerance forbids."""
    case = next(case for case in file.cases if all(np.isfinite(array).any() for array in case.expected))
    result = results_of(file)[case.name]
    for index, array in enumerate(case.expected):
        position = int(np.argmax(np.isfinite(array)))
        shifted = list(case.expected)
        shifted[index] = _shifted(array, position, case.tolerance)
        wrong = what_is_wrong(result, case, shifted)
        place = [int(i) for i in np.unravel_index(position, array.shape)]
        assert wrong.startswith(f"output {index}: {place} is "), f"{case.name}: output {index} is wrong, but {wrong!r}"


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
