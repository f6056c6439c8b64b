"""The implementations of WebGPU that the device runs on, behind one door: nothing else knows which it is."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webnn_py.devices.wgpu.engines.engine import Engine

DEFAULT: Final = "wgpu-native"

MODULES: Final = {DEFAULT: "wgpu.backends.wgpu_native"}
"""The modules whose objects are the engines', by the engines' names."""


@cache
def load(name: str) -> Engine:
    """Return an engine, whose library is loaded now."""
    engine: Engine = import_module(f"{__name__}.{name.replace('-', '_')}").ENGINE
    return engine


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
