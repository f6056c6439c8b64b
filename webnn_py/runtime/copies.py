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
    if context is None:
        assert isinstance(source, np.ndarray)  # noqa: S101 - for type checkers
        assert isinstance(destination, np.ndarray)  # noqa: S101 - checked by the caller
        _store(destination, elements.of_destination, source.reshape(-1)[elements.of_source])
    elif isinstance(source, np.ndarray):
        assert isinstance(destination, MLBuffer)  # noqa: S101 - checked by the caller
        if elements.count:
            await _upload(context, source.reshape(-1)[elements.of_source], destination, elements)
    elif isinstance(destination, np.ndarray):
        if elements.count:
            data = await _downloaded(context, source, elements)
            _store(destination, elements.of_destination, data.reshape(-1))
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


def _store(destination: HostArray, where: slice, values: HostArray) -> None:
    flat = destination.reshape(-1) if destination.flags.c_contiguous else destination.flat
    flat[where] = values


async def _upload(context: MLContext, values: HostArray, destination: MLBuffer, elements: CopyRegion) -> None:
    """Copy to the device; part of a buffer goes through another, since only whole ones can be written."""
    if elements.count == math.prod(destination.shape):
        context.write_buffer(destination, values.reshape(destination.shape))
        return
    part = await created(context, destination.data_type, [elements.count])
    context.write_buffer(part, values)
    copy_buffer(context, part, destination, destination_offset=elements.destination_offset)
    part.destroy()


async def _downloaded(context: MLContext, source: MLBuffer, elements: CopyRegion) -> HostArray:
    """Copy from the device, also a part of a buffer."""
    if elements.count == math.prod(source.shape):
        return await context.read_buffer(source)
    part = await created(context, source.data_type, [elements.count])
    copy_buffer(context, source, part, source_offset=elements.source_offset, count=elements.count)
    try:
        return await context.read_buffer(part)
    finally:
        part.destroy()
