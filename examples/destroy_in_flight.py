"""Destroy buffers and a graph while a dispatch is in flight: what ends at once, what goes on, what is released when.

A dispatch that is enqueued is never cancelled. ``destroy()`` rejects pending reads of its own buffer at the call,
leaves all else alone, and lets the memory go behind the dispatch, on the device timeline.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import trio

import webnn_py
from webnn_py import InvalidStateError, MLContext, MLGraph, MLGraphBuilder, tracing

SHAPE = [1000]


async def build(context: MLContext) -> MLGraph:
    """Two outputs of one input."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=SHAPE)
    one = builder.constant(1, data_type="float32")
    return await builder.build({"more": builder.add(x, one), "less": builder.sub(x, one)})


async def destroy_in_flight(context: MLContext) -> None:
    """Enqueue, destroy, and look at what comes of it."""
    graph = await build(context)
    x, more, less = [
        await context.create_buffer(data_type="float32", shape=SHAPE, readable=True, writable=True) for _ in range(3)
    ]
    context.write_buffer(x, np.full(SHAPE, 7, np.float32))
    context.dispatch(graph, {"x": x}, {"more": more, "less": less})
    reading_more, reading_less = context.read_buffer(more), context.read_buffer(less)

    for thing in (x, more, graph):
        thing.destroy()
    print(
        f"destroyed: the input, one output, the graph; on the device still: {context.statistics().live_buffers} buffers"
    )
    print(f"at once: read of the destroyed output {reading_more.state}, of the other {reading_less.state}")
    try:
        await reading_more
    except InvalidStateError as error:
        print(f"awaited: {type(error).__name__}")
    print(f"the dispatch went on: {(await reading_less)[0]:.0f}")

    less.destroy()
    while context.statistics().live_bytes:  # releases run on the device timeline, behind what came before
        await trio.lowlevel.checkpoint()
    print(f"in the end: {context.statistics().live_buffers} buffers, {context.statistics().live_bytes} bytes")


async def show(backend: str | None, file: str | None) -> None:
    """On a context of its own, with a trace; save that, if there is a file for it."""
    async with webnn_py.open_ml() as ml:
        with tracing.trace(ml) as trace:
            await destroy_in_flight(await ml.create_context(backend=backend))
    for event in trace.events:
        if event.what == "rejected":
            print(f"traced: {event.kind} was rejected by {event.cause}, operation {event.caused_by}")
        if event.what == "released" and event.operation is not None:
            print(f"traced: operation {event.operation.number} has given back {event.operation.byte_length} bytes")
    if file is not None:
        trace.save(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Show it on a device."""
    parser = argparse.ArgumentParser(description="Destroy buffers and a graph while a dispatch is in flight.")
    parser.add_argument("--backend")
    parser.add_argument("--trace", metavar="FILE", help="save the trace, as .html or .json")
    options = parser.parse_args(arguments)
    trio.run(show, options.backend, options.trace)


if __name__ == "__main__":
    main()
