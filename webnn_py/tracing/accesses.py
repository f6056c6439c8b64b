"""The buffers and graphs that operations of a device timeline access, from the arguments of the device's methods."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import attrs

from webnn_py.core.device.backend import Storage
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.timelines.device_timeline import DeviceOperation


@attrs.frozen(eq=False)
class Accesses:
    """What an operation accesses, as the device's own objects.

    Attributes:
        reads: the buffers that it reads.
        writes: the buffers that it writes, makes or releases.
        graph: the graph that it makes, runs, saves or releases.
    """

    reads: tuple[Storage, ...] = ()
    writes: tuple[Storage, ...] = ()
    graph: GraphHandle | None = None

    @property
    def things(self) -> tuple[Storage | GraphHandle, ...]:
        """All of them."""
        return *self.reads, *self.writes, *(() if self.graph is None else (self.graph,))


NOTHING: Final = Accesses()

_BY_KIND: Final[Mapping[str, Callable[..., Accesses]]] = {
    "create_buffer": lambda storage: Accesses(writes=(storage,)),
    "create_exportable_buffer": lambda storage: Accesses(writes=(storage,)),
    "create_constant_buffer": lambda storage, _data: Accesses(writes=(storage,)),
    "import_buffer": lambda storage, _memory: Accesses(writes=(storage,)),
    "export_to_gpu": lambda storage, *_: Accesses(reads=(storage,)),
    "return_from_gpu": lambda _device, storage, _arrival, _line: Accesses(writes=(storage,)),
    "write_buffer": lambda storage, _data, _line: Accesses(writes=(storage,)),
    "clear_buffer": lambda _device, storage, _line: Accesses(writes=(storage,)),
    "read_buffer": lambda storage, _readback: Accesses(reads=(storage,)),
    "copy_buffer": lambda _device, source, destination, _region, _line: Accesses((source,), (destination,)),
    "dispatch": lambda graph, inputs, outputs, _line: Accesses(tuple(inputs.values()), tuple(outputs.values()), graph),
    "build": lambda _graph, handle, *_rest: Accesses(graph=handle),
    "release": lambda thing: Accesses(writes=(thing,)) if isinstance(thing, Storage) else Accesses(graph=thing),
}
"""By the kind of operation: the accesses, from the arguments of the device's method."""


def _of_tool(graph: object = None, *_rest: object) -> Accesses:
    """Return the accesses of what ``context.enqueue()`` or ``add_graph()`` enqueues: the graph, if it has one."""
    return Accesses(graph=graph) if isinstance(graph, GraphHandle) else NOTHING


def accesses_of(operation: DeviceOperation) -> Accesses:
    """Return the accesses of an operation; none if it accesses neither buffers nor graphs."""
    of_arguments = _BY_KIND.get(operation.kind, _of_tool)
    return of_arguments(*operation.work.args) if isinstance(operation.work, partial) else NOTHING
