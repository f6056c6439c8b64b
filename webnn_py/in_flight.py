"""``InFlight``: what a device says of work that goes on by itself."""

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


@final
class InFlight(Generic[T]):
    """An awaitable of work that has begun on a device which keeps the order itself: the next step may begin."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Awaitable[T]) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, Any, T]:
        return self._answer.__await__()


def like(pending: Awaitable[object], rest: Awaitable[None]) -> Awaitable[None]:
    """``rest``, as something that has begun where ``pending``, which it awaits, has."""
    return InFlight(rest) if isinstance(pending, InFlight) else rest
