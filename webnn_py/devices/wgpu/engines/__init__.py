"""The implementations of WebGPU that the device runs on, behind one door: nothing else knows which it is."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from webnn_py.core.errors import NotSupportedError
from webnn_py.extras import install_command

if TYPE_CHECKING:
    from webnn_py.devices.wgpu.engines.engine import Engine

MODULES: Final = {"wgpu-native": "wgpu.backends.wgpu_native", "dawn": "wgpudawn.backends.dawn"}
"""The modules whose objects are the engines', by the engines' names."""

DEFAULT = "wgpu-native"
"""The engine of contexts that name none."""


@cache
def load(name: str) -> Engine:
    """Return an engine, whose library is loaded now.

    Raises:
        NotSupportedError: its package is not installed, or cannot be used here.
    """
    try:
        engine: Engine = import_module(f"{__name__}.{name.replace('-', '_')}").ENGINE
    except (ImportError, OSError, RuntimeError) as error:
        how = "" if is_installed(name) else f"; {install_command(name)}"
        raise NotSupportedError(f"gpu_engine {name!r} cannot be loaded: {error}{how}") from error
    return engine


def is_installed(name: str) -> bool:
    """Return whether the package of an engine is installed."""
    return find_spec(MODULES[name].partition(".")[0]) is not None


def engine_of(value: object) -> Engine:
    """Return the engine of a device or an adapter.

    Raises:
        TypeError: it is neither.
    """
    kind: Any = type(value)
    engine = _engine_of_kind(kind)
    if engine is None:
        raise TypeError(f"{kind.__name__} is no GPU device or adapter")
    return engine


def is_device(value: object) -> bool:
    """Return whether a value is a device of any engine."""
    kind: Any = type(value)
    engine = _engine_of_kind(kind)
    return engine is not None and issubclass(kind, engine.api.GPUDevice)


@cache
def _engine_of_kind(kind: Any) -> Engine | None:
    loaded = (load(name) for name, module in MODULES.items() if module in sys.modules)
    return next((engine for engine in loaded if issubclass(kind, (engine.api.GPUDevice, engine.api.GPUAdapter))), None)
