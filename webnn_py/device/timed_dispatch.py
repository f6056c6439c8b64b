"""Dispatches of which somebody is told how long each kernel took."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

from webnn_py.device.backend import Backend, KernelTiming, Storage, TimesKernels
from webnn_py.in_flight import InFlight

Told = Callable[[Sequence[KernelTiming]], None]


def dispatch_timed(
    backend: Backend, told: Told, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
) -> Awaitable[None] | None:
    """Run a graph on a backend that times kernels, and tell of them when they have run."""
    assert isinstance(backend, TimesKernels)  # noqa: S101 - whoever watches has asked
    timings = backend.dispatch_timed(compiled, inputs, outputs)
    if not isawaitable(timings):
        told(timings)
        return None
    telling = _tell(timings, told)
    return InFlight(telling) if isinstance(timings, InFlight) else telling


async def _tell(timings: Awaitable[list[KernelTiming]], told: Told) -> None:
    told(await timings)
