"""``Agent``: a sequence of a script's actions, which go on only when they are given their turn."""

import inspect
import traceback
import types
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from webnn_py.core.errors import DOMException
from webnn_py.core.message_text import shown
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.testing.records import Ended

Action = Callable[[Any], Any]
"""A step of a script: a function of the scene, asynchronous or not."""
ScriptActions = Sequence[Action] | Mapping[str, Sequence[Action]]


@attrs.frozen
class Named:
    """An action and what it is called."""

    name: str
    action: Action


def named(script_actions: ScriptActions) -> list[list[Named]]:
    """Every agent's actions, by names that no other has: the function's, behind that of its agent if that has one.

    Raises:
        TypeError: there is something else than functions of one argument.
        ValueError: an agent is called as a timeline's steps are.
    """
    agents = script_actions.items() if isinstance(script_actions, Mapping) else [("", script_actions)]
    for name, _actions in agents:
        if name.partition(" ")[0] in {"device", "script"}:
            raise ValueError(
                f"interleavings(): {name!r} is what steps of timelines are called; name the agent otherwise"
            )
    seen: dict[str, int] = {}
    return [[_named(agent, action, number, seen) for number, action in enumerate(of, 1)] for agent, of in agents]


def _named(agent: str, action: Action, number: int, seen: dict[str, int]) -> Named:
    try:
        inspect.signature(action).bind(None)
    except (TypeError, ValueError) as error:
        raise TypeError(f"interleavings(): {shown(action)} is no action: a function of the scene") from error
    name = getattr(action, "__name__", "<lambda>")
    name = f"action {number}" if name == "<lambda>" else name
    name = f"{agent}: {name}" if agent else name
    seen[name] = seen.get(name, 0) + 1
    return Named(name if seen[name] == 1 else f"{name} ({seen[name]})", action)


class Agent:
    """Runs its actions one after the other, in a task of its own.

    An action begins when it is given its turn. Where it has waited for something that another step has brought about,
    it needs a turn to go on; so of several that are woken together, each goes on by itself.
    """

    def __init__(self, actions: Sequence[Named], clock: Callable[[], int]) -> None:
        self._actions = actions
        self._clock = clock
        self._turn = trio.Event()
        self._stopped = False
        self._current = ""
        self.ready: str | None = None
        """The step that it waits to be given its turn for."""
        self.done = False
        self.results: dict[str, Ended | MLPromise[Any]] = {}
        """By action, of those that have ended: what became of it, or the promise that it has returned."""
        self.failure: tuple[str, Exception] | None = None
        """The action that raised an exception that is no error of the API, and the exception."""

    @property
    def waits_in(self) -> str | None:
        """The action that waits for something that is still to come."""
        return None if self.done or self.ready is not None else self._current

    def give_turn(self) -> None:
        """Let it do the step that it is ready for."""
        self.ready = None
        self._turn.set()

    def stop(self) -> None:
        """Let it be cancelled where it waits for its turn, which no scope of the program's ends."""
        self._stopped = True
        self._turn.set()

    async def run(self, scene: Any) -> None:
        """Run all actions, until one fails."""
        for item in self._actions:
            await self._wait_for_turn(item.name)
            self._current = item.name
            try:
                self.results[item.name] = await self._result(item.action, scene)
            except Exception as error:  # noqa: BLE001 - whatever an action raises is reported
                forget_frames(error)
                self.failure = (item.name, error)
                return
        self.done = True

    async def _result(self, action: Action, scene: Any) -> "Ended | MLPromise[Any]":
        try:
            result = action(scene)
            if inspect.iscoroutine(result):
                result = await self._by_turns(result)
        except Exception as error:
            if not _is_of_the_api(error):
                raise
            forget_frames(error)
            return Ended("raised", error=error)
        return result if type(result) is MLPromise else Ended("returned", result)

    async def _wait_for_turn(self, step: str) -> None:
        self._turn = trio.Event()
        self.ready = step
        if not self._stopped:
            with trio.CancelScope(shield=True):
                await self._turn.wait()
        if self._stopped:
            await trio.lowlevel.checkpoint_if_cancelled()

    @types.coroutine
    def _by_turns(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run ``coroutine``, and let it go on after a wait only when it has its turn."""
        resume: Callable[[], Any] = partial(coroutine.send, None)
        while True:
            try:
                wait = resume()
            except StopIteration as end:
                return end.value
            since = self._clock()
            try:
                answer = yield wait
                if self._clock() != since:  # else it has let others run, and nothing has happened
                    yield from self._wait_for_turn(f"{self._current} goes on").__await__()
            except BaseException as error:  # noqa: BLE001 - what comes from outside is the coroutine's to handle
                resume = partial(coroutine.throw, error)
            else:
                resume = partial(coroutine.send, answer)


def ending_of(result: "Ended | MLPromise[Any]") -> Ended:
    """Return the outcome of an action, when nothing is left to run."""
    if isinstance(result, Ended):
        return result
    outcome: Any = result.outcome
    if result.state == "rejected":
        forget_frames(outcome)
        return Ended("rejected", error=outcome)
    return Ended(result.state, outcome)


def forget_frames(error: BaseException) -> None:
    """Drop the variables that a traceback holds: the program's things, which are to go with their run."""
    traceback.clear_frames(error.__traceback__)


def _is_of_the_api(error: Exception) -> bool:
    """Return whether a refusal comes from the API, and is not the program's own mistake."""
    if isinstance(error, DOMException):
        return True
    frames = [frame for frame, _line in traceback.walk_tb(error.__traceback__)]
    return type(error) is TypeError and frames[-1].f_globals.get("__name__", "").startswith("webnn_py.")
