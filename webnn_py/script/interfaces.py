"""Protocols for the members of ``ML`` and ``MLContext`` that other objects use.

With them a buffer or a graph does not import the module of the class that makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.backend import BackendInfo
from webnn_py.device.device import Device, GraphHandle
from webnn_py.errors import InvalidStateError
from webnn_py.script.browser_rules import BrowserRules
from webnn_py.script.release_queue import ReleaseQueue
from webnn_py.script.weak_set import OrderedWeakSet
from webnn_py.timelines.device_timeline import DeviceTimeline
from webnn_py.timelines.promise import MLPromise
from webnn_py.timelines.script_timeline import ScriptTimeline
from webnn_py.tracing.instruments import Instruments
from webnn_py.tracing.operation import TracedContext
from webnn_py.trio_run import TrioRun

if TYPE_CHECKING:
    from webnn_py.saved_graphs.folder import GraphFolder


class CallReceiver(Protocol):
    """An object whose methods are traced when they refuse a call: an ``ML`` or an ``MLContext``."""

    @property
    def _instruments(self) -> Instruments: ...

    @property
    def _trio_run(self) -> TrioRun: ...

    @property
    def _traced(self) -> TracedContext | None:
        """The context; None for an ``ML``."""


class MLInterface(CallReceiver, Protocol):
    """The members of ``ML`` that its contexts use."""

    @property
    def script_timeline(self) -> ScriptTimeline:
        """The queue of tasks that settle promises."""

    @property
    def _experimental(self) -> frozenset[str]: ...

    @property
    def _graph_folder(self) -> GraphFolder | None: ...

    def _check_allowed(self, method: str) -> None: ...


class ContextInterface(CallReceiver, Protocol):
    """The members of ``MLContext`` that its buffers and graphs use."""

    @property
    def backend(self) -> BackendInfo:
        """The backend, adapter and driver that the context runs on."""

    @property
    def _label(self) -> str: ...

    @property
    def _ml(self) -> MLInterface: ...

    @property
    def _experimental(self) -> frozenset[str]: ...

    @property
    def _device(self) -> Device: ...

    @property
    def _timeline(self) -> DeviceTimeline: ...

    @property
    def _buffers(self) -> OrderedWeakSet[Any]: ...

    @property
    def _graphs(self) -> OrderedWeakSet[Any]: ...

    @property
    def _releases(self) -> ReleaseQueue: ...

    @property
    def _browser(self) -> BrowserRules | None: ...

    @property
    def _lost_message(self) -> str | None: ...

    @property
    def _loss_text(self) -> str: ...

    def _check_not_lost(self, method: str) -> None: ...

    def _lost_error(self, method: str) -> InvalidStateError: ...

    def _abort(self, promise: MLPromise[Any], method: str) -> None: ...


class GraphInterface(Protocol):
    """The members of ``MLGraph`` that profiling uses."""

    input_descriptors: Mapping[str, MLOperandDescriptor]
    output_descriptors: Mapping[str, MLOperandDescriptor]

    @property
    def _context(self) -> ContextInterface: ...

    @property
    def _destroyed(self) -> bool: ...

    @property
    def _handle(self) -> GraphHandle: ...
