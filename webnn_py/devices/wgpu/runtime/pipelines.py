"""Compute pipelines, made once for each source and device, side by side.

As many are kept as there is room for, beside those of living graphs, which keep theirs themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from heapq import heappop, heappush
from threading import Lock
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

import attrs
import wgpu

from webnn_py.core.message_text import device_text
from webnn_py.devices.wgpu.codegen.module import effort
from webnn_py.devices.wgpu.engines import engine_of
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.recently_used import RecentlyUsed, Room

MOST_THREADS: Final = min(16, os.cpu_count() or 1)

PIPELINE_BYTES: Final = 2**17
"""About what a driver takes for a pipeline, besides its text, as 0.13 MB each were seen; WebGPU does not tell."""


class EndedError(RuntimeError):
    """The context was lost during the build."""


class CompilationError(RuntimeError):
    """A kernel does not compile; the text names operator and data types."""


@attrs.frozen(order=True)
class PendingPipeline:
    """A pipeline that is to be compiled, the one that takes a driver longest first, then in their order.

    Attributes:
        kernel: the first one with this text.
        future: the pipeline.
    """

    _negative_effort: int
    _number: int
    kernel: Kernel = attrs.field(order=False)
    future: Future[wgpu.GPUComputePipeline] = attrs.field(order=False)


class Pipelines:
    """The pipelines of one device, and the layouts of their bindings: of all contexts that share it."""

    _of_devices: ClassVar[dict[wgpu.GPUDevice, Pipelines]] = {}
    _registry_lock: ClassVar[Lock] = Lock()

    @classmethod
    def on_device(cls, device: wgpu.GPUDevice, room: Room) -> Pipelines:
        """Return the pipelines of ``device``, until each who asked has called :meth:`close`.

        Args:
            device: they are compiled for this.
            room: how much is to be kept; of those who share a device, the one who asked for most has it.
        """
        with cls._registry_lock:
            pipelines = cls._of_devices.setdefault(device, cls(device, room))
            pipelines._rooms.append(room)
            pipelines._resize()
            return pipelines

    def __init__(self, device: wgpu.GPUDevice, room: Room) -> None:
        self._device = device
        self._rooms: list[Room] = []
        self._lock = Lock()
        self._executor = ThreadPoolExecutor(MOST_THREADS, "webnn-pipelines")
        self._kept: RecentlyUsed[str, Future[wgpu.GPUComputePipeline]] = RecentlyUsed(room)
        self._of_graphs: WeakValueDictionary[str, wgpu.GPUComputePipeline] = WeakValueDictionary()
        self._waiting: list[PendingPipeline] = []  # a heap
        self._made = 0
        self._layouts: dict[tuple[bool, ...], tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]] = {}

    @property
    def are_shared(self) -> bool:
        """Return whether several contexts use the device."""
        return len(self._rooms) > 1

    def begin(self, kernels: Sequence[Kernel]) -> list[Future[wgpu.GPUComputePipeline]]:
        """Begin to compile the pipelines of ``kernels``, for :meth:`finished`."""
        return [self._pipeline(kernel) for kernel in kernels]

    @staticmethod
    def finished(
        kernels: Sequence[Kernel], compiling: Sequence[Future[wgpu.GPUComputePipeline]], ending: Future[None]
    ) -> Iterator[wgpu.GPUComputePipeline]:
        """Yield the pipelines of ``kernels`` in their order, each as soon as it is there.

        Args:
            kernels: the kernels.
            compiling: what :meth:`begin` has returned for them.
            ending: done when nobody wants them any more.

        Raises:
            CompilationError: one of them does not compile.
            EndedError: nobody wants them any more.
        """
        for kernel, future in zip(kernels, compiling, strict=True):
            if not future.done():
                wait((future, ending), return_when=FIRST_COMPLETED)
            if ending.done():
                raise EndedError
            try:
                pipeline = future.result()
            except Exception as error:
                raise CompilationError(f"the kernel {kernel.label!r} does not compile: {device_text(error)}") from error
            yield pipeline

    def close(self, room: Room) -> None:
        """Let go of all pipelines and layouts, if nobody else uses them.

        Args:
            room: as it was asked for.
        """
        with self._registry_lock:
            self._rooms.remove(room)
            if self._rooms:
                self._resize()
                return
            del self._of_devices[self._device]
        with self._lock:
            self._kept.clear()
            self._layouts.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)
        del self._executor  # here, where interrupts are held off: its threads have weak references with callbacks

    def statistics(self) -> dict[str, int]:
        """Return the counts of kept, compiled and dropped pipelines of all contexts that share the device."""
        return {
            "kept_pipelines": len(self._kept),
            "kept_pipeline_bytes": self._kept.byte_length,
            "compiled_pipelines": self._made,
            "dropped_pipelines": self._kept.dropped,
        }

    def _resize(self) -> None:
        counts, byte_lengths = zip(*((room.count, room.byte_length) for room in self._rooms), strict=True)
        self._kept.resize(Room(max(counts), max(byte_lengths)))

    def layout(self, writable: tuple[bool, ...]) -> tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]:
        """Return the layouts of modules with these bindings, each declared for writing or not."""
        with self._lock:
            return self._layout(writable)

    def _layout(self, writable: tuple[bool, ...]) -> tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]:
        if writable not in self._layouts:
            entries: list[dict[str, Any]] = [
                {
                    "binding": index,
                    "visibility": wgpu.ShaderStage.COMPUTE,
                    "buffer": {"type": "storage" if written else "read-only-storage"},
                }
                for index, written in enumerate(writable)
            ]
            group = self._device.create_bind_group_layout(entries=entries)
            self._layouts[writable] = (group, self._device.create_pipeline_layout(bind_group_layouts=[group]))
        return self._layouts[writable]

    def _pipeline(self, kernel: Kernel) -> Future[wgpu.GPUComputePipeline]:
        with self._lock:
            future = self._kept.get(kernel.source)
            if future is not None and not (future.done() and future.exception() is not None):
                return future
            pipeline = self._of_graphs.get(kernel.source)
            if pipeline is None:
                future = Future()
                heappush(self._waiting, PendingPipeline(-effort(kernel.source), self._made, kernel, future))
                self._executor.submit(self._make_longest)
                self._made += 1
            else:
                future = Future()
                future.set_result(pipeline)
            self._kept.put(kernel.source, future, PIPELINE_BYTES + len(kernel.source))
            return future

    def _make_longest(self) -> None:
        """Compile what is likely to take longest of all that waits, so that no thread begins with it at the end."""
        with self._lock:
            waiting = heappop(self._waiting)
        try:
            pipeline = self._make(waiting.kernel, self.layout(waiting.kernel.writable)[1])
        except BaseException as error:  # noqa: BLE001 - as an executor does it
            waiting.future.set_exception(error)
        else:
            waiting.future.set_result(pipeline)

    def _make(self, kernel: Kernel, layout: wgpu.GPUPipelineLayout) -> wgpu.GPUComputePipeline:
        engine = engine_of(self._device)
        pipeline = engine.trusted_pipeline(self._device, kernel.source, kernel.label, layout)
        with self._lock:
            self._of_graphs[kernel.source] = pipeline
        return pipeline
