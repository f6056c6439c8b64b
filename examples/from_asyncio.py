"""Two ways to run models from an asyncio program.

The blocking form in a thread is simple; a run that has begun is not cancelled. With trio as asyncio's guest both loops
run in one thread, and promises, cancellation and the whole API are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import numpy as np
import outcome
import trio
from numpy.typing import NDArray

import webnn_py
from webnn_py.runtime import blocking

T = TypeVar("T")
Rows = NDArray[np.float32]
WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)


# --- the blocking form, in threads -----------------------------------------------------------------------------------


async def in_threads(model: bytes, batches: list[Rows]) -> list[Rows]:
    """Run a model on each batch; asyncio's loop goes on meanwhile."""
    env = await asyncio.to_thread(blocking.Environment)
    try:
        session = await asyncio.to_thread(env.create_session, model)
        runs = [asyncio.to_thread(session.run, {"x": batch}) for batch in batches]
        return [outputs["y"].data for outputs in await asyncio.gather(*runs)]
    finally:
        await asyncio.to_thread(env.close)


# --- trio as a guest -------------------------------------------------------------------------------------------------


async def with_guest(function: Callable[[], Awaitable[T]]) -> T:
    """Run a trio program within asyncio's loop; cancelling the asyncio task cancels it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[outcome.Outcome[T]] = loop.create_future()
    scope = trio.CancelScope()

    async def cancellable() -> T:
        with scope:
            return await function()
        raise asyncio.CancelledError

    trio.lowlevel.start_guest_run(
        cancellable,
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        done_callback=done.set_result,
        host_uses_signal_set_wakeup_fd=True,
    )
    try:
        await asyncio.shield(done)
    except asyncio.CancelledError:
        scope.cancel()
        await done
        raise
    return done.result().unwrap()


async def multiply(batches: list[Rows]) -> list[Rows]:
    """A trio program: the products of the batches and the weights, read together."""
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context()
        builder = webnn_py.MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=batches[0].shape)
        graph = await builder.build({"y": builder.matmul(x, builder.constant(WEIGHTS))})
        source = await context.create_buffer(data_type="float32", shape=batches[0].shape, writable=True)
        target = await context.create_buffer(
            data_type="float32", shape=graph.output_descriptors["y"].shape, readable=True
        )
        promises = []
        for batch in batches:
            context.write_buffer(source, batch)
            context.dispatch(graph, {"x": source}, {"y": target})
            promises.append(context.read_buffer(target))
        return [await promise for promise in promises]


async def main() -> None:
    """Multiply as a guest, while asyncio does something else."""
    batches = [np.full((2, 4), number, np.float32) for number in range(3)]
    ticks = asyncio.create_task(asyncio.sleep(0, "asyncio goes on"))
    for batch, product in zip(batches, await with_guest(lambda: multiply(batches)), strict=True):
        print(f"{batch[0, 0]:.0f} · weights = {product.tolist()}")
    print(await ticks)


if __name__ == "__main__":
    asyncio.run(main())
