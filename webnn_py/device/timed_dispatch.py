"""Dispatches that report the durations of their kernels."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

from webnn_py.device.backend import Backend, KernelTiming, Storage, TimesKernels
from webnn_py.in_flight import InFlight

Report = Callable[[Sequence[KernelTiming]], None]


def dispatch_timed(
    backend: Backend, report: Report, compiled: Any, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]
) -> Awaitable[None] | None:
    """Run a graph on a backend that times kernels, and report the timings when the kernels have run."""
    assert isinstance(backend, TimesKernels)  # noqa: S101 - the watcher checks it before
    timings = backend.dispatch_timed(compiled, inputs, outputs)
    if not isawaitable(timings):
        report(timings)
        return None
    reporting = _report_later(timings, report)
    return InFlight(reporting) if isinstance(timings, InFlight) else reporting


async def _report_later(timings: Awaitable[list[KernelTiming]], report: Report) -> None:
    report(await timings)
