"""The device's steps of saving and loading a graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from webnn_py.device.backend import Backend, SavesCode
from webnn_py.device.device import Device, GraphHandle
from webnn_py.graph import Graph
from webnn_py.in_flight import done
from webnn_py.saved_graphs.nodes import from_saved
from webnn_py.saved_graphs.record import SavedCode


def code_identity(backend: Backend) -> str:
    """Return the identity of saved graphs: a backend loads only graphs that it has saved itself."""
    return f"{backend.info.name}: {backend.code_identity if isinstance(backend, SavesCode) else 'nodes'}"


async def save_graph(device: Device, handle: GraphHandle, put: Callable[[SavedCode], Awaitable[None]]) -> None:
    """Serialize a compiled graph, and ``put`` it somewhere."""
    backend = device.backend
    if isinstance(backend, SavesCode):
        code = await done(backend.save_code(handle.compiled))
    else:
        assert handle.nodes is not None  # noqa: S101 - kept if graphs may be saved
        code = await handle.nodes.written_down(backend, device.limiter)
    await put(code)


async def load_graph(device: Device, handle: GraphHandle, take: Callable[[], Awaitable[SavedCode]]) -> None:
    """Put a serialized graph into ``handle``.

    Raises:
        UnusableFileError: the graph is not in this device's format.
    """
    code, backend = await take(), device.backend
    if isinstance(backend, SavesCode):
        device.keep(Graph({}, {}, ()), await done(backend.load_code(code)), handle)
        return
    await done(device.compile(await trio.to_thread.run_sync(from_saved, code, limiter=device.limiter), handle))
