"""What is skipped is reported with its reason: each cell of a test, and a test that says so within a nursery."""

import inspect
from collections.abc import Iterator

import pytest

OF_SKIP = inspect.getfile(pytest.importorskip)
"""The file of what skips a test."""

_cells: list[tuple[str, int, str]] = []
"""The file, line and reason of each cell that the running test has skipped."""


def skip_of(error: BaseException) -> tuple[str, int, str]:
    """Return the file and line that called ``pytest.skip()``, and its reason, as pytest reports them."""
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    caller = next(frame for frame in reversed(frames) if frame.filename != OF_SKIP)
    return caller.filename, caller.lineno, f"Skipped: {error}"


def add_skipped_cell(error: pytest.skip.Exception) -> None:
    """Report a cell of the running test as skipped."""
    _cells.append(skip_of(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Report each cell that the test has skipped, before the test itself."""
    report = yield
    if report.skipped and call.excinfo is not None and (reason := lost_reason(call.excinfo.value)) is not None:
        report.longrepr = skip_of(reason)
    for skip in _cells:
        skipped = pytest.TestReport(item.nodeid, item.location, {}, "skipped", skip, "call")
        item.ihook.pytest_runtest_logreport(report=skipped)
    _cells.clear()
    return report


def lost_reason(error: BaseException) -> BaseException | None:
    """Return the skip that pytest-trio found in the group of a nursery, and raised again without its reason."""
    reason = error.__context__
    if not isinstance(error, pytest.skip.Exception) or error.msg or not isinstance(reason, BaseExceptionGroup):
        return None
    while isinstance(reason, BaseExceptionGroup):
        (reason,) = reason.exceptions
    return reason
