"""Copies of elements between buffers of a device, which it does itself or through the host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, cast, runtime_checkable

import attrs
import numpy as np

from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.device.bookkeeping.lent_memory import after_return
from webnn_py.core.device.device import Device
from webnn_py.core.in_flight import done
from webnn_py.core.unreported_errors import Line


@attrs.frozen
class CopyRegion:
    """The elements of a buffer that are copied, and their place in another one, both in row-major order.

    Attributes:
        source_offset: the first element that is read.
        destination_offset: the first element that is written.
        count: the number of elements.
    """

    source_offset: int
    destination_offset: int
    count: int

    @property
    def of_source(self) -> slice:
        """The elements to read."""
        return slice(self.source_offset, self.source_offset + self.count)

    @property
    def of_destination(self) -> slice:
        """The elements to write."""
        return slice(self.destination_offset, self.destination_offset + self.count)


@runtime_checkable
class Copies(Protocol):
    """A backend that copies between buffers and clears them on the device; other backends copy through the host."""

    def copy(self, source: Storage, destination: Storage, region: CopyRegion) -> Awaitable[None] | None:
        """Copy elements between two storages of one data type, or within one, where the ranges do not overlap."""

    def clear(self, storage: Storage) -> Awaitable[None] | None:
        """Set all bytes to zero."""


class CopiesThroughHost:
    """Implements :class:`.Copies` by ``read`` and ``write`` of a device's backend, which count as host copies."""

    def __init__(self, device: Device) -> None:
        self._device = device

    async def copy(self, source: Storage, destination: Storage, region: CopyRegion) -> None:
        """Read both buffers and write the destination; read only the source if it overwrites all of the destination."""
        taken = (await self._read(source)).reshape(-1)[region.of_source]
        shape = destination.descriptor.shape
        if region.count == destination.descriptor.element_count:
            await self._write(destination, taken.copy().reshape(shape))
            return
        merged = (await self._read(destination)).reshape(-1)
        merged[region.of_destination] = taken
        await self._write(destination, merged.reshape(shape))

    async def clear(self, storage: Storage) -> None:
        """Write zeros."""
        await self._write(storage, np.zeros(storage.descriptor.shape, storage.descriptor.data_type))

    async def _read(self, storage: Storage) -> HostArray:
        self._device.host_copies += 1
        return await done(self._device.backend.read(storage))

    async def _write(self, storage: Storage, data: HostArray) -> None:
        self._device.host_copies += 1
        await done(self._device.backend.write(storage, data))


def copies_of(device: Device) -> Copies:
    """Return what copies on a device: its backend, or what goes through the host."""
    backend = device.backend
    # A check for the protocol takes ten times as long.
    return cast("Copies", backend) if hasattr(backend, "clear") else CopiesThroughHost(device)


def copy(
    device: Device, source: Storage, destination: Storage, region: CopyRegion, line: Line | None = None
) -> Awaitable[None] | None:
    """Copy elements; a failure, or a marked source, marks ``destination``.

    A mark of ``destination`` stays unless all of it is overwritten.
    """
    lent = [storage for storage in (source, destination) if storage.lent is not None]
    if lent:
        return after_return(lent, lambda: copy(device, source, destination, region, line))
    if source.failure is not None:
        why = f"the source of a copy_buffer() holds no data, because {source.failure}"
        destination.failure = source.failure.follow(why)
        return None
    is_whole = region.count == destination.descriptor.element_count
    step = partial(copies_of(device).copy, source, destination, region)
    return _write(device, destination, "copy_buffer()", line, step, is_whole=is_whole)


def clear(device: Device, storage: Storage, line: Line | None = None) -> Awaitable[None] | None:
    """Set all bytes to zero; a failure marks ``storage``."""
    if storage.lent is not None:
        return after_return([storage], lambda: clear(device, storage, line))
    step = partial(copies_of(device).clear, storage)
    return _write(device, storage, "clear_buffer()", line, step, is_whole=True)


def _write(
    device: Device,
    storage: Storage,
    method: str,
    line: Line | None,
    step: Callable[[], Awaitable[None] | None],
    *,
    is_whole: bool,
) -> Awaitable[None] | None:
    """Take a step that writes ``storage``: a failure marks it; success clears its mark if the step ``is_whole``."""
    try:
        pending = step()
    except Exception as error:  # noqa: BLE001 - a later read reports it
        device.fail([storage], method, error, line)
        return None
    if pending is not None:
        return _finish(device, storage, pending, method, line, is_whole=is_whole)
    if is_whole:
        storage.failure = None
    return None


async def _finish(
    device: Device, storage: Storage, pending: Awaitable[None], method: str, line: Line | None, *, is_whole: bool
) -> None:
    try:
        await pending
    except Exception as error:  # noqa: BLE001 - a later read reports it
        device.fail([storage], method, error, line)
    else:
        if is_whole:
            storage.failure = None
