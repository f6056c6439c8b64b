"""The memory of a context by the labels of its buffers and graphs: :func:`memory_by_label`."""

from collections import defaultdict

import attrs

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.device.backend import Memory
from webnn_py.core.device.device import GraphHandle


@attrs.frozen
class LabelledMemory:
    """The memory that the buffers and graphs with one label take on a device.

    Attributes:
        label: the label; "" for buffers and graphs without one.
        live_buffers: the number of buffers with memory on the device.
        live_graphs: the number of compiled graphs.
        live_bytes: the bytes of both. Shared memory is counted once: that of a constant buffer under its label, also
            when only graphs still hold it, and memory that graphs share with the first of them.
    """

    label: str
    live_buffers: int
    live_graphs: int
    live_bytes: int


@attrs.define
class _Counts:
    buffers: int = 0
    graphs: int = 0
    byte_length: int = 0


def memory_by_label(context: MLContext) -> tuple[LabelledMemory, ...]:
    """Return the memory under each label, from the most bytes, of what is not destroyed.

    Reads in flight, and what is destroyed and waits for its release, are in ``context.statistics()`` alone.

    Args:
        context: the context; nothing is left of a lost one.
    """
    found: defaultdict[str, _Counts] = defaultdict(_Counts)
    counted: set[Memory] = set()

    def count(label: str, memory: Memory) -> None:
        if memory not in counted:
            counted.add(memory)
            found[label].byte_length += memory.byte_length

    buffers = [each for each in context.resources if isinstance(each, MLBuffer)]
    graphs = [handle for each in context.resources if isinstance(each, MLGraph) for handle in _handles(each)]
    for buffer in buffers:
        if buffer.storage.memory is not None:
            found[buffer.label].buffers += 1
            count(buffer.label, buffer.storage.memory)
    for handle in graphs:
        if handle.compiled is not None:
            found[handle.label].graphs += 1
            found[handle.label].byte_length += handle.compiled.byte_length
            for storage, memory in handle.constants.items():
                count(storage.label, memory)
    for handle in graphs:
        for memory in handle.captured:
            count(handle.label, memory)
    records = [LabelledMemory(label, each.buffers, each.graphs, each.byte_length) for label, each in found.items()]
    return tuple(sorted(records, key=lambda record: (-record.live_bytes, record.label)))


def _handles(graph: MLGraph) -> list[GraphHandle]:
    return [graph.handle, *(handle for each in graph.attached for handle in each.handles())]
