"""The cost of a session, compared with calls by hand.

``python -m spec_tests.labs.benchmarks.sessions [BACKEND …]``.

Everything of one table is timed in turn in one process; medians.
"""

import math

import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks.built import Built
from spec_tests.labs.benchmarks.measure import as_text, compare, head, parser, row
from webnn_py import MLGraphBuilder
from webnn_py.runtime import Environment

RUNS = 400
ROUNDS = 20
DIMS = (2, 3)


async def build(context):
    """Build the small model: y = x + 1."""
    data = {"x": np.ones(DIMS, np.float32)}
    return await Built.from_drawing(context, lambda b, x: b.add(x, b.constant(np.ones(1, np.float32))), data)


async def timed(calls, runs):
    return (await compare("", calls, runs=runs, warm_up=5)).seconds


async def runs(env):
    """Time a run from host to host, and by hand."""
    built = await build((await env.open_device()).context)
    session = await env.create_session(built.graph)

    async def by_session():
        await session.run(built.data)

    calls = {"write + dispatch + read by hand": built.trip, "session.run(), host to host": by_session}
    taken = await timed(calls, RUNS)
    await session.release()
    built.destroy()
    return taken


async def bound_runs(env):
    """Time a run of a chain of bound runs, until the device is idle."""
    context = (await env.open_device()).context
    built = await build(context)
    graph = built.graph
    source = await env.create_tensor(np.ones(DIMS, np.float32))
    target = await env.create_tensor(data_type="float32", dims=DIMS)
    plain = await env.create_session(graph)
    captured = await env.create_session(graph, enable_graph_capture=True)
    chain = 20

    def of(session):
        async def run():
            for _ in range(chain):
                await session.run({"x": source}, {"y": target})
            await env.drain()

        return run

    async def by_hand():
        for _ in range(chain):
            context.dispatch(graph, {"x": source._buffer}, {"y": target._buffer})
            await trio.lowlevel.checkpoint()
        await env.drain()

    calls = {
        "dispatch by hand, no read": by_hand,
        "session.run(), bound, no read": of(plain),
        "session.run(), captured, no read": of(captured),
    }
    taken = {name: seconds / chain for name, seconds in (await timed(calls, ROUNDS)).items()}
    for session in (plain, captured):
        await session.release()
    for tensor in (source, target):
        tensor.dispose()
    built.destroy()
    return taken


async def lives(env):
    """Time creation, first run and release, in an environment that keeps its device."""
    context = (await env.open_device()).context

    async def live():
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=DIMS)
        graph = await builder.build({"y": builder.add(x, builder.constant(np.ones(1, np.float32)))})
        async with await env.create_session(graph) as session:
            await session.run({"x": np.ones(DIMS, np.float32)})
        graph.destroy()
        await env.drain()

    return await timed({"build + create + first run + release, device preserved": live}, ROUNDS)


async def measure(backend):
    """Return medians by name on one device."""
    async with webnn_py.open_ml() as ml, Environment(ml, backend, preserve_device=True) as env:
        taken = {}
        for benchmark in (runs, bound_runs, lives):
            taken |= await benchmark(env)
        return str((await env.open_device()).info), taken


def main():
    arguments = parser("sessions", __doc__)
    arguments.add_argument("backends", nargs="*", default=["numpy"], help="devices (default: numpy)")
    arguments.add_argument("--repeat", type=int, default=1, help="measure so often and print the best of each")
    options = arguments.parse_args()
    for backend in options.backends:
        best = {}
        for _ in range(options.repeat):
            where, taken = trio.run(measure, backend)
            best = {name: min(seconds, best.get(name, math.inf)) for name, seconds in taken.items()}
        print(f"\n{where}\n", head("", ""), sep="\n")
        for name, seconds in best.items():
            print(row(name, as_text(seconds)))


if __name__ == "__main__":
    main()
