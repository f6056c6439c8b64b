"""Graphs and memory that live as long as one operation of the device timeline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.device.device import Device, GraphHandle
from webnn_py.core.graph import Graph
from webnn_py.core.in_flight import done

Descriptors = Mapping[str, MLOperandDescriptor]


@asynccontextmanager
async def compiled(device: Device, graph: Graph) -> AsyncIterator[GraphHandle]:
    """Compile a graph, and release it at the end of the context."""
    handle = GraphHandle()
    try:
        await done(device.compile(graph, handle))
        yield handle
    finally:
        await done(device.release_graph(handle))


@asynccontextmanager
async def storages(
    device: Device, given: Mapping[str, HostArray], made: Descriptors
) -> AsyncIterator[tuple[dict[str, Storage], dict[str, Storage]]]:
    """Allocate memory with these contents, and memory for the outputs; free it at the end of the context."""
    inputs = {name: Storage(descriptor_of(array)) for name, array in given.items()}
    outputs = {name: Storage(descriptor) for name, descriptor in made.items()}
    try:
        for storage in (*inputs.values(), *outputs.values()):
            await done(device.allocate(storage))
        for name, storage in inputs.items():
            await done(device.backend.write(storage, given[name]))
        yield inputs, outputs
    finally:
        for storage in (*inputs.values(), *outputs.values()):
            await done(device.release(storage))


def descriptor_of(array: HostArray) -> MLOperandDescriptor:
    """Return the descriptor of an array."""
    return MLOperandDescriptor(cast("MLOperandDataType", array.dtype.name), array.shape)
