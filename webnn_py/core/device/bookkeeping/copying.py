"""Copies between buffers for backends without their own: they read and write whole buffers through the host."""

from collections.abc import Callable

import numpy as np

from webnn_py.core.device.backend import Backend, CopyRegion, HostArray, Storage
from webnn_py.core.in_flight import done


class CopiesThroughHost:
    """Implements :class:`.Copies` by ``read`` and ``write``.

    Args:
        backend: the backend of the storages.
        count: called for each copy of bytes between host and device.
    """

    def __init__(self, backend: Backend, count: Callable[[], None]) -> None:
        self._backend = backend
        self._count = count

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
        self._count()
        return await done(self._backend.read(storage))

    async def _write(self, storage: Storage, data: HostArray) -> None:
        self._count()
        await done(self._backend.write(storage, data))
