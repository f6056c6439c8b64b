"""The nodes of a compiled graph, kept so that they can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import attrs
import numpy as np
import trio

from webnn_py.device.backend import Backend, HostArray, Memory, Storage, constant_buffers
from webnn_py.graph import Constant, Graph
from webnn_py.in_flight import done
from webnn_py.saved_graphs.nodes import to_saved
from webnn_py.saved_graphs.record import SavedCode


@attrs.frozen(eq=False)
class SavableNodes:
    """A compiled graph, with the memory of the constant buffers that it reads.

    The handle of the graph holds that memory; the buffers themselves may be destroyed.
    """

    graph: Graph
    memory: Mapping[Storage, Memory]

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Return the nodes of a graph that has just been compiled."""
        return cls(graph, {s: s.memory for s in constant_buffers(graph) if s.memory is not None})

    async def written_down(self, backend: Backend, limiter: trio.CapacityLimiter) -> SavedCode:
        """Serialize the nodes and all constants."""
        contents: dict[Storage, HostArray] = {}
        for storage, memory in self.memory.items():
            same = Storage(storage.descriptor)
            same.memory = memory
            contents[storage] = await done(backend.read(same))
        write = partial(to_saved, self.graph, partial(_contents_of, contents))
        return await trio.to_thread.run_sync(write, limiter=limiter)


def _contents_of(read: Mapping[Storage, HostArray], constant: Constant) -> np.ndarray[Any, Any]:
    data = read[constant.data] if isinstance(constant.data, Storage) else constant.data
    assert isinstance(data, np.ndarray)  # noqa: S101 - the builder makes arrays
    return data
