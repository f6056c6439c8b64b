"""Reports of an exploration."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Literal, final

import attrs
import numpy as np

from webnn_py.core.api.records import ContextStatistics
from webnn_py.core.message_text import shown
from webnn_py.tracing.traces import Trace

Order = tuple[str, ...]
"""The steps of a run by their names, as a report prints them and :func:`replay` takes them."""

EndState = Literal["returned", "raised", "fulfilled", "rejected", "pending"]
ViolationKind = Literal["action", "check", "hang", "leak", "warning"]

_MOST_ELEMENTS = 16
"""The most elements of an array that is compared and shown itself; of a longer one, its digest is."""


@final
@attrs.frozen(eq=False)
class Ended:
    """The outcome of an action. Two are equal if their texts are.

    Attributes:
        state: ``"returned"`` or ``"raised"``; for an action that has returned a promise, the promise's state.
        value: what was returned, or what the promise was fulfilled with; else None.
        error: what was raised, or what the promise was rejected with; else None.
    """

    state: EndState
    value: Any = None
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.state}: {type(self.error).__name__}: {' '.join(str(self.error).split())}"
        return self.state if self.value is None else f"{self.state}: {text_of(self.value)}"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Ended) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


@final
@attrs.frozen(eq=False)
class Outcome:
    """The observable state at the end of an order. Two are equal if their texts are.

    Attributes:
        actions: what became of each action, by its name.
        buffers: what the buffers among the scene's attributes hold, by name: an array, or why there is none.
    """

    actions: Mapping[str, Ended]
    buffers: Mapping[str, Any]

    def __str__(self) -> str:
        lines = [f"{name}: {ended}" for name, ended in self.actions.items()]
        return "\n".join([*lines, *(f"buffer {name}: {text_of(value)}" for name, value in self.buffers.items())])

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Outcome) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


@final
@attrs.frozen(eq=False)
class Violation:
    """A violation in an order.

    Attributes:
        kind: ``"action"``: an action has raised what is no error of the API; ``"check"``: ``check`` has raised;
            ``"hang"``: nothing is left to run, and an action or a promise still waits; ``"leak"``: memory of what was
            destroyed, or anything after the block has been left, is still held; ``"warning"``: a ``RuntimeWarning``,
            such as a failure of the device that was not reported.
        message: what, in words.
        order: the steps that have led to it.
        error: what was raised; None for the other kinds.
        trace: of a report's first violation, a trace of its order: ``violation.trace.save("violation.html")``.
    """

    kind: ViolationKind
    message: str
    order: Order
    error: Exception | None = None
    trace: Trace | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        steps = (f"  {number}. {step}" for number, step in enumerate(self.order, 1))
        return "\n".join([f"{self.kind}: {self.message}", *steps])


@final
@attrs.frozen(eq=False)
class Counted:
    """An outcome, and how it comes about.

    Attributes:
        outcome: what can be seen at the end.
        orders: how many orders end so.
        example: one of them.
    """

    outcome: Outcome
    orders: int
    example: Order


@final
@attrs.frozen(eq=False)
class Report:
    """The outcomes of all orders of a program's steps.

    Attributes:
        outcomes: all that were seen, the most frequent first.
        orders: how many orders there are.
        runs: how many were run, of which all but the first end early where another one has been in the same state.
        violation: the first that was found, or None.
        violating_orders: how many orders end with a violation.
    """

    outcomes: tuple[Counted, ...]
    orders: int
    runs: int
    violation: Violation | None
    violating_orders: int
    _replay: Callable[[Order], "Outcome | Violation"] = attrs.field(repr=False)

    def replay(self, order: Order) -> "Outcome | Violation":
        """Run one order again, step by step; see :func:`replay`."""
        return self._replay(order)

    def __str__(self) -> str:
        parts = [f"{_counted(self.orders, 'order')}, {_counted(len(self.outcomes), 'outcome')}"]
        for found in self.outcomes:
            parts += [
                f"in {_counted(found.orders, 'order')}:",
                *(f"  {line}" for line in str(found.outcome).split("\n")),
            ]
        if self.violation is None:
            parts.append("no violation")
        else:
            parts += [f"{_counted(self.violating_orders, 'order')} with a violation; the first:", str(self.violation)]
        return "\n".join(parts)


@final
class TooManyOrdersError(RuntimeError):
    """There are more orders than may be run.

    Attributes:
        violation: the first that was found until then, or None.
    """

    def __init__(self, most_orders: int, violation: Violation | None) -> None:
        """Say how many were run, and what they have shown."""
        self.violation = violation
        found = "no violation until then" if violation is None else f"the first violation until then: {violation}"
        super().__init__(
            f"interleavings(): most_orders={most_orders} were run, and there are more; allow more, or let the program "
            f"do less; {found}"
        )


def text_of(value: object) -> str:
    """A value as outcomes are compared by: arrays with data type, shape and every element, or with their digest."""
    if isinstance(value, ContextStatistics):
        value = attrs.evolve(value, of_backend={})  # of all contexts on the GPU, and of earlier runs
    if not isinstance(value, np.ndarray):
        return value if isinstance(value, str) else shown(value)
    if value.size > _MOST_ELEMENTS:
        return f"{value.dtype} {list(value.shape)} with SHA-256 {sha256(value.tobytes()).hexdigest()}"
    return f"{value.dtype} {value.tolist()}"


def _counted(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
