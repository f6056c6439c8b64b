"""Environments whose contexts are counted, and ways to lose them and to interrupt blocking calls."""

import gc
import random
import signal
import threading
from contextlib import asynccontextmanager

import numpy as np
import pytest
import trio
import trio.testing
import wgpu

from webnn_py import InvalidStateError, MLGraphBuilder
from webnn_py.runtime import Tensor
from webnn_py.runtime.loop_thread import LoopThread

USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


def lose(context, message="the driver crashed"):
    """Have the device report its loss, which takes effect in its turn on the script timeline."""
    context.device.backend.lost(message)


def interrupt():
    """Send a Ctrl-C to the main thread, from any thread."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def loops_that_have_not_ended():
    """Return all loops of blocking code, also those about to start, whose caller an interrupt may have ended."""
    gc.collect()  # of those that were never started
    return [thing for thing in gc.get_objects() if type(thing) is LoopThread and not thing._ended]


async def interrupt_when_it_waits(timeline):
    """Send a Ctrl-C when the main thread waits for a call to a device that pauses, however late the call is."""
    while timeline.queued_operations == 0:
        await trio.lowlevel.checkpoint()
    await trio.testing.wait_all_tasks_blocked()
    interrupt()


async def built(context, shape=(2, 3), number=1.0):
    """Build a user's own graph: y = x + number."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=shape)
    return await builder.build({"y": builder.add(x, builder.constant(np.full(1, number, np.float32)))})


def device_location(backend):
    """Return the location of tensors on a device."""
    return "gpu-buffer" if backend == "wgpu" else "ml-tensor"


def live(statistics):
    return statistics.live_buffers, statistics.live_bytes


async def placed(env, array, place):
    """Return an array as it is, as a tensor on the host, or as one on the device."""
    if place == "array":
        return array
    return Tensor(array) if place == "tensor" else await env.create_tensor(array)


def gpu_buffer(gpu, array=None, size=64, usage=USAGE):
    """Create a user's own buffer of a GPU device."""
    buffer = gpu.create_buffer(size=size, usage=usage)
    if array is not None:
        gpu.queue.write_buffer(buffer, 0, array)
    return buffer


@asynccontextmanager
async def refused_while_pending(context, call, words):
    """Make a call while the device pauses; when the block has ended, it must be refused with these words."""

    async def wait():
        with pytest.raises(InvalidStateError, match=words):
            await call()

    context.device_timeline.pause()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        yield
        context.device_timeline.resume()


async def assert_adds(session, x, number=1):
    """Check that a session of ``add(number)`` computes x + number."""
    np.testing.assert_array_equal((await session.run({"x": x}))["y"].data, x + number)


def interrupt_often(program, *, seed, count, longest):
    """Run a program again and again until a timer has interrupted it ``count`` times, each at a random moment."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    interrupted = 0
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while interrupted < count:
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, longest))
                program()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
