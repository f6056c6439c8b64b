"""Functions that stand in for others: they note each call, or fail."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio


def noted(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, note: Callable[..., Any] | None = None
) -> list[Any]:
    """Let a function of ``owner`` note each call before it is made; return the notes.

    A note is what ``note()`` returns of the arguments, and without it the identity of the thread.
    """
    notes: list[Any] = []
    function = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        notes.append(threading.get_ident() if note is None else note(*arguments, **options))
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, call)
    return notes


def returned(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, note: Callable[..., Any] | None = None
) -> list[Any]:
    """Return the results of a function of ``owner`` from now on, or what ``note(result, *arguments)`` returns."""
    notes: list[Any] = []
    function = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        notes.append(result if note is None else note(result, *arguments))
        return result

    monkeypatch.setattr(owner, name, call)
    return notes


def clocks_of(monkeypatch: pytest.MonkeyPatch, module: object) -> dict[str, list[float]]:
    """Replace a device's clocks, the one for short runs and that of computing; return the times they will show."""
    times: dict[str, list[float]] = {"perf_counter": [], "computing_time": []}
    for name, shown in times.items():
        monkeypatch.setattr(module, name, lambda shown=shown: shown.pop(0))
    return times


def failing(error: Exception) -> Callable[..., Any]:
    """Return a function that raises ``error`` whenever it is called."""

    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    return fail


@asynccontextmanager
async def beside_a_busy_task(turns: list[str]) -> AsyncIterator[None]:
    """Run a task that is never blocked, and adds "other" to ``turns`` each time that it has its turn."""

    async def take_turns() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            turns.append("other")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        yield
        nursery.cancel_scope.cancel()
