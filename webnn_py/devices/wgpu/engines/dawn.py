"""The engine Dawn, Chromium's, behind the package wgpudawn: private parts of one release of it are used here alone.

The backend is imported by itself: ``wgpudawn.gpu`` would load a second copy of the library.
"""

from __future__ import annotations

from collections import deque
from logging import getLogger
from threading import Lock, local
from typing import Any, Final

import wgpu
import wgpudawn
from wgpudawn.backends import dawn
from wgpudawn.backends.dawn import _api, _helpers, extras
from wgpudawn.backends.dawn._ffi import callbacks, ffi, lib

from webnn_py.devices.wgpu.engines.engine import BACKENDS, ERRORS, Checked, Engine, Ticket

TOGGLES: Final = ("allow_unsafe_apis", "vulkan_enable_f16_on_nvidia")
"""Of all adapters: experimental features, and float16 with NVIDIA's drivers before 615.71."""

THREAD_SAFE: Final = "implicit-device-synchronization"
"""The feature by which several threads may use a device."""

WAIT_NANOSECONDS: Final = 100_000_000
"""The longest wait for an answer at a time."""

_ENUMERATING: Final = Lock()
"""Dawn finds nothing for a thread while another looks."""

_LOCAL: Final = local()


def _checks() -> deque[Any]:
    """Return the checks of this thread."""
    checks: deque[Any] | None = getattr(_LOCAL, "checks", None)
    if checks is None:
        checks = _LOCAL.checks = deque()
    return checks


class Dawn(Engine):
    """Dawn."""

    title = f"wgpudawn {wgpudawn.__version__}"
    log = getLogger("wgpudawn")
    features = ("shader-f16", "subgroups", "timestamp-query")
    subgroups = "subgroups"

    def __init__(self) -> None:
        super().__init__(ffi, lib, wgpudawn)

    def checked(self) -> Checked:
        return Checked(_checks)

    def _find_adapters(self) -> tuple[wgpu.GPUAdapter, ...]:
        if _helpers._the_instance is None:  # else a program uses Dawn by itself, with toggles of its own
            extras.set_instance_extras(backends=BACKENDS, enable_toggles=TOGGLES)
        return self._enumerated()

    @staticmethod
    def _enumerated() -> tuple[wgpu.GPUAdapter, ...]:
        with _ENUMERATING:
            return tuple(dawn.gpu.enumerate_adapters_sync())

    def open(self, adapter: wgpu.GPUAdapter, features: list[str], limits: dict[str, int | None]) -> wgpu.GPUDevice:
        # Dawn gives one device for each adapter object.
        fresh = self._enumerated()[self.adapters().index(adapter)]
        device: wgpu.GPUDevice = extras.request_device_sync(
            fresh,
            label="webnn_py",
            required_features=[*features, THREAD_SAFE],
            required_limits=limits,
            enable_toggles=["disable_robustness"],  # all its kernels are trusted
            disable_toggles=["timestamp_quantization"],
        )
        return device

    def untie(self, device: wgpu.GPUDevice) -> None:
        self.poll(device)  # tells of the end, which lets go of what waits for that
        for number, (callback, _is_once) in [*callbacks._callbacks.items()]:  # wgpudawn keeps them for ever
            if callback is device._uncaptured_error_callback:
                callbacks._callbacks.pop(number, None)
        super().untie(device)

    def is_lost(self, device: wgpu.GPUDevice) -> bool:
        return self._is_ready(lib.wgpuDeviceGetLostFuture(device._internal).id, 0)

    def is_destroyed(self, buffer: wgpu.GPUBuffer, layout: wgpu.GPUBindGroupLayout) -> bool:
        try:
            self.write(self.device_of(buffer), buffer, b"", 0)  # bind groups may have buffers that are destroyed
        except wgpu.GPUValidationError:
            return True
        return False

    def trusted_pipeline(
        self, device: wgpu.GPUDevice, code: str, label: str, layout: wgpu.GPUPipelineLayout
    ) -> wgpu.GPUComputePipeline:
        with self.checked():
            module = device.create_shader_module(label=label, code=code)
        # While one is created otherwise, the device does nothing else.
        compute = {"module": module, "entry_point": "main"}
        return device.create_compute_pipeline_async(label=label, layout=layout, compute=compute).sync_wait()

    def timestamp_period(self, device: wgpu.GPUDevice) -> float:
        return 1.0

    def poll(self, device: wgpu.GPUDevice) -> None:
        lib.wgpuInstanceProcessEvents(_helpers.get_wgpu_instance())

    def wait(self, device: wgpu.GPUDevice, ticket: Ticket, *, is_shared: bool) -> None:
        while ticket.done is None and not self._is_ready(ticket.future, WAIT_NANOSECONDS):
            pass

    @staticmethod
    def _is_ready(future: int, nanoseconds: int) -> bool:
        """Wait for a future, and return whether it has come, and has been told if it is not being told by a thread."""
        info = ffi.new("WGPUFutureWaitInfo *")
        info.future.id = future
        lib.wgpuInstanceWaitAny(_helpers.get_wgpu_instance(), 1, info, nanoseconds)
        return bool(info.completed)


# --- errors ------------------------------------------------------------------------------------------------------

# wgpudawn raises an error of any thread at the end of any call; within a check it is raised in its own thread.

_REPORT: Final = _api.error_handler.handle_error


def _report(kind: str, message: str) -> None:
    checks = _checks()
    if not checks:
        _REPORT(kind, message)
    elif checks[-1].message is None:  # others follow from the first
        checks[-1].type, checks[-1].message = kind, message


def _raise_errors_of_wgpu() -> None:
    """Have wgpudawn raise errors that are wgpu-py's, too."""
    for kind, error in {**ERRORS, "Unknown": wgpu.GPUError}.items():
        own = _helpers.ERROR_TYPES.get(kind, _helpers.ERROR_TYPES[""])
        _helpers.ERROR_TYPES[kind] = type(own.__name__, (own, error), {"__doc__": own.__doc__})


_api.error_handler.handle_error = _report
_raise_errors_of_wgpu()

ENGINE: Final = Dawn()
