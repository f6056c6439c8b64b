"""``Execution``: one order of a program's steps, taken one by one on paused timelines."""

from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import trio
from trio.testing import wait_all_tasks_blocked

from webnn_py.core.api.context import MLContext
from webnn_py.core.api.ml import ML
from webnn_py.core.api.records import ContextStatistics
from webnn_py.core.handle import Handle
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.core.timelines.timeline import TimelineStatistics
from webnn_py.testing.agents import Agent, Named
from webnn_py.testing.records import text_of

_PLAIN = (bool, int, float, complex, str, bytes, np.ndarray, np.generic, Handle, ContextStatistics, TimelineStatistics)
"""Types of values that are shown the same whenever they are the same."""


@attrs.frozen
class Step:
    """Something that can happen next."""

    name: str
    take: Callable[[], Awaitable[None]]
    device: "OnDevice | None" = None


class OnDevice:
    """A context's device timeline, as the order sees it."""

    def __init__(self, context: MLContext, number: int) -> None:
        self.context = context
        self.name = "device" if number == 1 else f"device {number}"
        self.done = 0
        self.done_when_lost: int | None = None

    @property
    def is_lost(self) -> bool:
        """Return whether the context is lost."""
        return self.context.lost_message is not None

    @property
    def next_step(self) -> str | None:
        """The operation that it would run next."""
        operation = next(iter(self.context.device_timeline.entries()), None)
        if operation is None:
            return None
        dropped = " dropped" if self.is_lost and operation.abortable else ""
        return f"{self.name}: {operation.kind}{dropped}"


