"""Running cases: a whole file in one context, each case as a graph of its own."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import attrs
import numpy as np
import trio

import webnn_py
from spec_tests.operators.cases import Case, CaseFile, decode, difference, flushed, within
from spec_tests.operators.exceptions import FLUSHED
from spec_tests.support.adapter_arithmetic import (
    SMALLEST_NORMAL,
    missing_data_types,
    takes_subnormals_for_zero,
    with_subnormals_as_zero,
)
from webnn_py.testing.device_cases.graphs import Drawer, run

Results = dict[str, list[np.ndarray] | Exception]
"""The results of a file's cases, by name."""


@attrs.frozen
class Computed:
    """The results of a backend for the cases of a file.

    Attributes:
        results: by the names of the cases.
        with_zeros: if the adapter may take subnormal float32 numbers for zero: of the cases that have such numbers,
            what the numpy device computes when they are zero.
        missing: the data types that the adapter lacks, which it then has to refuse.
        may_flush: whether zero is as good as a subnormal result.
    """

    results: Results
    with_zeros: Results | None = None
    missing: tuple[str, ...] = ()
    may_flush: bool = False

    @classmethod
    def of(cls, backend: str, file: CaseFile, drawer: Drawer | None = None, **options: Any) -> Self:
        """Compute every case; operands are inputs or constants as written, or all as ``drawer`` draws them.

        ``options`` go to ``create_context()``.
        """
        with_zeros = None
        if takes_subnormals_for_zero(backend):
            some = attrs.evolve(file, cases=tuple(filter(has_subnormals, file.cases)))
            with_zeros = trio.run(run_cases, "numpy", some, drawer, with_subnormals_as_zero)
        run = partial(run_cases, backend, file, drawer, **options)
        return cls(trio.run(run), with_zeros, missing_data_types(backend), (backend, file.operator) in FLUSHED)

    def must_refuse(self, case: Case) -> bool:
        """Return whether a case has numbers that the adapter lacks."""
        return any(name in json.dumps(case.raw) for name in self.missing)

    def what_is_wrong(self, case: Case, expected: list[np.ndarray] | None = None) -> str:
        """In words, what is wrong with the result of a case; empty when nothing is."""
        result = self.results[case.name]
        if self.must_refuse(case):
            is_refused = isinstance(result, TypeError) and any(name in str(result) for name in self.missing)
            return "" if is_refused else f"{result}, where {' and '.join(self.missing)} should be refused"
        if isinstance(result, Exception):
            return f"{type(result).__name__}: {result}"
        expected = case.expected if expected is None else expected
        if len(result) != len(expected):
            return f"there are {len(result)} outputs, expected {len(expected)}"
        said = []
        for index, (got, wanted) in enumerate(zip(result, expected, strict=True)):
            explained = flushed(got, wanted) if self.may_flush else got
            if self.with_zeros is not None:
                zeros = self.with_zeros.get(case.name, expected)[index]
                explained = without_zeros(got, wanted, zeros, case.tolerance)
            if words := difference(explained, wanted, case.tolerance):
                said.append(f"output {index}: {words}")
        return "; ".join(said)


def has_subnormals(case: Case) -> bool:
    """Return whether an operand of a case has subnormal float32 numbers."""
    tensors = [item for given in case.inputs.values() for item in (given if isinstance(given, list) else [given])]
    arrays = [decode(tensor) for tensor in tensors]
    return any(not np.array_equal(with_subnormals_as_zero(array), array, equal_nan=True) for array in arrays)


def without_zeros(
    got: np.ndarray, expected: np.ndarray, with_zeros: np.ndarray, tolerance: dict[str, Any]
) -> np.ndarray:
    """A result with what is expected wherever subnormal numbers that were taken for zero explain what is there."""
    if got.dtype != np.float32 or got.shape != expected.shape:
        return got
    with np.errstate(all="ignore"):
        near_zero = np.abs(got.astype(float) - expected.astype(float)) <= 2 * SMALLEST_NORMAL
    return np.where(near_zero | within(got, with_zeros, tolerance), expected, got)


async def run_cases(
    backend: str,
    file: CaseFile,
    drawer: Drawer | None,
    prepare: Callable[[np.ndarray], np.ndarray] = np.asarray,
    **options: Any,
) -> Results:
    """Compute every case of a file; ``prepare`` changes the operands before ``drawer`` draws them."""
    results: Results = {}
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend, **options)
        for case in file.cases:
            try:
                results[case.name] = await run(context, case, drawer, prepare)
            except Exception as error:  # noqa: BLE001 - what is wrong with the case
                results[case.name] = error
    return results
