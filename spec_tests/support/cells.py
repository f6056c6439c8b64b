"""Matrices of checks in one test, which checks every cell and reports each failure.

Use :func:`cells` in place of ``pytest.mark.parametrize`` where a test is cheap beside what pytest spends on each test
that it collects, starts and reports. The cells of a test share its function-scoped fixtures, so a check that ends a
context, for example, creates its own. A cell that is skipped is reported as a skipped test is, with its reason.
"""

import functools
import inspect
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import attrs
import pytest

from spec_tests.support.depth import MARK, amount, share
from spec_tests.support.sampled_engine import ENGINE, PARTS
from spec_tests.support.skips import add_skipped_cell

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Of an object's usual repr, what is another one in each process."""

LINES_SHOWN = 12
"""The longest text that is shown of a failing cell."""


@attrs.frozen
class Failure:
    """A cell that failed."""

    cell: str
    error: BaseException

    def __str__(self) -> str:
        lines = [f"[{self.cell}] {type(self.error).__name__} at {place(self.error)}: {self.error}"]
        lines = "\n".join([*lines, *getattr(self.error, "__notes__", [])]).splitlines()
        return "\n    ".join(lines[:LINES_SHOWN] + ["…"] * (len(lines) > LINES_SHOWN))


def place(error: BaseException) -> str:
    """Return the file and line of the innermost frame of the tests that ``error`` passed."""
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    ours = [frame for frame in frames if "spec_tests" in frame.filename and frame.filename != __file__]
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"


class Cells:
    """Run the cells of one test; at the end raise an AssertionError that lists each one that failed.

    >>> with Cells() as cells:
    ...     for data_type in DATA_TYPES:
    ...         with cells.cell(data_type):
    ...             assert ...
    """

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[Failure] = []
        self.skipped: list[pytest.skip.Exception] = []

    @contextmanager
    def cell(self, *name: object) -> Iterator[None]:
        """Run one cell, which has a name; keep its failure, or that it was skipped."""
        self.count += 1
        try:
            yield
        except pytest.skip.Exception as error:
            self.skipped.append(error)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each failure is reported
            self.failures.append(Failure(", ".join(map(str, name)), error))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            self.report()

    def report(self) -> None:
        """Report each skipped cell; raise if one failed, or if there was none; skip the test if each was skipped."""
        are_all = len(self.skipped) == self.count
        for skip in self.skipped[are_all:]:  # the test's own report is the first one's
            add_skipped_cell(skip)
        if self.failures:
            head = f"{len(self.failures)} of {self.count} cells failed:"
            raise AssertionError("\n".join([head, *map(str, self.failures)])) from self.failures[0].error
        assert self.count, "no cell was checked"
        if are_all:
            raise self.skipped[0]


@attrs.frozen
class Axis:
    """One decorator: the names of the arguments that it gives, and the values with what names them."""

    names: tuple[str, ...]
    points: tuple[tuple[str, tuple[object, ...]], ...]


def name_of(value: object) -> str:
    """Return the name of one value in a cell's name."""
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    return name if isinstance(name, str) else value if isinstance(value, str) else ADDRESS.sub("", repr(value))[:60]


def axis(names: str | tuple[str, ...], values: Iterable[Any], ids: Iterable[str] | Callable[[Any], str] | None) -> Axis:
    """Read the arguments of :func:`cells`, which are those of ``parametrize``, without marks."""
    names = tuple(names.replace(" ", "").split(",")) if isinstance(names, str) else tuple(names)
    values = list(values)
    given = [None] * len(values) if ids is None or callable(ids) else list(ids)
    points = []
    for value, own in zip(values, given, strict=True):
        row = value.values if hasattr(value, "marks") else value if len(names) > 1 else (value,)
        assert len(row) == len(names), f"{names} have no value each in {row}"
        parts = ((ids(item) if callable(ids) else None) or name_of(item) for item in row)
        points.append((getattr(value, "id", None) or own or ", ".join(parts), tuple(row)))
    return Axis(names, tuple(points))


def cells(
    names: str | tuple[str, ...],
    values: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], str] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that runs a test for each of ``values``, as one test.

    It takes what ``pytest.mark.parametrize`` takes, and stacks as that does. ``--case TEXT`` runs the cells alone whose
    names have the text. Of a test that is marked ``sampled(parts)``, and on onnxruntime, a run has its share of cells.
    """
    given = axis(names, values, ids)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        axes = (given, *getattr(function, "axes", ()))
        body = getattr(function, "body", function)
        wrapper = asynchronous(body, axes) if inspect.iscoroutinefunction(body) else synchronous(body, axes)
        filled = {name for axis in axes for name in axis.names}
        parameters = [item for name, item in inspect.signature(body).parameters.items() if name not in filled]
        if "request" not in inspect.signature(body).parameters:
            parameters.append(inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY))
        wrapper.__signature__ = inspect.Signature(parameters)
        wrapper.axes, wrapper.body = axes, body
        return wrapper

    return decorate


def synchronous(body: Callable[..., Any], axes: tuple[Axis, ...]) -> Any:
    @functools.wraps(body)
    def test(**fixtures: Any) -> None:
        with Cells() as run:
            for name, arguments in chosen(axes, fixtures["request"]):
                with run.cell(name):
                    body(**taken(body, fixtures), **arguments)

    del test.__wrapped__
    return test


def asynchronous(body: Callable[..., Any], axes: tuple[Axis, ...]) -> Any:
    @functools.wraps(body)
    async def test(**fixtures: Any) -> None:
        with Cells() as run:
            for name, arguments in chosen(axes, fixtures["request"]):
                with run.cell(name):
                    await body(**taken(body, fixtures), **arguments)

    del test.__wrapped__
    return test


def taken(body: Callable[..., Any], fixtures: dict[str, Any]) -> dict[str, Any]:
    """Return the fixtures that the test itself asks for."""
    if "request" in inspect.signature(body).parameters:
        return fixtures
    return {name: value for name, value in fixtures.items() if name != "request"}


def points_of(axes: tuple[Axis, ...]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the name and the arguments of every cell."""
    for points in itertools.product(*(axis.points for axis in axes)):
        arguments: dict[str, object] = {}
        for given, (_, row) in zip(axes, points, strict=True):
            arguments |= dict(zip(given.names, row, strict=True))
        yield ", ".join(name for name, _ in points), arguments


def chosen(axes: tuple[Axis, ...], request: pytest.FixtureRequest) -> list[tuple[str, dict[str, object]]]:
    """Return the cells that this run checks; skip the test where ``--case`` names none of them."""
    every, text, title = list(points_of(axes)), request.config.option.case, request.node.name
    if text is not None:
        named = [(name, arguments) for name, arguments in every if text in name or text in title]
        return named or pytest.skip(f"no cell has the name {text!r}")
    counts: Counter[str] = Counter()
    names = []
    for name, _ in every:
        counts[name] += 1
        names.append(f"{request.node.nodeid} {name} {counts[name]}")  # some have the same name
    wanted = share(request.config, names, parts_of(request), least=1)
    return [cell for cell, name in zip(every, names, strict=True) if name in wanted]


def parts_of(request: pytest.FixtureRequest) -> int:
    """Return of how many cells this run checks one."""
    config, item = request.config, request.node
    backend = item.callspec.params.get("backend") if hasattr(item, "callspec") else None
    mark = item.get_closest_marker(MARK)
    of_mark = 1
    if mark is not None and backend != "numpy":
        of_mark = amount(config, quick=mark.args[0], full=mark.kwargs.get("full", 1), thorough=1)
    return of_mark * (amount(config, **PARTS) if backend == ENGINE else 1)
