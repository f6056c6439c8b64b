"""Protocols for the members of ``ML`` and ``MLContext`` that other objects use.

With them a buffer or a graph does not import the module of the class that makes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from webnn_py.core.api.observers import Observers
from webnn_py.core.api.records import MLPowerPreference
from webnn_py.core.api.release_queue import ReleaseQueue
from webnn_py.core.api.weak_set import OrderedWeakSet
from webnn_py.core.device.backend import BackendInfo
from webnn_py.core.device.device import Device
from webnn_py.core.observer import ObservedContext
from webnn_py.core.timelines.device_timeline import DeviceTimeline, Work
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.core.timelines.script_timeline import ScriptTimeline
from webnn_py.core.trio_run import TrioRun

if TYPE_CHECKING:
    from webnn_py.core.extension import Extension


T = TypeVar("T")


class CallReceiver(Protocol):
    """An object whose refusals are reported: an ``ML`` or an ``MLContext``."""

    _observers: Observers
    _trio_run: TrioRun

    @property
    def _observed(self) -> ObservedContext | None:
        """The context; None for an ``ML``."""


class MLInterface(CallReceiver, Protocol):
    """The members of ``ML`` that its contexts use."""

    script_timeline: ScriptTimeline
    _experimental: frozenset[str]
    _extensions: tuple[Extension, ...]

    def _check_allowed(self, method: str) -> None: ...


class ContextInterface(CallReceiver, Protocol):
    """The members of ``MLContext`` that its buffers and graphs use."""

    @property
    def label(self) -> str:
        """The name that the context was given."""

    @property
    def backend(self) -> BackendInfo:
        """The backend, adapter and driver that the context runs on."""

    @property
    def device(self) -> Device:
        """The device, for tools and extensions."""

    @property
    def device_timeline(self) -> DeviceTimeline:
        """The queue of device operations."""

    @property
    def experimental(self) -> frozenset[str]:
        """The names of the proposals that ``open_ml()`` was asked for."""

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """Those of ``open_ml()``."""

    @property
    def power_preference(self) -> MLPowerPreference:
        """The option that the context was created with."""

    def enqueue(  # noqa: PLR0913 - an operation's
        self,
        kind: str,
        work: Callable[[], T | Awaitable[T]],
        *,
        graph: Any = None,
        buffer: Any = None,
        failed: Callable[[str, Exception], Exception] = ...,
        held_bytes: int = 0,
        abortable: bool = True,
    ) -> MLPromise[T]:
        """Enqueue an operation of a tool or an extension on the device timeline."""

    _label: str
    _power_preference: MLPowerPreference
    _ml: MLInterface
    _experimental: frozenset[str]
    _device: Device
    _timeline: DeviceTimeline
    _buffers: OrderedWeakSet[Any]
    _graphs: OrderedWeakSet[Any]
    _releases: ReleaseQueue
    _lost_message: str | None

    @property
    def _loss_text(self) -> str: ...

    def _check_not_lost(self, method: str) -> None: ...

    def _enqueue(  # noqa: PLR0913 - an operation's
        self,
        method: str,
        work: Work,
        result: Callable[[], T],
        *,
        otherwise: Callable[[], None] = ...,
        held_bytes: int = 0,
        depth: int = 2,
    ) -> MLPromise[T]: ...
