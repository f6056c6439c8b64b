"""The devices that cases run on: those of the registry that are there, WebGPU also where its adapter is software."""

from webnn_py.device import registry
from webnn_py.errors import NotSupportedError


def is_here(record: registry.DeviceRecord) -> bool:
    """Whether a context can run on a device."""
    try:
        return bool(record.adapters())
    except NotSupportedError:
        return False


BACKENDS = [record.name for record in registry.built_in() if is_here(record)]
DEVICES = [*BACKENDS, "small"]
"""With the one of ``spec_tests/small_device``, another package's, whose operators are mostly expanded into others."""
HAS_ADAPTER = "wgpu" in BACKENDS
NO_ADAPTER = "WebGPU not tested: no adapter found (Debian and Ubuntu: apt install mesa-vulkan-drivers)"
