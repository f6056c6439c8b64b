"""Every order of a program's steps: which are run, which lead to the same state, and how many there are of each."""

import gc
import warnings
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TextIO, TypeVar

import attrs
import outcome
import trio
from trio.lowlevel import in_trio_run

from webnn_py.core.api.ml import ML, open_ml
from webnn_py.testing.agents import Named, ScriptActions, named
from webnn_py.testing.ending import Check, failed_action, hang, leak, outcome_of
from webnn_py.testing.execution import Execution
from webnn_py.testing.records import Counted, Order, Outcome, Report, TooManyOrdersError, Violation
from webnn_py.tracing.traces import Trace, trace

Program = Callable[[ML], Awaitable[Any]]
"""Opens contexts and makes what the actions use: the scene, which it returns."""

End = Outcome | Violation

T = TypeVar("T")

Arrive = Callable[[Execution, Sequence[str]], str | None]
"""Told which steps may follow, chooses one, or None: this order need not go on."""


def interleavings(
    program: Program, script_actions: ScriptActions, *, check: Check | None = None, most_orders: int = 1000
) -> Report:
    """Run a small program in every order in which its script and its devices may run.

    ``program`` sets the scene, on timelines that run. Then all timelines are paused, and one step is taken after the
    other: an action of the script begins, or goes on after it has waited; a device does its next operation; the script
    timeline settles its next promise. The order ends when nothing is left to do. Each one has an ``open_ml()`` block of
    its own.

    An action is a function of the scene. One that only calls the API is a plain function; what it returns is part of
    the outcome, and of a promise what has become of it. One that awaits promises is ``async``; nothing else may be
    awaited, not ``drain()`` either, which waits for the GPU itself. Refusals by the API (``DOMException``, and its own
    ``TypeError``) are outcomes. Anything else that an action raises, such as an ``AssertionError``, is a violation. A
    promise that never settles, an action that waits forever, memory that stays behind and failures that were not
    reported are violations as well.

    Orders that lead to the same state are run on only once from there, and counted all the same. States are the same
    if the script has done the same steps in the same order, each device as many operations, each before or after its
    loss, devices have spoken to the script in the same order, and all that can be seen is equal: statistics, what
    actions have returned, the states of their promises, plain values that the scene has. An action that looks at a
    device in passing, by ``statistics()`` or a timeline's repr, must therefore return what it has seen, or keep it in
    the scene.

    Args:
        program: an async function of the ``ML`` object that returns the scene, of any type. Buffers that are its
            attributes, or the values of a mapping, are read at the end.
        script_actions: a sequence of actions, which keep their order; or several by name, whose actions interleave.
        check: a function of scene and outcome, asynchronous or not, called at the end of each order, on timelines that
            run. What it raises is a violation.
        most_orders: how many orders may be run.

    Returns:
        Every outcome with the number of orders that end with it, and the first violation, whose order is run once more
        for its trace. The same each time.

    Raises:
        TooManyOrdersError: there are more orders to run than ``most_orders``.
        TypeError: an action is no function of one argument.
        RuntimeError: the same order had another result the second time, an action has resumed a timeline, or
            this is called in a task of trio's.
    """
    exploration = _Exploration(program, named(script_actions), check, most_orders)
    _run_in_trio("interleavings", exploration.explore)
    return exploration.report(partial(replay, program, script_actions, check=check))


def replay(
    program: Program, script_actions: ScriptActions, order: Order, *, check: Check | None = None
) -> Outcome | Violation:
    """Run one order of those that :func:`interleavings` explores, step by step.

    Args:
        program: as there.
        script_actions: as there.
        order: the steps by name, to the end: a ``Violation.order``, or a ``Counted.example``.
        check: as there.

    Returns:
        What the order ends with.

    Raises:
        ValueError: a step is not possible where it stands, or others are possible after the last one. The message
            says which.
        RuntimeError: this is called in a task of trio's.
    """
    steps = tuple(order)

    def arrive(execution: Execution, possible: Sequence[str]) -> str | None:
        number = len(execution.order)
        if number == len(steps) and not possible:
            return None
        if number < len(steps) and steps[number] in possible:
            return steps[number]
        wanted = f"{steps[number]!r} is not possible" if number < len(steps) else "the order ends"
        raise ValueError(f"replay(): after {number} steps {wanted}; possible: {', '.join(possible) or 'nothing'}")

    async def run(caught: list[str]) -> End | None:
        return await _run(program, named(script_actions), check, arrive, caught)

    end = _run_in_trio("replay", run)
    if end is None:
        raise AssertionError("it has ended although steps were possible")
    return end


