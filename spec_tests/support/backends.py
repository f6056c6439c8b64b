"""The devices that tests run on: those of the registry that are there, WebGPU also where its adapter is software.

A test that names WebGPU itself is skipped where there is no adapter: it has the mark ``needs_adapter``, or the
parameter ``ON_GPU``, or uses the fixture ``shared_gpu``.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from webnn_py.core.device import registry
from webnn_py.core.errors import NotSupportedError


def is_here(record: registry.DeviceRecord) -> bool:
    """Return whether a context can run on a device."""
    try:
        return bool(record.adapters())
    except NotSupportedError:
        return False


def on_each(names: Sequence[str]) -> Any:
    """Return the fixture ``backend`` of a module whose tests run on each of these backends."""

    @pytest.fixture(scope="module", params=names)
    def backend(request: pytest.FixtureRequest) -> Any:
        return request.param

    return backend


BACKENDS = [record.name for record in registry.built_in() if record.name != "reference" and is_here(record)]
DEVICES = [*BACKENDS, "reference"]
"""With the reference device, whose operators are mostly expanded into others."""
HAS_ADAPTER = "wgpu" in BACKENDS
NO_ADAPTER = "WebGPU not tested: no adapter found (Debian and Ubuntu: apt install mesa-vulkan-drivers)"
needs_adapter = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
ON_GPU = pytest.param("wgpu", marks=needs_adapter)
