"""Environments whose contexts are counted, and ways to lose them and to interrupt what blocks."""

import gc
import signal
import threading

import numpy as np
import trio
import trio.testing
import wgpu

from webnn_py import MLGraphBuilder
from webnn_py.runtime import Tensor
from webnn_py.runtime.loop_thread import LoopThread

USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


class Opener:
    """Counts the contexts that environments open, by standing in for ``ML.create_context``.

    Attributes:
        contexts: all that were opened, in order.
    """

    def __init__(self, ml, options):
        self.options = options
        self.contexts = []
        self._ml = ml
        self._create = ml.create_context

    def watch(self, monkeypatch):
        def create_context(_ml, **options):
            promise = self._create(**options)
            promise._on_settled(lambda: self.contexts.append(promise._outcome))
            return promise

        monkeypatch.setattr(type(self._ml), "create_context", create_context)


def lose(context, message="the driver crashed"):
    """Have the device say that it is gone; it comes in its turn on the script timeline."""
    context._device.backend.lost(message)


def interrupt():
    """A Ctrl-C in the main thread, from any thread."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def loops_that_have_not_ended():
    """All loops of blocking code, also those about to start: an interrupt may have ended who asked for one."""
    gc.collect()  # of those that were never started nobody holds any
    return [thing for thing in gc.get_objects() if type(thing) is LoopThread and not thing._ended]


async def interrupt_when_it_waits(timeline):
    """A Ctrl-C when the main thread waits for what it has asked of a device that pauses, however late it asks."""
    while timeline.queued_operations == 0:
        await trio.lowlevel.checkpoint()
    await trio.testing.wait_all_tasks_blocked()
    interrupt()


async def built(context, shape=(2, 3), number=1.0):
    """A user's own graph: y = x + number."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=shape)
    return await builder.build({"y": builder.add(x, builder.constant(np.full(1, number, np.float32)))})


def device_location(backend):
    """What tensors on a device call the place where they lie."""
    return "gpu-buffer" if backend == "wgpu" else "ml-tensor"


def live(statistics):
    return statistics.live_buffers, statistics.live_bytes


async def placed(env, array, place):
    """An array as it is, as a tensor on the host, or as one on the device."""
    if place == "array":
        return array
    return Tensor(array) if place == "tensor" else await env.create_tensor(array)


def gpu_buffer(gpu, array=None, size=64, usage=USAGE):
    """A user's own buffer of a GPU device."""
    buffer = gpu.create_buffer(size=size, usage=usage)
    if array is not None:
        gpu.queue.write_buffer(buffer, 0, array)
    return buffer
