"""A pipeline of two contexts: while the second works on one item, the first is at the next.

Each context has a device timeline of its own. Everything is enqueued on the first at once; a task for each item awaits
what comes out there and hands it to the second, so neither timeline waits for the other.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Self

import attrs
import numpy as np
import trio

import webnn_py
from webnn_py import ML, MLBuffer, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLPromise

ITEMS, SIZE = 4, 1000
F32: dict[str, Any] = {"data_type": "float32", "shape": [SIZE]}


@attrs.frozen
class Stage:
    """A graph on a context of its own, with two buffers; any number of items may be under way."""

    context: MLContext
    graph: MLGraph
    given: MLBuffer
    made: MLBuffer

    @classmethod
    async def open(cls, ml: ML, backend: str | None, draw: Callable[[MLGraphBuilder, MLOperand], MLOperand]) -> Self:
        """Make the context and build the graph."""
        context = await ml.create_context(backend=backend)
        builder = MLGraphBuilder(context)
        graph = await builder.build({"y": draw(builder, builder.input("x", **F32))})
        given = await context.create_buffer(**F32, writable=True)
        return cls(context, graph, given, await context.create_buffer(**F32, readable=True))

    def begin(self, item: np.ndarray[Any, Any]) -> MLPromise[np.ndarray[Any, Any]]:
        """Enqueue write, dispatch and read; the order of these keeps items apart."""
        self.context.write_buffer(self.given, item)
        self.context.dispatch(self.graph, {"x": self.given}, {"y": self.made})
        return self.context.read_buffer(self.made)


async def show(backend: str | None) -> None:
    """Send all items through both stages."""
    async with webnn_py.open_ml() as ml:
        first = await Stage.open(ml, backend, lambda b, x: b.mul(x, b.constant(2, data_type="float32")))
        second = await Stage.open(ml, backend, lambda b, x: b.add(x, b.constant(1, data_type="float32")))
        results: dict[int, float] = {}

        async def follow(number: int, halfway: MLPromise[np.ndarray[Any, Any]]) -> None:
            results[number] = float((await second.begin(await halfway))[0])

        pending = [first.begin(np.full(SIZE, number, np.float32)) for number in range(ITEMS)]
        print(f"enqueued on the first context: {ITEMS} items, of which {_settled(pending)} are done")
        async with trio.open_nursery() as nursery:
            for number, halfway in enumerate(pending):
                nursery.start_soon(follow, number, halfway)
        for number, result in sorted(results.items()):
            print(f"item {number}: 2 * {number} + 1 = {result:.0f}")


def _settled(promises: Sequence[MLPromise[Any]]) -> int:
    return sum(promise.state != "pending" for promise in promises)


def main(arguments: Sequence[str] | None = None) -> None:
    """Show it on a device."""
    parser = argparse.ArgumentParser(description="Pipeline two contexts.")
    parser.add_argument("--backend")
    trio.run(show, parser.parse_args(arguments).backend)


if __name__ == "__main__":
    main()
