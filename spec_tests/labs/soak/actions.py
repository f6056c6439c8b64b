"""The actions of a program on a context, and their allowed outcomes."""

from collections.abc import Awaitable, Callable

import attrs
import numpy as np
import trio

from spec_tests.labs.soak.programs import Program
from spec_tests.support.watched_device import destroy_and_log
from webnn_py import InvalidStateError, MLContext, MLGraphBuilder, OperationError, UnknownError

ROUNDS = 3
TOLERANCE = 1e-4
REFUSALS = (TypeError, InvalidStateError)
ABORTED = (InvalidStateError, OperationError, UnknownError)
"""The outcomes of an operation whose context ends meanwhile."""


@attrs.define
class Counts:
    """The counts of actions, and what was wrong."""

    done: dict[str, int] = attrs.field(factory=dict)
    faults: list[str] = attrs.field(factory=list)

    def note(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1

    def fault(self, text: str) -> None:
        self.faults.append(text)


async def compute(context: MLContext, rng: np.random.Generator, counts: Counts, *, tidy: bool = True) -> None:
    """Build a random graph, run it some times, and look at what it gives; leave all to the garbage unless ``tidy``."""
    program = Program.drawn(rng)
    graph = await program.build(context)
    x = await context.create_buffer(data_type="float32", shape=program.shape, writable=True)
    shape = graph.output_descriptors["y"].shape
    y = await context.create_buffer(data_type="float32", shape=shape, readable=True)
    for _ in range(ROUNDS):
        data = program.input(rng)
        context.write_buffer(x, data)
        context.dispatch(graph, {"x": x}, {"y": y})
        worst = np.abs(await context.read_buffer(y) - program.expected(data)).max()
        if not worst <= TOLERANCE:
            counts.fault(f"{context.backend.name}: {program} is {worst} off")
    if tidy:
        for thing in (graph, x, y):
            thing.destroy()
    counts.note("computed")


async def leave_to_the_garbage(context: MLContext, rng: np.random.Generator, counts: Counts) -> None:
    """Compute, and destroy nothing."""
    await compute(context, rng, counts, tidy=False)
    counts.note("left to the garbage")


async def be_cancelled(context: MLContext, rng: np.random.Generator, counts: Counts) -> None:
    """Compute until the time is up, which is soon."""
    with trio.move_on_after(rng.exponential(0.01)) as scope:
        await compute(context, rng, counts)
    counts.note("cancelled" if scope.cancelled_caught else "not cancelled in time")


async def call_badly(context: MLContext, rng: np.random.Generator, counts: Counts) -> None:
    """Make calls that must be refused, each of which must leave everything as it is."""
    size = int(rng.integers(2, 9))
    buffer = await context.create_buffer(data_type="float32", shape=[size], readable=True, writable=True)
    only_written = await context.create_buffer(data_type="float32", shape=[size], writable=True)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[size])
    graph = await builder.build({"y": builder.relu(x)})
    other = MLGraphBuilder(context)
    calls: list[Callable[[], Awaitable[object] | None]] = [
        lambda: context.write_buffer(buffer, b"\0" * (4 * size - 1)),
        lambda: context.write_buffer(buffer, np.zeros(size, np.int32)),
        lambda: context.write_buffer(object(), b""),
        lambda: context.read_buffer(only_written),
        lambda: context.create_buffer(data_type="float32", shape=[-1]),
        lambda: context.create_buffer(data_type="text", shape=[1]),
        lambda: context.dispatch(graph, {}, {"y": buffer}),
        lambda: context.dispatch(graph, {"x": buffer}, {"y": buffer}),
        lambda: context.dispatch(graph, {"x": buffer}, {"z": only_written}),
        lambda: other.relu(x),
        lambda: other.reshape(other.constant(np.zeros(size, np.float32)), [size + 1]),
        lambda: other.build({}),
        lambda: builder.build({"y": x}),
    ]
    for index in rng.permutation(len(calls)):
        try:
            answer = calls[index]()
            if answer is not None:
                await answer
        except REFUSALS:
            counts.note("refused")
        else:
            counts.fault(f"{context.backend.name}: bad call number {index} was not refused")
    context.write_buffer(buffer, np.full(size, 3, np.float32))
    if (await context.read_buffer(buffer)).sum() != 3 * size:
        counts.fault(f"{context.backend.name}: a refused call changed a buffer")
    for thing in (buffer, only_written, graph):
        thing.destroy()


async def destroy_soon(context: MLContext, rng: np.random.Generator, counts: Counts) -> None:
    """Destroy the context while others use it."""
    await trio.sleep(rng.exponential(0.05))
    context.destroy()
    counts.note("destroyed in the middle")


async def lose_soon(context: MLContext, rng: np.random.Generator, counts: Counts) -> None:
    """Lose the context's device while others use it."""
    await trio.sleep(rng.exponential(0.05))
    if context.backend.name == "wgpu":
        destroy_and_log(context)
    else:
        context.device.backend.lost("there is no such thing as a numpy device")
    await context.lost
    counts.note("lost in the middle")


USUAL = (compute, compute, leave_to_the_garbage, be_cancelled, call_badly)
ENDS = (destroy_soon, lose_soon)
