"""Finding an adapter, and asking it for a device with everything that kernels can use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import wgpu

from webnn_py.core.device.backend import BackendInfo, MLDeviceType
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import shown
from webnn_py.devices.wgpu import engines
from webnn_py.devices.wgpu.engines import engine_of, is_device
from webnn_py.devices.wgpu.records.features import Features

WANTED_LIMITS: Final = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
)
_ORDER: Final = {
    "default": ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU"),
    "high-performance": ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU"),
    "low-power": ("IntegratedGPU", "DiscreteGPU", "VirtualGPU", "Unknown", "CPU"),
}

_LOADING: Final = Lock()
"""Held while an engine looks for adapters, which it does once: threads of several programs may begin at once."""

LAYER_SWITCH: Final = "NODEVICE_SELECT"
"""The variable that switches off Mesa's layer, by the layer's manifest."""

LEAST_SUBGROUPS: Final = {0x10DE: 32, 0x1002: 32, 0x106B: 32, 0x8086: 8}
"""The sizes of the smallest subgroups by vendor: NVIDIA, AMD, Apple and Intel."""

MEASURED: Final = {"H100": "hopper", "H200": "hopper"}
"""The GPUs on which tiles were measured, by a word of the adapter's name."""

PROCESSORS: Final = {"DiscreteGPU": 64, "IntegratedGPU": 16, "VirtualGPU": 32, "CPU": 128}
"""Estimates for GPUs that were not measured, by the adapter's type: no API gives the number.

Software is for tests, and gets what a large GPU gets.
"""


def adapters(engine: str | None = None) -> Sequence[wgpu.GPUAdapter]:
    """Return every adapter that has a Vulkan, Metal or Direct3D 12 driver.

    Args:
        engine: the name of the engine that finds them; None for the default.

    Raises:
        NotSupportedError: the engine is not installed.
    """
    with _LOADING, _without_display_server():
        return engines.load(engine or engines.DEFAULT).adapters()


@contextmanager
def _without_display_server() -> Iterator[None]:
    """Keep Mesa's Vulkan layer that orders GPUs from asking a Wayland server where there can be none.

    It does so to prefer the display's GPU among those of a kind, and writes an error to the terminal each time it
    finds no ``XDG_RUNTIME_DIR``. It stays where it can ask, and where a user has given it an order.
    """
    server = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("WAYLAND_DISPLAY") or ""
    has_orders = any(name in os.environ for name in ("MESA_VK_DEVICE_SELECT", "DRI_PRIME", LAYER_SWITCH))
    if has_orders or server.startswith("/"):
        yield
        return
    os.environ[LAYER_SWITCH] = "1"
    try:
        yield
    finally:
        del os.environ[LAYER_SWITCH]


def choose(power_preference: str, *, software: bool, engine: str | None = None) -> wgpu.GPUAdapter | None:
    """Return the adapter that suits best, or None; ones that are only software just when ``software``."""
    order = _ORDER[power_preference]

    def rank(adapter: wgpu.GPUAdapter) -> int:
        kind = adapter.info["adapter_type"]
        return order.index(kind) if kind in order else order.index("Unknown")

    usable = [adapter for adapter in adapters(engine) if software or adapter.info["adapter_type"] != "CPU"]
    return min(usable, key=rank, default=None)


def find(wanted: int | str, engine: str | None = None) -> wgpu.GPUAdapter | None:
    """Return the adapter of an index or whose name contains a text in any case; None if the machine has no adapter.

    Raises:
        NotSupportedError: there is no such adapter.
        TypeError: there are several.
    """
    there = adapters(engine)
    if not there:
        return None
    names = [_name(adapter.info) for adapter in there]
    listed = "; ".join(f"{index}: {name}" for index, name in enumerate(names))
    if isinstance(wanted, int):
        fitting = [wanted] if wanted < len(there) else []
    else:
        fitting = [index for index, name in enumerate(names) if wanted.casefold() in name.casefold()]
    if not fitting:
        raise NotSupportedError(
            f"adapter is {shown(wanted)}, and there is none of that index or name; there are {listed}"
        )
    if len(fitting) > 1:
        raise TypeError(f"adapter is {shown(wanted)}, which fits {fitting}; give the index of one. There are {listed}")
    return there[fitting[0]]


def request_device(adapter: wgpu.GPUAdapter) -> wgpu.GPUDevice:
    """Return a device with the adapter's own limits and the features that kernels use."""
    engine = engine_of(adapter)
    features = [name for name in engine.features if name in adapter.features]
    limits = {name: adapter.limits[name] for name in WANTED_LIMITS if name in adapter.limits}
    return engine.open(adapter, features, limits)


def no_adapter() -> NotSupportedError:
    """Return the message for a machine without an adapter."""
    return NotSupportedError(
        "no adapter for WebGPU: no Vulkan, Metal or Direct3D 12 driver was found; install your GPU's driver, or a "
        "software one (Debian and Ubuntu: apt install mesa-vulkan-drivers)"
    )


def describe(device: wgpu.GPUDevice | wgpu.GPUAdapter) -> BackendInfo:
    """Return the description of a device, or of an adapter that one could be opened on."""
    info: Any = device.adapter.info if is_device(device) else device.info
    engine = engine_of(device)
    driver = f"{' '.join(filter(None, (info['backend_type'], info['description'])))}, {engine.title}"
    features = tuple(name for name in engine.features if name in device.features)
    limits = {name: device.limits[name] for name in WANTED_LIMITS if name in device.limits}
    kind: MLDeviceType = "cpu" if info["adapter_type"] == "CPU" else "gpu"
    return BackendInfo("wgpu", _name(info), driver, features, limits, (kind,))


def _name(info: Any) -> str:
    """Return the adapter's name as in ``BackendInfo.adapter``."""
    kind = "software" if info["adapter_type"] == "CPU" else info["adapter_type"]
    return f"{info['device']} ({kind})"


def features_of(device: wgpu.GPUDevice) -> Features:
    """Return the features that kernels may use on a device."""
    limits, info = device.limits, device.adapter.info
    return Features(
        shader_f16="shader-f16" in device.features,
        shader_int64="shader-int64" in device.features,
        subgroups=engine_of(device).subgroups in device.features,
        least_subgroup=_least_subgroup(device),
        max_storage_buffers=limits["max-storage-buffers-per-shader-stage"],
        max_workgroup_storage=limits["max-compute-workgroup-storage-size"],
        max_invocations=limits["max-compute-invocations-per-workgroup"],
        gpu=next((kind for word, kind in MEASURED.items() if word in info["device"].split()), ""),
        processors=PROCESSORS.get(info["adapter_type"], 16),
    )


def _least_subgroup(device: wgpu.GPUDevice) -> int:
    """How many invocations every subgroup surely has, a power of two: drivers that say nothing are said to have 4."""
    info: Any = device.adapter.info
    said = next((int(size) for name, size in info.items() if name.endswith("group_min_size")), 4)
    return max(said, LEAST_SUBGROUPS.get(info["vendor_id"], 4))
