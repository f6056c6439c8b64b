"""A device's memory: buffers, and the staging buffers through which the host reads them."""

from __future__ import annotations

from typing import Final

import wgpu

from webnn_py.devices.wgpu.records.buffer import padded

STORAGE: Final = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
STAGING: Final = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST

KEPT_BYTES: Final = 256 * 2**20
"""The most bytes of idle staging buffers that are kept for the next read."""


class ReadbackPool:
    """Mappable buffers, kept for the next read of about their size."""

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._device = device
        self._idle: dict[int, list[wgpu.GPUBuffer]] = {}
        self._idle_bytes = 0

    def take(self, byte_length: int) -> wgpu.GPUBuffer:
        """Return a buffer of at least ``byte_length`` bytes that is not in use."""
        size = max(256, 1 << (padded(byte_length) - 1).bit_length())
        if padded(byte_length) > 2**24:
            size = padded(byte_length)  # powers of two would waste too much
        idle = self._idle.get(size)
        if idle:
            self._idle_bytes -= size
            return idle.pop()
        return self._device.create_buffer(label="staging", size=size, usage=STAGING)

    def give_back(self, buffer: wgpu.GPUBuffer) -> None:
        """Keep a buffer that is unmapped again, or drop it when enough are kept."""
        if self._idle_bytes + buffer.size > KEPT_BYTES:
            buffer.destroy()
            return
        self._idle.setdefault(buffer.size, []).append(buffer)
        self._idle_bytes += buffer.size

    def close(self) -> None:
        """Drop every idle buffer."""
        for buffers in self._idle.values():
            for buffer in buffers:
                buffer.destroy()
        self._idle = {}
        self._idle_bytes = 0
