"""Copies of elements between arrays on the host and buffers of a context, in any direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import attrs
import numpy as np
import trio

from webnn_py.descriptors import unsigned_long
from webnn_py.device.backend import HostArray
from webnn_py.runtime.contexts import received
from webnn_py.script.buffer import MLBuffer
from webnn_py.script.context import MLContext


@attrs.frozen
class ElementRange:
    """Which elements are copied, in row-major order.

    Attributes:
        source_offset: the first one, in the source.
        destination_offset: the first one, in the destination.
        count: how many.
        is_whole: whether these are all elements of both.
    """

    source_offset: int
    destination_offset: int
    count: int
    is_whole: bool

    @classmethod
    def checked(
        cls, method: str, sizes: Sequence[int], source_offset: object, destination_offset: object, count: object
    ) -> Self:
        """Return a range within a source and a destination of these ``sizes``, in elements.

        Raises:
            TypeError: an argument is no integer from 0, or the range reaches beyond one of them.
        """
        given = {"source_offset": source_offset, "destination_offset": destination_offset, "count": count}
        if count is None:
            del given["count"]
        numbers = {}
        for name, value in given.items():
            try:
                numbers[name] = unsigned_long(value)
            except TypeError as error:
                raise TypeError(f"{method}(): {name} {error}") from None
        first, target = numbers["source_offset"], numbers["destination_offset"]
        if first > sizes[0]:
            raise TypeError(f"{method}(): source_offset is {first}; the source has {sizes[0]} elements")
        length = numbers.get("count", sizes[0] - first)
        for where, offset, size in (("source", first, sizes[0]), ("destination", target, sizes[1])):
            if offset + length > size:
                raise TypeError(
                    f"{method}(): {length} elements from {where}_offset {offset} on reach beyond the {where}, "
                    f"which has {size}"
                )
        return cls(first, target, length, first == target == 0 and length == sizes[0] == sizes[1])

    @property
    def overlaps(self) -> bool:
        """Return whether the ranges would overlap, were they of one tensor."""
        return abs(self.source_offset - self.destination_offset) < self.count


async def copy_elements(
    context: MLContext | None,
    source: MLBuffer | HostArray,
    destination: MLBuffer | HostArray,
    elements: ElementRange,
) -> None:
    """Copy elements; ``context`` is that of the buffers. Data copied to the host are there on return."""
    if elements.count == 0:
        await trio.lowlevel.checkpoint()
        return
    if context is None:
        assert isinstance(source, np.ndarray)  # noqa: S101 - for type checkers
        assert isinstance(destination, np.ndarray)  # noqa: S101 - checked by the caller
        copy_host(source, destination, elements)
        await trio.lowlevel.checkpoint()
    elif isinstance(source, np.ndarray):
        assert isinstance(destination, MLBuffer)  # noqa: S101 - checked by the caller
        await _upload(context, source, destination, elements)
    elif isinstance(destination, np.ndarray):
        await _download(context, source, destination, elements)
    else:
        context.copy_buffer(
            source,
            destination,
            source_offset=elements.source_offset,
            destination_offset=elements.destination_offset,
            count=elements.count,
        )
        await trio.lowlevel.checkpoint()


def copy_host(source: HostArray, destination: HostArray, elements: ElementRange) -> None:
    """Copy elements from array to array."""
    if elements.is_whole and source.shape == destination.shape:
        np.copyto(destination, source)
        return
    first, target, count = elements.source_offset, elements.destination_offset, elements.count
    destination.flat[target : target + count] = source.reshape(-1)[first : first + count]


async def _upload(context: MLContext, source: HostArray, destination: MLBuffer, elements: ElementRange) -> None:
    """To the device; part of a buffer goes through another, since only whole ones can be written."""
    if elements.is_whole:
        context.write_buffer(destination, source.reshape(destination.shape))
        await trio.lowlevel.checkpoint()
        return
    part = await _part(context, destination, elements)
    first = elements.source_offset
    context.write_buffer(part, source.reshape(-1)[first : first + elements.count])
    context.copy_buffer(part, destination, destination_offset=elements.destination_offset)
    part.destroy()


async def _download(context: MLContext, source: MLBuffer, destination: HostArray, elements: ElementRange) -> None:
    """Copy from the device, also a part of a buffer."""
    if elements.is_whole:
        data = await context.read_buffer(source)
        np.copyto(destination, data.reshape(destination.shape))
        return
    part = await _part(context, source, elements)
    context.copy_buffer(source, part, source_offset=elements.source_offset, count=elements.count)
    try:
        data = await context.read_buffer(part)
    finally:
        part.destroy()
    target = elements.destination_offset
    destination.flat[target : target + elements.count] = data


async def _part(context: MLContext, like: MLBuffer, elements: ElementRange) -> MLBuffer:
    return await received(
        context.create_buffer(data_type=like.data_type, shape=[elements.count], readable=True, writable=True)
    )
