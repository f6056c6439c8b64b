"""Steps of a device that may end later; ``InFlight`` is for work that goes on by itself."""

from collections.abc import Awaitable, Callable, Generator
from inspect import isawaitable
from typing import Any, Generic, TypeVar, cast, final

T = TypeVar("T")


@final
class InFlight(Generic[T]):
    """An awaitable of work that has begun on a device which keeps the order itself: the next step may begin."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Awaitable[T]) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, Any, T]:
        return self._answer.__await__()


def like(pending: Awaitable[object], rest: Awaitable[T]) -> Awaitable[T]:
    """Return ``rest``, which awaits ``pending``, as work that goes on by itself if ``pending`` does."""
    return InFlight(rest) if isinstance(pending, InFlight) else rest


def then(step: Awaitable[T] | T, finish: Callable[[T], Awaitable[None] | None]) -> Awaitable[None] | None:
    """Call ``finish`` with the result of a step: at once, or when the step has ended."""
    if step is None or not isawaitable(step):
        return finish(step)
    return like(step, _finished(step, finish))


async def done(step: Awaitable[T] | T) -> T:
    """Return the result of a step, when it has ended."""
    return cast("T", await step if isawaitable(step) else step)


async def _finished(step: Awaitable[T], finish: Callable[[T], Awaitable[None] | None]) -> None:
    rest = finish(await step)
    if rest is not None:
        await rest
