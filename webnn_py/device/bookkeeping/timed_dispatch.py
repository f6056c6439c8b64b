"""Dispatches that report the durations of their kernels."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from webnn_py.device.backend import Backend, KernelTiming, Storage, TimesKernels
from webnn_py.in_flight import then

Report = Callable[[Sequence[KernelTiming]], None]


def dispatch_timed(
    backend: Backend, report: Report, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
) -> Awaitable[None] | None:
    """Run a graph on a backend that times kernels, and report the timings when the kernels have run."""
    assert isinstance(backend, TimesKernels)  # noqa: S101 - the watcher checks it before
    return then(backend.dispatch_timed(compiled, inputs, outputs), report)