@attrs.define(eq=False)
class _Totals:
    """The number of orders from a state on that end with each outcome, and one that does."""

    outcomes: dict[Outcome, tuple[int, Order]] = attrs.field(factory=dict)
    violating: int = 0

    def add(self, step: str, after: "_Totals") -> None:
        """Those of a state that ``step`` leads to."""
        self.violating += after.violating
        for end, (count, rest) in after.outcomes.items():
            before, example = self.outcomes.get(end, (0, (step, *rest)))
            self.outcomes[end] = (before + count, example)


@attrs.define(eq=False)
class _State:
    """A state that orders have led to, and what follows from there: other states, or the end."""

    steps: tuple[str, ...]
    after: dict[str, "_State"] = attrs.field(factory=dict)
    end: End | None = None
    _totals: _Totals | None = None

    def totals(self) -> _Totals:
        """Return the ends of all orders from here on."""
        if self._totals is None:
            self._totals = _Totals()
            if isinstance(self.end, Outcome):
                self._totals.outcomes[self.end] = (1, ())
            elif self.end is not None:
                self._totals.violating = 1
            for step in self.steps:
                self._totals.add(step, self.after[step].totals())
        return self._totals


class _Exploration:
    """Runs orders depth first: each time the first step that is possible, later the others."""

    def __init__(
        self, program: Program, actions: Sequence[Sequence[Named]], check: Check | None, most_orders: int
    ) -> None:
        self._program, self._actions, self._check = program, actions, check
        self._most_orders = most_orders
        self._states: dict[Hashable, _State] = {}
        self._begun: list[Order] = [()]
        self._root = _State(())
        self._runs = 0
        self._violation: Violation | None = None

    async def explore(self, caught: list[str]) -> None:
        """Run orders until every step has been taken from every state."""
        while self._begun:
            if self._runs == self._most_orders:
                raise TooManyOrdersError(self._most_orders, self._violation)
            self._runs += 1
            walk = _Passage(self._states, self._begun, self._begun.pop())
            end = await _run(self._program, self._actions, self._check, walk.arrive, caught)
            self._root = walk.root
            if end is not None:
                walk.end(end)
            if isinstance(end, Violation) and self._violation is None:
                self._violation = await self._traced(end, caught)

    async def _traced(self, violation: Violation, caught: list[str]) -> Violation:
        """Return the violation with a trace of its order, for which that is run again."""

        def arrive(execution: Execution, possible: Sequence[str]) -> str | None:
            taken, order = tuple(execution.order), violation.order
            if taken == order:
                return None
            if order[len(taken)] not in possible:
                raise _otherwise(order)
            return order[len(taken)]

        with ExitStack() as traces:  # to be closed behind the order's open_ml() block, to show its end as well
            recorded: Trace | None = None

            async def program(ml: ML) -> Any:
                nonlocal recorded
                recorded = traces.enter_context(trace(ml))
                return await self._program(ml)

            again = await _run(program, self._actions, self._check, arrive, caught)
        if not isinstance(again, Violation) or again.kind != violation.kind:
            raise _otherwise(violation.order)
        return attrs.evolve(violation, trace=recorded)

    def report(self, replay: Callable[[Order], End]) -> Report:
        """Return the report of the exploration."""
        totals = self._root.totals()
        found = [Counted(end, count, example) for end, (count, example) in totals.outcomes.items()]
        orders = sum(counted.orders for counted in found) + totals.violating
        found.sort(key=lambda counted: -counted.orders)
        return Report(tuple(found), orders, self._runs, self._violation, totals.violating, replay)


