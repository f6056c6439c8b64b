"""The numpy device's entry in the registry; its kernels are imported when it is opened."""

from collections.abc import Sequence
from typing import Final

from webnn_py.core.device.backend import Backend, BackendInfo, Capabilities
from webnn_py.core.device.registry import DeviceRecord, OpenRequest, Suitability
from webnn_py.devices.processor_options import KEEP_SUBNORMALS


def _open(request: OpenRequest) -> Backend:
    from webnn_py.devices.numpy.backend import NumpyBackend  # noqa: PLC0415 - see above

    return NumpyBackend(keep_subnormals=request.options.get(KEEP_SUBNORMALS.name, False))


def _adapters() -> Sequence[BackendInfo]:
    return [_open(OpenRequest()).info]


def _capabilities() -> Capabilities:
    return _open(OpenRequest()).capabilities


RECORD: Final = DeviceRecord(
    name="numpy",
    title="numpy",
    is_accelerated=False,
    probe=lambda _power_preference: Suitability.ANYWHERE,
    open=_open,
    adapters=_adapters,
    capabilities=_capabilities,
    options=(KEEP_SUBNORMALS,),
)
