"""One GPU device an adapter, shared by all contexts that bring none of their own.

Opening a GPU device takes a driver tens of milliseconds, and so do its first submission and its end; a context beside
another on the same adapter has none of that to wait for. What contexts have in common is the native device with its
queue, and its compiled pipelines (:class:`.Pipelines`), which are a matter of their text alone. Each has its own books,
staging memory, launches that are not submitted yet, and errors: what one context does or suffers, but for the loss of
the GPU device itself, is not seen by the others, and what it held is gone when it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import wgpu

from webnn_py.devices.wgpu.engines import engine_of
from webnn_py.devices.wgpu.runtime.device_loss import is_lost


class SharedDevices:
    """The GPU devices that are shared, each until the last who took it has given it back; for use by any thread.

    Args:
        open_device: opens a fresh one on an adapter.
    """

    def __init__(self, open_device: Callable[[wgpu.GPUAdapter], wgpu.GPUDevice]) -> None:
        self._open_device = open_device
        self._books = Lock()
        self._opening: dict[wgpu.GPUAdapter, Lock] = {}
        self._current: dict[wgpu.GPUAdapter, wgpu.GPUDevice] = {}
        self._users: dict[wgpu.GPUDevice, int] = {}

    def take(self, adapter: wgpu.GPUAdapter) -> wgpu.GPUDevice:
        """Return the adapter's device: that of the others, or a fresh one where there are none or theirs is lost.

        May take long. Give it back once.
        """
        with self._books:
            opening = self._opening.setdefault(adapter, Lock())
        with opening:
            device = self._join(adapter)
            if device is None:
                device = self._open_device(adapter)
                with self._books:
                    self._current[adapter] = device
                    self._users[device] = 1
            return device

    def _join(self, adapter: wgpu.GPUAdapter) -> wgpu.GPUDevice | None:
        with self._books:
            device = self._current.get(adapter)
            if device is None or is_lost(device):
                return None
            self._users[device] += 1
            return device

    def give_back(self, device: wgpu.GPUDevice) -> None:
        """The caller has ended its use of a device; the last one destroys it."""
        with self._books:
            self._users[device] -= 1
            if self._users[device]:
                return
            del self._users[device]
            for adapter in [adapter for adapter, current in self._current.items() if current is device]:
                del self._current[adapter]
        device.destroy()
        engine_of(device).untie(device)
