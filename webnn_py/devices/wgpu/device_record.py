"""The WebGPU device's entry in the registry; wgpu loads when a driver is looked for."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from glob import iglob
from itertools import chain
from typing import Any, Final

import trio

from webnn_py.core.descriptors import MAX_DIMENSION, unsigned_long
from webnn_py.core.device.backend import Backend, BackendInfo, Capabilities
from webnn_py.core.device.registry import DeviceOption, DeviceRecord, OpenRequest, Suitability
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import shown
from webnn_py.core.operators.idl import boolean
from webnn_py.devices.wgpu import engines
from webnn_py.devices.wgpu.records.driver import DRIVER
from webnn_py.devices.wgpu.records.recently_used import Room

GPU_NODES: Final = (
    "/dev/dri/renderD*",  # every driver that is part of Linux
    "/dev/nvidia[0-9]*",  # NVIDIA's own, which has no render node in many containers
    "/dev/nvhost-gpu",
    "/dev/nvgpu/*/as",
    "/dev/dxg",  # Windows' GPUs in WSL
    "/dev/kgsl-3d0",
    "/dev/mali[0-9]*",
    "/dev/pvr_sync",
)
"""The files by which programs on Linux reach GPUs. Without any, no driver but software can be there."""


def _may_have_gpu() -> bool:
    """Return whether it is worth loading drivers, which takes a second and 70 MB, to look for hardware."""
    if sys.platform != "linux":
        return True
    return any(os.access(node, os.R_OK | os.W_OK) for node in chain.from_iterable(map(iglob, GPU_NODES)))


def _probe(power_preference: str) -> Suitability:
    if DRIVER.is_inherited:
        return Suitability.ABSENT
    if not _may_have_gpu():
        return Suitability.ON_REQUEST
    try:
        from webnn_py.devices.wgpu import adapters  # noqa: PLC0415 - loads wgpu

        if adapters.choose(power_preference, software=False) is not None:
            return Suitability.HARDWARE
    except (ImportError, OSError, RuntimeError, NotSupportedError):
        return Suitability.ABSENT  # no WebGPU can be had here, and none was asked for
    return Suitability.ON_REQUEST if adapters.adapters() else Suitability.ABSENT


async def _open(request: OpenRequest) -> Backend:
    options = request.options
    given, engine, wanted = (options[name] for name in ("gpu_device", "gpu_engine", "adapter"))
    cached = Room(options["max_cached_pipelines"], options["max_cached_pipeline_bytes"])
    if given is not None and wanted is not None:
        raise TypeError(f"adapter is {shown(wanted)}, and gpu_device is given, which has its own; give one of the two")
    DRIVER.enter()
    find = partial(_take_shared_device, wanted, engine, request.power_preference)
    device = await trio.to_thread.run_sync(find if given is None else partial(_checked_device, given, engine))
    from webnn_py.devices.wgpu.backend import backend_type  # noqa: PLC0415 - loads wgpu
    from webnn_py.devices.wgpu.runtime.waiting import POLICIES  # noqa: PLC0415 - loads wgpu

    waiting = POLICIES[request.power_preference]
    kept = {"float16_accumulation": options["float16_accumulation"], "cached": cached, "waiting": waiting}
    if given is None:
        return backend_type(device).on_shared_device(device, **kept)
    return backend_type(device)(device, give_back=None, **kept)


def _checked_device(given: object, engine: str | None) -> Any:
    """Return the user's ``wgpu.GPUDevice``, which is of an engine where one is named."""
    from webnn_py.devices.wgpu.engines import engine_of, is_device, load  # noqa: PLC0415

    if not is_device(given):
        raise TypeError(f"gpu_device is {shown(given)}; it must be a wgpu.GPUDevice")
    if engine is not None and load(engine) is not engine_of(given):
        raise TypeError(f"gpu_engine is {shown(engine)}, and gpu_device is of {engine_of(given).title}; leave one out")
    return given


def _take_shared_device(wanted: int | str | None, engine: str | None, power_preference: str) -> Any:
    """Return the device of the adapter that is asked for, or that suits best; drivers take their time."""
    from webnn_py.devices.wgpu import adapters  # noqa: PLC0415 - loads wgpu

    if wanted is None:
        adapter = adapters.choose(power_preference, software=True, engine=engine)
    else:
        adapter = adapters.find(wanted, engine)
    if adapter is None:
        raise adapters.no_adapter()
    from webnn_py.devices.wgpu.backend import SHARED_DEVICES  # noqa: PLC0415 - loads the kernels

    return SHARED_DEVICES.take(adapter)


def _index_or_name(value: object) -> int | str:
    if isinstance(value, str) and value:
        return value
    try:
        return unsigned_long(value)
    except TypeError:
        raise TypeError(f"is {shown(value)}; it must be an adapter's index, or a part of its name") from None


def _engine_name(value: object) -> str:
    if isinstance(value, str) and value in engines.MODULES:
        return value
    raise TypeError(f"is {shown(value)}; it must be one of {', '.join(map(repr, engines.MODULES))}")


def _adapters() -> Sequence[BackendInfo]:
    try:
        from webnn_py.devices.wgpu import adapters  # noqa: PLC0415 - loads wgpu
    except (ImportError, OSError, RuntimeError) as error:
        raise NotSupportedError(f"wgpu cannot be loaded: {error}") from error
    installed = [name for name in engines.MODULES if engines.is_installed(name)]
    found = [adapters.describe(adapter) for name in installed for adapter in adapters.adapters(name)]
    if not found:
        raise adapters.no_adapter()
    return found


def _capabilities() -> Capabilities:
    from webnn_py.devices.wgpu.capabilities import capabilities_of  # noqa: PLC0415 - loads wgpu

    return capabilities_of(MAX_DIMENSION, shader_int64=True)


RECORD: Final = DeviceRecord(
    name="wgpu",
    title="WebGPU",
    is_accelerated=True,
    probe=_probe,
    open=_open,
    adapters=_adapters,
    capabilities=_capabilities,
    options=(
        DeviceOption("gpu_device", "a ``wgpu.GPUDevice`` to run on, which stays the user's"),
        DeviceOption(
            "gpu_engine",
            'the implementation of WebGPU: ``"wgpu-native"``, the default, or ``"dawn"``, Chromium\'s',
            convert=_engine_name,
        ),
        DeviceOption(
            "adapter",
            "which of several GPUs: its index among its engine's in the list of ``webnn-py devices``, or a part of its "
            "name there; otherwise the one that suits ``power_preference`` best",
            convert=_index_or_name,
        ),
        DeviceOption(
            "float16_accumulation",
            "whether products of float16 matrices and convolutions may be summed in float16, which is faster and "
            "rounds every sum; otherwise sums are float32",
            default=False,
            convert=boolean,
        ),
        DeviceOption(
            "max_cached_pipelines",
            "how many compiled pipelines are kept for graphs to come, those of living graphs aside; of contexts that "
            "share a GPU device, the largest counts",
            default=1024,
            convert=unsigned_long,
        ),
        DeviceOption(
            "max_cached_pipeline_bytes",
            "how many bytes they may take, by an estimate",
            default=2**28,
            convert=unsigned_long,
        ),
    ),
)