class _Passage:
    """One run through the states: along what is known, and on from there while it is new."""

    def __init__(self, states: dict[Hashable, _State], begun: list[Order], order: Order) -> None:
        self._states, self._begun, self._order = states, begun, order
        self.root = self.at = _State(())

    def arrive(self, execution: Execution, possible: Sequence[str]) -> str | None:
        """Enter a state, and choose the step to take from there; None when it has been there before."""
        order = tuple(execution.order)
        is_on_the_way = len(order) < len(self._order)
        key = execution.state()
        is_new = key not in self._states
        state = self._states.setdefault(key, _State(tuple(possible)))
        if state.steps != tuple(possible) or (is_new and is_on_the_way):
            raise _otherwise(order)
        if order and self.at.after.setdefault(order[-1], state) is not state:
            raise _otherwise(order)
        self.root = self.root if order else state
        self.at = state
        if is_new:
            self._begun += [(*order, step) for step in reversed(possible[1:])]
        if is_on_the_way:
            return self._order[len(order)]
        return possible[0] if is_new and possible else None

    def end(self, end: End) -> None:
        """Note what the order has ended with; another one may have come there before."""
        if isinstance(self.at.end, Outcome) and self.at.end != end:
            raise _otherwise(self._order)
        self.at.end = self.at.end or end


def _otherwise(order: Order) -> RuntimeError:
    return RuntimeError(
        f"interleavings(): the same steps, {', '.join(order) or 'none'}, have led to another state than before; "
        "program and actions must do the same each time, and await nothing but promises"
    )


async def _run(
    program: Program,
    actions: Sequence[Sequence[Named]],
    check: Check | None,
    arrive: Arrive,
    caught: list[str],
) -> End | None:
    """Run one order; None when it was not run to its end."""
    caught.clear()
    end, order = await _run_in_block(program, actions, check, arrive)
    gc.collect(0)  # collects cycles, which may hold unreported errors
    return Violation("warning", caught[0], order) if caught and isinstance(end, Outcome) else end


async def _run_in_block(
    program: Program, actions: Sequence[Sequence[Named]], check: Check | None, arrive: Arrive
) -> tuple[End | None, Order]:
    async with open_ml() as ml:
        scene = await program(ml)
        execution = Execution(ml, actions)
        async with trio.open_nursery() as nursery:
            stepped = await outcome.acapture(_take_steps, execution, nursery, scene, arrive)
            wrong = failed_action(execution) or hang(execution)  # before the agents that wait are cancelled
            nursery.cancel_scope.cancel()
            execution.stop()
        end: End | None = None
        if stepped.unwrap():
            end = wrong or await outcome_of(execution, scene, check)
    if isinstance(end, Outcome):
        end = leak(execution) or end
    return end, tuple(execution.order)


async def _take_steps(execution: Execution, nursery: trio.Nursery, scene: Any, arrive: Arrive) -> bool:
    """Take the steps that are chosen; True when nothing is left to do."""
    await execution.begin(nursery, scene)
    while True:
        steps = {} if failed_action(execution) else execution.steps()
        chosen = arrive(execution, tuple(steps))
        if chosen is None:
            return not steps
        await execution.take(steps[chosen])


def _run_in_trio(name: str, run: Callable[[list[str]], Awaitable[T]]) -> T:
    """Run trio; the function is given a list to which every RuntimeWarning comes."""
    if in_trio_run():
        raise RuntimeError(f"{name}() runs trio itself: call it outside, as a plain function")
    with _listening() as caught:
        return trio.run(run, caught)


@contextmanager
def _listening() -> Iterator[list[str]]:
    """Take down every RuntimeWarning, and collect no garbage, so that each is given in the run that it is of."""
    caught: list[str] = []
    others = warnings.showwarning

    def show(  # noqa: PLR0913, PLR0917 - the signature is showwarning()'s
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, RuntimeWarning):
            caught.append(str(message))
        else:
            others(message, category, filename, lineno, file, line)

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = show
            yield caught
    finally:
        if was_enabled:
            gc.enable()