class Execution:
    """Takes steps, and says after each what may follow and how one has come there.

    Attributes:
        order: the steps that were taken, by name.
    """

    def __init__(self, ml: ML, actions: Sequence[Sequence[Named]]) -> None:
        self._ml = ml
        self.agents = [Agent(of, lambda: len(self.order)) for of in actions]
        self.order: list[str] = []
        self._script_steps: list[str] = []
        self._said: list[Hashable] = []
        self._to_settle: deque[str] = deque()
        self.devices: list[OnDevice] = []
        self._scene: Any = None

    async def begin(self, nursery: trio.Nursery, scene: Any) -> None:
        """Pause the timelines, when all that the program has begun is done, and let the agents get ready."""
        for context in self._ml.contexts:
            await context.drain()
        await self._settle_down()
        self._ml.script_timeline.pause()
        self._scene = scene
        for agent in self.agents:
            nursery.start_soon(agent.run, scene)
        await self._settle_down()
        self._adopt()

    def _adopt(self) -> None:
        """Pause the device timelines of contexts that have come since."""
        known = {device.context for device in self.devices}
        for context in self._ml.contexts:
            if context not in known:
                context.device_timeline.pause()
                self.devices.append(OnDevice(context, len(self.devices) + 1))

    def stop(self) -> None:
        """End agents that wait for a turn."""
        for agent in self.agents:
            agent.stop()

    def resume(self) -> None:
        """Let the timelines run by themselves again."""
        self._ml.script_timeline.resume()
        for device in self.devices:
            device.context.device_timeline.resume()

    # --- what may follow ---------------------------------------------------------------------------------------------

    def steps(self) -> dict[str, Step]:
        """Return the possible next steps, always in the same order: agents, devices, the script timeline."""
        steps = [
            *(Step(agent.ready, partial(self._give_turn, agent)) for agent in self.agents if agent.ready is not None),
            *(
                Step(name, partial(self._step, device), device)
                for device in self.devices
                if (name := device.next_step) is not None
            ),
        ]
        if self._ml.script_timeline.queued_operations:
            steps.append(Step(f"script: {self._to_settle[0]}", self._settle))
        return {step.name: step for step in steps}

    async def take(self, step: Step) -> None:
        """Take one of these steps, and wait until nothing more happens by itself."""
        self.order.append(step.name)
        before = self._entries_of_script()
        await step.take()
        await self._settle_down()
        self._check_paused()
        self._adopt()
        for _ in range(self._entries_of_script() - before):
            self._note_said(step)
        for device in self.devices:
            if device.done_when_lost is None and device.is_lost:
                device.done_when_lost = device.done

    async def _give_turn(self, agent: Agent) -> None:
        self._script_steps.append(self.order[-1])
        agent.give_turn()

    async def _step(self, device: OnDevice) -> None:
        device.done += 1
        await device.context.device_timeline.step()

    async def _settle(self) -> None:
        self._script_steps.append(self.order[-1])
        self._to_settle.popleft()
        await self._ml.script_timeline.step()

    def _entries_of_script(self) -> int:
        """Return the number of entries that the script timeline has had."""
        statistics = self._ml.script_timeline.statistics()
        return statistics.queued_operations + statistics.done

    def _note_said(self, step: Step) -> None:
        """Note what has been put on the script timeline, and by which step."""
        if step.device is None:
            self._said.append(step.name)
            self._to_settle.append(step.name)
        else:
            self._said.append((step.device.name, step.device.done))
            self._to_settle.append(step.name.removeprefix(f"{step.device.name}: "))

    async def _settle_down(self) -> None:
        """Wait until all tasks wait, finalisers have had their say, and no context is being opened."""
        while True:
            await wait_all_tasks_blocked()
            if self._ml.opening is not None:
                await self._ml.opening.wait()
                continue
            finalised = trio.Event()
            trio.lowlevel.current_trio_token().run_sync_soon(finalised.set)
            await finalised.wait()
            return

    def _check_paused(self) -> None:
        device_timelines = [device.context.device_timeline for device in self.devices]
        if not (self._ml.script_timeline.paused and all(timeline.paused for timeline in device_timelines)):
            raise RuntimeError(f"{self.order[-1]!r} has resumed a timeline; the exploration steps them, actions do not")

    # --- where it is -------------------------------------------------------------------------------------------------

    def state(self) -> Hashable:
        """Return a key that only orders with the same state share.

        The script does one thing at a time, and all that it has done is kept, in its order. A device does the
        operations of its queue in theirs, so how many it has done says what it has done. What passes between the two
        is a queue each way, and the loss of a context: kept are the order in which devices have spoken, and how far
        each was when it was lost. All that is left open is what a script sees of a device in passing
        (``statistics()``), so what can be seen is kept as well: by the script, and of it.
        """
        return (
            tuple(self._script_steps),
            tuple(self._said),
            tuple((device.done, device.done_when_lost) for device in self.devices),
            tuple(self._seen_of_device(device) for device in self.devices),
            tuple(self._seen_of_agent(agent) for agent in self.agents),
            tuple((name, _seen(thing)) for name, thing in members(self._scene)),
        )

    def _seen_of_device(self, device: OnDevice) -> Hashable:
        statistics = device.context.statistics()
        return statistics.live_buffers, statistics.live_bytes, statistics.queued_operations, statistics.queued_bytes

    def _seen_of_agent(self, agent: Agent) -> Hashable:
        results = tuple(
            (name, result.state if isinstance(result, MLPromise) else (result.state, _seen(result.value)))
            for name, result in agent.results.items()
        )
        return agent.ready, agent.done, results


def members(scene: Any) -> list[tuple[str, Any]]:
    """Return a scene's things by name: the values of a mapping, or an object's attributes."""
    if isinstance(scene, Mapping):
        return [(str(name), thing) for name, thing in scene.items()]
    return list(getattr(scene, "__dict__", {}).items())


def _seen(thing: object) -> str:
    """Return a script's observations as text; of objects whose text may differ each time, only the type."""
    if isinstance(thing, (list, tuple)):
        return f"[{', '.join(_seen(item) for item in thing)}]"
    if isinstance(thing, Mapping):
        return f"{{{', '.join(f'{_seen(name)}: {_seen(item)}' for name, item in thing.items())}}}"
    return text_of(thing) if thing is None or isinstance(thing, _PLAIN) else type(thing).__name__
