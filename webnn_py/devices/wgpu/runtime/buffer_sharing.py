"""Buffers that cross the border: a user's GPU buffer under an ``MLBuffer``, and an ``MLBuffer``'s lent to a user."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, cast

import trio
import wgpu
from trio.lowlevel import enable_ki_protection

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray
from webnn_py.core.handle import forgotten_await
from webnn_py.core.message_text import shown
from webnn_py.core.trio_run import TrioRun
from webnn_py.devices.wgpu.engines import engine_of, is_device
from webnn_py.devices.wgpu.engines.engine import Engine
from webnn_py.devices.wgpu.records.buffer import padded
from webnn_py.devices.wgpu.runtime.device_loss import is_lost
from webnn_py.devices.wgpu.runtime.memory import STORAGE


class LentBuffer:
    """The memory of an ``MLBuffer``, to be used like any ``wgpu.GPUBuffer`` until it is given back.

    ``destroy()`` gives it back; submit what uses it before. Afterwards it can be used no more. One that is collected as
    garbage is given back, too, with a ``ResourceWarning``.
    """

    _come_back: Callable[[], None] | None = None

    def _begin(self, come_back: Callable[[], None], is_out: Callable[[], bool]) -> None:
        self._come_back = come_back
        self._is_out = is_out
        self._trio_run = TrioRun("export_to_gpu()")
        self._token = trio.lowlevel.current_trio_token()

    @enable_ki_protection
    def destroy(self) -> None:
        """Give the buffer back: WebNN work that waits for it goes on."""
        self._trio_run.check("destroy()")
        come_back, self._come_back = self._come_back, None
        if come_back is not None:
            lent = cast("wgpu.GPUBuffer", self)
            if lent.map_state != "unmapped":
                lent.unmap()
            Engine.let_go(lent)
            come_back()

    def __del__(self) -> None:
        super().__del__()  # type: ignore[misc]
        if self._come_back is not None and self._is_out():
            with suppress(trio.RunFinishedError):  # the run is over, and nothing waits
                self._token.run_sync_soon(self._come_back)  # a finaliser may run in any thread
            # Last, since a warning may be made an error.
            warnings.warn(
                f"{cast('wgpu.GPUBuffer', self).label} was never given back; destroy() does that",
                ResourceWarning,
                1,
                source=self,
            )


@cache
def _lent_kind(kind: Any) -> type[wgpu.GPUBuffer]:
    return type("LentBuffer", (LentBuffer, kind), {"__doc__": LentBuffer.__doc__})


def lent(buffer: wgpu.GPUBuffer, come_back: Callable[[], None], is_out: Callable[[], bool]) -> wgpu.GPUBuffer:
    """Return the memory of a buffer as a :class:`LentBuffer`.

    Args:
        buffer: the memory.
        come_back: is called, in the trio thread, when it is given back.
        is_out: whether anything waits for that, which the loss of the context ends.
    """
    engine, kind = engine_of(Engine.device_of(buffer)), cast("Any", type(buffer))
    given: Any = engine.again(_lent_kind(kind), buffer, f"{buffer.label} (lent)")
    given._begin(come_back, is_out)
    return cast("wgpu.GPUBuffer", given)


def checked_device(value: object) -> wgpu.GPUDevice | None:
    """Return a user's GPU device; None if it is lost.

    Raises:
        TypeError: it is none.
    """
    if not is_device(value):
        raise TypeError(f"gpu_device is {shown(value)}; it must be a wgpu.GPUDevice{forgotten_await(value)}")
    device = cast("wgpu.GPUDevice", value)
    return None if is_lost(device) else device


def lend_copy(
    device: wgpu.GPUDevice,
    contents: HostArray | None,
    usage: int,
    come_back: Callable[[bytes | Exception], None],
    is_out: Callable[[], bool],
) -> wgpu.GPUBuffer:
    """Make a GPU buffer with a copy of contents.

    Args:
        device: the GPU device that gets it.
        contents: the bytes, which are padded with zeros to a multiple of four.
        usage: its usages; what copying takes is added.
        come_back: is called, in the trio thread, with its bytes when it is given back, or with the reason why there
            are none.
        is_out: whether anything waits for that.
    """
    assert contents is not None  # noqa: S101 - they have been read
    count, (to_read, to_write) = contents.nbytes, (wgpu.BufferUsage.MAP_READ, wgpu.BufferUsage.MAP_WRITE)
    added = 0 if usage & (to_read | to_write) else wgpu.BufferUsage.COPY_DST
    if not usage & to_read:
        added |= wgpu.BufferUsage.COPY_SRC
    padded_bytes = contents.tobytes().ljust(-(-count // 4) * 4, b"\0")
    buffer = device.create_buffer_with_data(label="MLBuffer", data=padded_bytes, usage=usage | added)

    def give_back() -> None:
        try:
            if usage & to_read:
                buffer.map_sync(wgpu.MapMode.READ)
                given: bytes | Exception = bytes(buffer.read_mapped())[:count]
            else:
                given = bytes(device.queue.read_buffer(buffer))[:count]
        except Exception as error:  # noqa: BLE001 - a driver may fail in any way; the next read reports it
            given = RuntimeError("the GPUDevice is lost") if is_lost(device) else error
        buffer.destroy()
        come_back(given)

    return lent(buffer, give_back, is_out)


def check_foreign(value: object, descriptor: MLOperandDescriptor, device: wgpu.GPUDevice) -> wgpu.GPUBuffer:
    """Return a user's buffer that can stand under an ``MLBuffer``.

    Raises:
        TypeError: it is no buffer, an ``MLBuffer``'s, another device's, too small, or lacks a usage.
    """
    if not issubclass(type(value), engine_of(device).api.GPUBuffer):
        raise TypeError(f"gpu_buffer is {shown(value)}; it must be a wgpu.GPUBuffer{forgotten_await(value)}")
    if isinstance(value, LentBuffer):
        raise TypeError("gpu_buffer is an MLBuffer's own memory, which export_to_gpu() lent; use that MLBuffer")
    buffer = cast("wgpu.GPUBuffer", value)
    if Engine.device_of(buffer) is not device:
        raise TypeError("gpu_buffer belongs to another device than the context's")
    needed = padded(descriptor.byte_length)
    if buffer.size < needed:
        raise TypeError(
            f"gpu_buffer has {buffer.size} bytes; for {descriptor} it must have at least {needed}, since kernels "
            "write whole groups of elements"
        )
    if buffer.usage & STORAGE != STORAGE:
        raise TypeError("gpu_buffer lacks a usage; it must have STORAGE, COPY_SRC and COPY_DST")
    return buffer


def check_usable(buffer: wgpu.GPUBuffer, device: wgpu.GPUDevice, layout: wgpu.GPUBindGroupLayout) -> None:
    """Refuse a user's buffer with which a submission would end the process.

    Args:
        buffer: the user's.
        device: of both.
        layout: of bind groups with one read-only buffer.

    Raises:
        wgpu.GPUError: it is destroyed or mapped.
    """
    if buffer.map_state != "unmapped":
        raise wgpu.GPUValidationError("the imported GPU buffer is mapped; it has to be unmapped before")
    if engine_of(device).is_destroyed(buffer, layout):
        raise wgpu.GPUValidationError("the imported GPU buffer has been destroyed")
