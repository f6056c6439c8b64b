"""Times of kernels by the GPU's own clock.

Each kernel of a dispatch gets a pass of its own, at whose ends the GPU writes down its clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np
import wgpu

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, KernelTiming, Memory, Storage
from webnn_py.devices.wgpu.engines.engine import Encodes, Engine, Launch
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.runtime.context_queue import MOST_COLLECTED, ContextQueue

FEATURE: Final = "timestamp-query"

MOST_KERNELS: Final = 2048
"""The most kernels with their two timestamps in one query set, by WebGPU's limit of 4096."""

TICK_BYTES: Final = 8


@attrs.frozen(eq=False)
class TimedLaunch:
    """A kernel in a pass of its own, which writes the GPU's clock into a query set when it begins and when it ends."""

    launch: Launch
    queries: wgpu.GPUQuerySet
    index: int

    def encode(self, engine: Engine, encoder: Any) -> None:
        engine.encode_timed(encoder, self.launch, self.queries, self.index)


@attrs.frozen(eq=False)
class ResolvedQueries:
    """The first ``count`` timestamps of a query set, to be written to a buffer as 64-bit integers."""

    queries: wgpu.GPUQuerySet
    count: int
    target: wgpu.GPUBuffer
    target_offset: int

    def encode(self, engine: Engine, encoder: Any) -> None:
        engine.encode_resolve(encoder, self.queries, self.count, self.target, self.target_offset)


class TimedLaunches:
    """Kernels that have been submitted, and the memory to which the GPU writes when each began and ended.

    Args:
        device: the device, which has the feature :data:`FEATURE`.
        queue: its queue.
        kernels: what is launched.
        launches: the same, ready to be launched.
    """

    def __init__(
        self, device: wgpu.GPUDevice, queue: ContextQueue, kernels: Sequence[Kernel], launches: Sequence[Launch]
    ) -> None:
        self._kernels = kernels
        self._queue = queue
        self._nanoseconds = queue.engine.timestamp_period(device)
        self._query_sets: list[wgpu.GPUQuerySet] = []
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        size = 2 * TICK_BYTES * max(len(launches), 1)
        self._ticks = device.create_buffer(label="timestamps", size=size, usage=usage)
        self.storage = Storage(MLOperandDescriptor("uint64", (2 * max(len(launches), 1),)))
        self.storage.memory = Memory(self._ticks, size)
        try:
            queue.submit()
            commands = list(self._commands(device, launches))
            for start in range(0, len(commands), MOST_COLLECTED):  # as dispatches are: no submission takes too long
                queue.run(commands[start : start + MOST_COLLECTED])
        except BaseException:
            self.release()
            raise

    def _commands(self, device: wgpu.GPUDevice, launches: Sequence[Launch]) -> Iterator[Encodes]:
        for start in range(0, len(launches), MOST_KERNELS):
            part = launches[start : start + MOST_KERNELS]
            queries = device.create_query_set(type="timestamp", count=2 * len(part))
            self._query_sets.append(queries)
            yield from (TimedLaunch(launch, queries, 2 * index) for index, launch in enumerate(part))
            yield ResolvedQueries(queries, 2 * len(part), self._ticks, start * 2 * TICK_BYTES)

    def timings(self, ticks: HostArray) -> list[KernelTiming]:
        """Return the timing of each kernel.

        Args:
            ticks: the contents of :attr:`storage`.
        """
        count = len(self._kernels)
        times = ticks[: 2 * count].reshape(count, 2).astype(np.int64)
        times = ((times - times[0, 0]) * self._nanoseconds).astype(np.int64) if count else times
        ended = 0
        timings = []
        for kernel, (begin, end) in zip(self._kernels, times.tolist(), strict=True):
            began = max(begin, ended)  # a pass may say that it begins while it waits for the one before it
            ended = max(began, end)
            operators = tuple(node.operator for node in kernel.nodes)
            duration = ended - began
            timings.append(
                KernelTiming(kernel.label, operators, began, duration, kernel.bytes_moved, "gpu", kernel.nodes)
            )
        return timings

    def release(self) -> None:
        """Give the memory back, behind all submissions that use it."""
        for memory in (self._ticks, *self._query_sets):
            self._queue.in_turn(memory.destroy)
