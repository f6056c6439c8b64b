"""The end of an order: an outcome, or a violation."""

import inspect
from collections.abc import Callable
from textwrap import indent
from typing import Any

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.errors import DOMException
from webnn_py.core.message_text import words_of
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.testing.agents import ending_of, forget_frames
from webnn_py.testing.execution import Execution, members
from webnn_py.testing.records import Outcome, Violation, ViolationKind

Check = Callable[[Any, Outcome], Any]
"""Says by raising that an outcome is wrong; may be asynchronous."""


def failed_action(execution: Execution) -> Violation | None:
    """Errors that an action has raised and that are none of the API's."""
    for agent in execution.agents:
        if agent.failure is not None:
            name, error = agent.failure
            return _violation(execution, "action", f"{name} has raised {_named(error)}", error)
    return None


def hang(execution: Execution) -> Violation | None:
    """Promises and tasks that still wait when nothing is left to run."""
    for agent in execution.agents:
        if agent.waits_in is not None:
            return _violation(execution, "hang", f"{agent.waits_in} waits, and nothing is left to run")
    forever = [device.context.lost for device in execution.devices]
    for agent in execution.agents:
        for name, result in agent.results.items():
            if isinstance(result, MLPromise) and result.state == "pending" and result not in forever:
                return _violation(execution, "hang", f"the promise of {name} is pending, and nothing is left to run")
    return None


async def outcome_of(execution: Execution, scene: Any, check: Check | None) -> Outcome | Violation:
    """Read what can be seen at the end, on timelines that run again, and look whether it is right."""
    execution.resume()
    ended = {name: ending_of(result) for agent in execution.agents for name, result in agent.results.items()}
    buffers = {name: thing for name, thing in members(scene) if type(thing) is MLBuffer}
    outcome = Outcome(ended, {name: await _contents(buffer) for name, buffer in buffers.items()})
    if check is not None:
        try:
            checked = check(scene, outcome)
            if inspect.isawaitable(checked):
                await checked
        except Exception as error:  # noqa: BLE001 - a check may raise anything
            forget_frames(error)
            return _violation(execution, "check", f"{_named(error)}\n{indent(str(outcome), '  ')}", error)
    return await _held_by_nothing(execution) or outcome


def leak(execution: Execution) -> Violation | None:
    """Resources that contexts still hold when the block has been left."""
    for device in execution.devices:
        statistics = device.context.statistics()
        if statistics.live_buffers or statistics.live_bytes or statistics.queued_operations:
            return _violation(execution, "leak", f"the block has been left, and {device.name} holds {statistics}")
    return None


async def _held_by_nothing(execution: Execution) -> Violation | None:
    """Memory that is held though all buffers and graphs of its context are destroyed."""
    for device in execution.devices:
        context = device.context
        if not context.device_timeline.ended:
            await context.drain()
        statistics = context.statistics()
        if context.resources or not (statistics.live_buffers or statistics.live_bytes):
            continue
        held = f"{statistics.live_buffers} buffers, {statistics.live_bytes} bytes"
        return _violation(
            execution, "leak", f"all buffers and graphs of {device.name} are destroyed, and it holds {held}"
        )
    return None


async def _contents(buffer: MLBuffer) -> Any:
    if buffer.destroyed:
        return "destroyed"
    if not buffer.readable:
        return "not readable"
    try:
        return await buffer.context.read_buffer(buffer)
    except DOMException as error:
        return f"unreadable: {_named(error)}"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {words_of(error)}"


def _violation(execution: Execution, kind: ViolationKind, message: str, error: Exception | None = None) -> Violation:
    return Violation(kind, message, tuple(execution.order), error)
