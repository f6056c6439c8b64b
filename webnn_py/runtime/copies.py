"""Copies of elements between arrays on the host and buffers of a context, in any direction."""

import math

import numpy as np
import trio

from webnn_py.buffer_copies import copy_buffer
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.context import MLContext
from webnn_py.core.device.backend import HostArray
from webnn_py.devices.copying import CopyRegion
from webnn_py.runtime.contexts import created


async def copy_elements(
    context: MLContext | None,
    source: MLBuffer | HostArray,
    destination: MLBuffer | HostArray,
    elements: CopyRegion,
) -> None:
    """Copy elements; ``context`` is that of the buffers. Data copied to the host are there on return."""
    if elements.count == 0:
        await trio.lowlevel.checkpoint()
        return
    if context is None:
        assert isinstance(source, np.ndarray)  # noqa: S101 - for type checkers
        assert isinstance(destination, np.ndarray)  # noqa: S101 - checked by the caller
        _copy_host(source, destination, elements)
        await trio.lowlevel.checkpoint()
    elif isinstance(source, np.ndarray):
        assert isinstance(destination, MLBuffer)  # noqa: S101 - checked by the caller
        await _upload(context, source, destination, elements)
    elif isinstance(destination, np.ndarray):
        await _download(context, source, destination, elements)
    else:
        copy_buffer(
            context,
            source,
            destination,
            source_offset=elements.source_offset,
            destination_offset=elements.destination_offset,
            count=elements.count,
        )
        await trio.lowlevel.checkpoint()


def _copy_host(source: HostArray, destination: HostArray, elements: CopyRegion) -> None:
    if source.shape == destination.shape and _is_whole(source, destination, elements):
        np.copyto(destination, source)
    else:
        destination.flat[elements.of_destination] = source.reshape(-1)[elements.of_source]


async def _upload(context: MLContext, source: HostArray, destination: MLBuffer, elements: CopyRegion) -> None:
    """To the device; part of a buffer goes through another, since only whole ones can be written."""
    if _is_whole(source, destination, elements):
        context.write_buffer(destination, source.reshape(destination.shape))
        await trio.lowlevel.checkpoint()
        return
    part = await created(context, destination.data_type, [elements.count])
    context.write_buffer(part, source.reshape(-1)[elements.of_source])
    copy_buffer(context, part, destination, destination_offset=elements.destination_offset)
    part.destroy()


async def _download(context: MLContext, source: MLBuffer, destination: HostArray, elements: CopyRegion) -> None:
    """Copy from the device, also a part of a buffer."""
    if _is_whole(source, destination, elements):
        data = await context.read_buffer(source)
        np.copyto(destination, data.reshape(destination.shape))
        return
    part = await created(context, source.data_type, [elements.count])
    copy_buffer(context, source, part, source_offset=elements.source_offset, count=elements.count)
    try:
        data = await context.read_buffer(part)
    finally:
        part.destroy()
    destination.flat[elements.of_destination] = data


def _is_whole(source: MLBuffer | HostArray, destination: MLBuffer | HostArray, elements: CopyRegion) -> bool:
    return math.prod(source.shape) == math.prod(destination.shape) == elements.count
