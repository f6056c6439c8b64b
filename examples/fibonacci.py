"""Fibonacci's numbers with three buffers that change places, and not one await between the dispatches.

Each dispatch reads the two newest buffers and writes the oldest. The device timeline runs them in the order of the
calls, so nothing has to be waited for until the number itself is wanted.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import trio

import webnn_py
from webnn_py import MLGraphBuilder

COUNT = 46
"""The last of Fibonacci's numbers that fits into int32."""


async def show(backend: str | None) -> None:
    """Enqueue everything, then read once."""
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        a, b = (builder.input(name, data_type="int32", shape=[]) for name in ("a", "b"))
        graph = await builder.build({"c": builder.add(a, b)})
        oldest, middle, newest = [
            await context.create_buffer(data_type="int32", shape=[], readable=True, writable=True) for _ in range(3)
        ]

        context.write_buffer(middle, np.int32(0))
        context.write_buffer(newest, np.int32(1))
        for _ in range(COUNT - 1):
            context.dispatch(graph, {"a": middle, "b": newest}, {"c": oldest})
            oldest, middle, newest = middle, newest, oldest
        reading = context.read_buffer(newest)
        print(f"{COUNT - 1} dispatches enqueued, the read is {reading.state}")
        print(f"F({COUNT}) = {await reading}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Show it on a device."""
    parser = argparse.ArgumentParser(description="Compute Fibonacci's numbers on a device timeline.")
    parser.add_argument("--backend")
    trio.run(show, parser.parse_args(arguments).backend)


if __name__ == "__main__":
    main()
