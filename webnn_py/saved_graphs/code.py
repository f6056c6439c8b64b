"""What devices save of a graph: their own code, or its nodes, which they compile again."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import trio

from webnn_py.core.device.backend import Backend, HostArray, Storage, constant_buffers
from webnn_py.core.device.compiling.expansion import expand
from webnn_py.core.device.device import Device, GraphHandle
from webnn_py.core.graph import Constant, Graph
from webnn_py.core.in_flight import done
from webnn_py.devices.saved_code import SavedCode, SavesCode
from webnn_py.extensions.subgraph_calls import without_calls
from webnn_py.saved_graphs.nodes import from_saved, to_saved


def code_identity(backend: Backend) -> str:
    """Return the identity of saved graphs: a backend loads only graphs that it has saved itself."""
    return f"{backend.info.name}: {backend.code_identity if isinstance(backend, SavesCode) else 'nodes'}"


async def code_of(device: Device, handle: GraphHandle, source: Graph | None) -> SavedCode:
    """Serialize a compiled graph; devices without a form of their own need its source."""
    backend = device.backend
    if isinstance(backend, SavesCode):
        return await done(backend.save_code(handle.compiled))
    assert source is not None  # noqa: S101 - the caller checks it
    graph = await without_calls(source, device, [])
    graph = await trio.to_thread.run_sync(expand, graph, backend.capabilities, limiter=device.limiter)
    contents: dict[Storage, HostArray] = {}
    for storage in constant_buffers(graph):
        held = Storage(storage.descriptor)  # the buffer itself may be destroyed
        held.memory = handle.constants[storage]
        contents[storage] = await done(backend.read(held))

    def contents_of(constant: Constant) -> np.ndarray[Any, Any]:
        data = contents[constant.data] if isinstance(constant.data, Storage) else constant.data
        assert isinstance(data, np.ndarray)  # noqa: S101 - the builder makes arrays
        return data

    return await trio.to_thread.run_sync(partial(to_saved, graph, contents_of), limiter=device.limiter)


async def load_code(device: Device, handle: GraphHandle, code: SavedCode) -> None:
    """Put a serialized graph into ``handle``.

    Raises:
        UnusableFileError: the graph is not in this device's format.
    """
    backend = device.backend
    if isinstance(backend, SavesCode):
        device.keep(Graph({}, {}, ()), await done(backend.load_code(code)), handle)
        return
    await done(device.compile(await trio.to_thread.run_sync(from_saved, code, limiter=device.limiter), handle))
