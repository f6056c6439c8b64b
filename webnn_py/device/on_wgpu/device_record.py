"""The WebGPU device's entry in the registry; wgpu loads when a driver is looked for."""

from collections.abc import Sequence
from typing import Any, Final

import trio

from webnn_py.descriptors import MAX_DIMENSION
from webnn_py.device.backend import Backend, BackendInfo, Capabilities
from webnn_py.device.registry import DeviceOption, DeviceRecord, OpenRequest, Suitability
from webnn_py.errors import NotSupportedError
from webnn_py.operators.idl import boolean


def _probe(power_preference: str) -> Suitability:
    try:
        from webnn_py.device.on_wgpu import adapters  # noqa: PLC0415 - loads wgpu
    except (ImportError, OSError, RuntimeError):
        return Suitability.ABSENT  # no WebGPU can be had here, and none was asked for
    if adapters.choose(power_preference, software=False) is not None:
        return Suitability.HARDWARE
    return Suitability.ON_REQUEST if adapters.adapters() else Suitability.ABSENT


async def _open(request: OpenRequest) -> Backend:
    gpu_device = request.options["gpu_device"]
    device = await trio.to_thread.run_sync(_gpu_device, gpu_device, request.power_preference)
    from webnn_py.device.on_wgpu.backend import WgpuBackend  # noqa: PLC0415 - loads wgpu

    return WgpuBackend(device, owned=gpu_device is None, float16_accumulation=request.options["float16_accumulation"])


def _gpu_device(given: object, power_preference: str) -> Any:
    """A ``wgpu.GPUDevice``: the user's, or one of the adapter that suits best; drivers take their time."""
    import wgpu  # noqa: PLC0415 - takes its time, too

    from webnn_py.device.on_wgpu import adapters  # noqa: PLC0415 - likewise

    if given is not None:
        if not isinstance(given, wgpu.GPUDevice):
            raise TypeError(f"gpu_device is {given!r}; it must be a wgpu.GPUDevice")
        return given
    adapter = adapters.choose(power_preference, software=True)
    if adapter is None:
        raise adapters.no_adapter()
    return adapters.request_device(adapter)


def _adapters() -> Sequence[BackendInfo]:
    try:
        from webnn_py.device.on_wgpu import adapters  # noqa: PLC0415 - loads wgpu
    except (ImportError, OSError, RuntimeError) as error:
        raise NotSupportedError(f"wgpu cannot be loaded: {error}") from error
    found = [adapters.describe(adapter) for adapter in adapters.adapters()]
    if not found:
        raise adapters.no_adapter()
    return found


def _capabilities() -> Capabilities:
    from webnn_py.device.on_wgpu import backend  # noqa: PLC0415 - loads wgpu

    return backend._capabilities(shader_int64=True, longest=MAX_DIMENSION)


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
            "float16_accumulation",
            "whether products of float16 matrices and convolutions may be summed in float16, which is faster and "
            "rounds every sum; otherwise sums are float32",
            default=False,
            convert=boolean,
        ),
    ),
)
