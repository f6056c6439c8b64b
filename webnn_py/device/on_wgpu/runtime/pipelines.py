"""Compute pipelines, made once for each source and device, side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, ClassVar, Final

import wgpu

from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.runtime.native import trusted_module

_EXECUTOR: Final = ThreadPoolExecutor(min(16, os.cpu_count() or 1), "webnn-pipelines")


class CompilationError(RuntimeError):
    """A kernel does not compile; the text names operator and data types."""


class Pipelines:
    """The pipelines of one device, and the layouts of their bindings: of all contexts that share it."""

    _of_devices: ClassVar[dict[wgpu.GPUDevice, Pipelines]] = {}
    _registry_lock: ClassVar[Lock] = Lock()

    @classmethod
    def of(cls, device: wgpu.GPUDevice) -> Pipelines:
        """The pipelines of ``device``, until each who asked has called :meth:`close`."""
        with cls._registry_lock:
            pipelines = cls._of_devices.setdefault(device, cls(device))
            pipelines._users += 1
            return pipelines

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._device = device
        self._users = 0
        self._lock = Lock()
        self._pipelines: dict[str, Future[wgpu.GPUComputePipeline]] = {}
        self._layouts: dict[tuple[bool, ...], tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]] = {}

    def compile(self, kernels: Sequence[Kernel]) -> list[wgpu.GPUComputePipeline]:
        """The pipelines of ``kernels``; new ones are compiled side by side.

        Raises:
            CompilationError: one of them does not compile.
        """
        futures = [self._pipeline(kernel) for kernel in kernels]
        pipelines = []
        for kernel, future in zip(kernels, futures, strict=True):
            try:
                pipelines.append(future.result())
            except Exception as error:
                raise CompilationError(f"the kernel {kernel.label!r} does not compile: {error}") from error
        return pipelines

    def close(self) -> None:
        """Let go of all pipelines and layouts, if nobody else uses them."""
        with self._registry_lock:
            self._users -= 1
            if self._users:
                return
            del self._of_devices[self._device]
        with self._lock:
            self._pipelines.clear()
            self._layouts.clear()

    def layout(self, writable: tuple[bool, ...]) -> tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]:
        """The layouts of modules with so many bindings, each of which is declared for writing or not."""
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
            future = self._pipelines.get(kernel.source)
            if future is None or (future.done() and future.exception() is not None):
                layout = self._layout(kernel.writable)[1]
                future = self._pipelines[kernel.source] = _EXECUTOR.submit(self._make, kernel, layout)
            return future

    def _make(self, kernel: Kernel, layout: wgpu.GPUPipelineLayout) -> wgpu.GPUComputePipeline:
        module = trusted_module(self._device, kernel.source, kernel.label)
        return self._device.create_compute_pipeline(
            label=kernel.label, layout=layout, compute={"module": module, "entry_point": "main"}
        )
