"""The cost of a session, compared with calls by hand.

``python -m spec_tests.labs.benchmarks.sessions [BACKEND …]``.

Everything of one table is timed in turn in one process; medians.
"""

import argparse
import math
import statistics
from time import perf_counter

import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks.measure import as_text
from webnn_py import MLGraphBuilder
from webnn_py.runtime import Environment

RUNS = 400
ROUNDS = 20
DIMS = (2, 3)


async def build(context):
    """The small model: y = x + 1."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=DIMS)
    return await builder.build({"y": builder.add(x, builder.constant(np.ones(1, np.float32)))})


async def timed(calls, runs):
    """Medians by name, each call run in turn."""
    samples = {name: [] for name in calls}
    for run in range(runs + 5):
        for name, call in calls.items():
            await trio.lowlevel.checkpoint()
            began = perf_counter()
            await call()
            if run >= 5:
                samples[name].append(perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in samples.items()}


async def runs(env):
    """A run from host to host, and by hand."""
    context = (await env.open_device()).context
    graph = await build(context)
    session = await env.create_session(graph)
    x = await context.create_buffer(data_type="float32", shape=DIMS, writable=True)
    y = await context.create_buffer(data_type="float32", shape=DIMS, readable=True)
    data = np.ones(DIMS, np.float32)

    async def by_hand():
        context.write_buffer(x, data)
        context.dispatch(graph, {"x": x}, {"y": y})
        await context.read_buffer(y)

    async def by_session():
        await session.run({"x": data})

    taken = await timed({"write + dispatch + read by hand": by_hand, "session.run(), host to host": by_session}, RUNS)
    await session.release()
    for thing in (x, y, graph):
        thing.destroy()
    return taken


async def bound_runs(env):
    """A run of a chain of bound runs, and the device idle at its end, for each of them."""
    context = (await env.open_device()).context
    graph = await build(context)
    source = await env.create_tensor(np.ones(DIMS, np.float32))
    target = await env.create_tensor(data_type="float32", dims=DIMS)
    plain = await env.create_session(graph)
    captured = await env.create_session(graph, enable_graph_capture=True)
    chain = 20
    taken = {}

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
    for name, seconds in (await timed(calls, ROUNDS)).items():
        taken[name] = seconds / chain
    for session in (plain, captured):
        await session.release()
    for tensor in (source, target):
        tensor.dispose()
    graph.destroy()
    return taken


async def lives(env):
    """Create, first run, release, in an environment that keeps its device."""
    context = (await env.open_device()).context
    data = np.ones(DIMS, np.float32)

    async def live():
        graph = await build(context)
        async with await env.create_session(graph) as session:
            await session.run({"x": data})
        graph.destroy()
        await env.drain()

    return await timed({"build + create + first run + release, device preserved": live}, ROUNDS)


async def measure(backend):
    """Medians by name on one device."""
    async with webnn_py.open_ml() as ml, Environment(ml, backend, preserve_device=True) as env:
        taken = {}
        for benchmark in (runs, bound_runs, lives):
            taken |= await benchmark(env)
        return str((await env.open_device()).info), taken


def main():
    parser = argparse.ArgumentParser(prog="python -m spec_tests.labs.benchmarks.sessions", description=__doc__)
    parser.add_argument("backends", nargs="*", default=["numpy"], help="devices (default: numpy)")
    parser.add_argument("--repeat", type=int, default=1, help="measure so often and print the best of each")
    options = parser.parse_args()
    for backend in options.backends:
        best = {}
        for _ in range(options.repeat):
            where, taken = trio.run(measure, backend)
            best = {name: min(seconds, best.get(name, math.inf)) for name, seconds in taken.items()}
        print(f"\n{where}\n\n| | |\n|---|---|")
        for name, seconds in best.items():
            print(f"| {name} | {as_text(seconds)} |")


if __name__ == "__main__":
    main()
