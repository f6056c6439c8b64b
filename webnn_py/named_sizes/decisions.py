"""Decisions about sizes that are known at dispatch only, and the other sizes for which they would be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal, Protocol, Self

import attrs

Sizes = Mapping[str, int]
"""The size of each name; a size of other names, where expressions are written with these."""

Relation = Literal["==", "<"]

DECIDED: Final[Mapping[Relation, Callable[[int], bool]]] = {
    "==": lambda value: value == 0,
    "<": lambda value: value < 0,
}
"""The question about an expression: whether it is 0, and whether it is below 0."""


class UnknownSizeError(TypeError):
    """Code needs a number where there is a size that is known at dispatch only."""


class Expression(Protocol):
    """A size, seen from here."""

    terms: Any

    @property
    def names(self) -> frozenset[str]:
        """The names that it is computed from."""

    @property
    def determines(self) -> str | None:
        """The name whose size follows from the value."""

    def value(self, sizes: Sizes) -> int:
        """Return the value for given sizes of the names."""


@attrs.frozen
class Answer:
    """A question about an expression, and its answer."""

    expression: Expression = attrs.field(eq=False)
    relation: Relation
    holds: bool


@attrs.define
class Tracing:
    """The sizes for which questions are answered, and the answers that depend on them.

    Attributes:
        sizes: of all names.
        may_specialize: whether code that needs a number gets it; what it makes is right for this number only.
        mark: how sizes are written into texts, where that is not for eyes.
        answers: by what was asked.
        determined: the names of which there is only one size with these answers.
    """

    sizes: Sizes
    may_specialize: bool = False
    mark: Callable[[Any], str] | None = None
    answers: dict[tuple[object, Relation], Answer] = attrs.field(factory=dict)
    determined: set[str] = attrs.field(factory=set)

    def ask(self, expression: Expression, relation: Relation) -> bool:
        """Answer for the sizes here, and note it."""
        key = (expression.terms, relation)
        if key not in self.answers:
            holds = DECIDED[relation](expression.value(self.sizes))
            self.answers[key] = Answer(expression, relation, holds)
            name = expression.determines if relation == "==" and holds else None
            if name is not None:
                self.determined.add(name)
        return self.answers[key].holds

    @contextmanager
    def active(self) -> Iterator[Self]:
        """Be the one in force."""
        token = _TRACING.set(self)
        try:
            yield self
        finally:
            _TRACING.reset(token)


_TRACING: Final[ContextVar[Tracing | None]] = ContextVar("tracing of sizes", default=None)


def tracing_in_force() -> Tracing | None:
    """Return the one that answers now; None where all sizes are numbers."""
    return _TRACING.get()
