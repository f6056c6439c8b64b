"""Graphs with named dimensions on a device: a backend's protocol for them, and the step that compiles one."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

from webnn_py.device.backend import CompiledGraph
from webnn_py.device.compiling.graph_validation import validate_graph
from webnn_py.device.device import Device, GraphHandle
from webnn_py.in_flight import then
from webnn_py.sized_graphs import DynamicGraph


@runtime_checkable
class CompilesDynamic(Protocol):
    """A backend that compiles a graph once for all sizes of its named dimensions.

    The compiled graph is dispatched like any other: the sizes are those of the inputs of a dispatch.
    """

    def compile_dynamic(self, dynamic: DynamicGraph) -> CompiledGraph | Awaitable[CompiledGraph]:
        """Make a graph of supported operators ready."""


def compile_dynamic(dynamic: DynamicGraph, handle: GraphHandle, device: Device) -> Awaitable[None] | None:
    """Compile a graph with named dimensions and put it into ``handle``.

    Raises:
        NotComputableError: the graph has a node that no device computes.
    """
    validate_graph(dynamic.graph)
    backend = device.backend
    assert isinstance(backend, CompilesDynamic)  # noqa: S101 - the script checks it before
    return then(backend.compile_dynamic(dynamic), lambda compiled: device.keep(dynamic.graph, compiled, handle))


async def compile_edition(dynamic: DynamicGraph, handle: GraphHandle, device: Device) -> None:
    """Compile a graph for larger sizes than before; dispatches report what fails."""
    try:
        pending = compile_dynamic(dynamic, handle, device)
        if pending is not None:
            await pending
    except Exception as error:  # noqa: BLE001 - a later read reports it
        handle.failure = error
