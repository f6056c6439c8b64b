"""The devices that tests run on: those of the registry that are there, WebGPU also where its adapter is software.

A test that names WebGPU itself is skipped where there is no adapter: it has the mark ``needs_adapter``, or the
parameter ``ON_GPU``, or uses the fixture ``shared_gpu``. WebGPU's engines are in ``ENGINES``, as parameters; all tests
of WebGPU run on one of them by ``pytest --gpu-engine dawn -k wgpu``.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from webnn_py.core.device import registry
from webnn_py.core.errors import NotSupportedError
from webnn_py.devices.wgpu import adapters, engines

OPTION = "--gpu-engine"

SWIFTSHADER: Final = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
"""Chromium's software driver, one of few that Dawn takes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the engine of all contexts that name none."""
    parser.addoption(OPTION, choices=tuple(engines.MODULES), help="test the WebGPU device on this engine")


def configure(config: pytest.Config) -> None:
    """Let all contexts run on the engine that is asked for."""
    engine = config.getoption(OPTION)
    if engine is not None:
        engines.DEFAULT = engine
        if WHY_NOT[engine]:
            raise pytest.UsageError(f"{OPTION} {engine}: {WHY_NOT[engine]}")


def why_not_on_dawn() -> str:
    """Return why nothing runs on Dawn here; otherwise "". Its drivers are loaded, and Chromium's for it alone."""
    if not engines.is_installed("dawn"):
        return "Dawn not tested: wgpudawn is not installed (the extra dawn)"
    with pytest.MonkeyPatch.context() as patch:
        if SWIFTSHADER.exists() and "VK_ICD_FILENAMES" not in os.environ:
            patch.setenv("VK_ADD_DRIVER_FILES", str(SWIFTSHADER))
        is_there = bool(adapters.adapters("dawn"))
    return "" if is_there else "Dawn not tested: no adapter found (Debian and Ubuntu: apt install chromium)"


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


WHY_NOT: Final = {"dawn": why_not_on_dawn()}
BACKENDS = [record.name for record in registry.built_in() if record.name != "reference" and is_here(record)]
DEVICES = [*BACKENDS, "reference"]
"""With the reference device, whose operators are mostly expanded into others."""
HAS_ADAPTER = "wgpu" in BACKENDS
NO_ADAPTER = "WebGPU not tested: no adapter found (Debian and Ubuntu: apt install mesa-vulkan-drivers)"
needs_adapter = pytest.mark.skipif(not HAS_ADAPTER, reason=NO_ADAPTER)
WHY_NOT["wgpu-native"] = "" if HAS_ADAPTER else NO_ADAPTER
ENGINES = [pytest.param(name, marks=pytest.mark.skipif(bool(why), reason=why)) for name, why in WHY_NOT.items()]
ON_GPU = pytest.param("wgpu", marks=needs_adapter)
