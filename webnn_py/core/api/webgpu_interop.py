"""The proposal "webgpu-interop": buffers that a ``GPUDevice`` gets as GPU buffers, and gives back.

See docs/proposals/webgpu_interop.md. Nothing here is used unless ``open_ml(experimental={"webgpu-interop"})`` asks for
it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from webnn_py.core.api.argument_checks import check_buffer
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.buffer_source import host_copy
from webnn_py.core.api.interfaces import ContextInterface
from webnn_py.core.descriptors import converted, unsigned_long
from webnn_py.core.device.bookkeeping.exported_memory import Arrival
from webnn_py.core.device.device import Readback
from webnn_py.core.device.registry import gpu_sharing
from webnn_py.core.errors import InvalidStateError
from webnn_py.core.in_flight import then
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.core.unreported_errors import calling_line

if TYPE_CHECKING:
    from collections.abc import Awaitable

    import wgpu

    from webnn_py.core.device.backend import HostArray, Storage

_MAP_READ, _MAP_WRITE, _COPY_SRC, _COPY_DST, _STORAGE = 0x1, 0x2, 0x4, 0x8, 0x80

DEFAULT_USAGE: Final = _STORAGE | _COPY_SRC | _COPY_DST
"""The usages of GPU buffers by default."""

_ALL_USAGES: Final = 0x3FF


@attrs.frozen(eq=False)
class Exports:
    """How a buffer is exported.

    Attributes:
        usage: the usages of its GPU buffers, WebGPU's flags.
        gpu_device: the ``wgpu.GPUDevice`` that gets them; None where the device is a script's.
    """

    usage: int
    gpu_device: Any = None


def usage_flags(value: object) -> int:
    """Convert the usages of an exported buffer by WebGPU's rules: each usage for mapping allows one other.

    Raises:
        TypeError: they are no flags of ``GPUBufferUsage``, or WebGPU does not allow the combination.
    """
    usage = unsigned_long(value)
    if usage == 0 or usage & ~_ALL_USAGES:
        raise TypeError(f"is {usage:#x}; it must be flags of GPUBufferUsage")
    for flag, other, allowed in (
        (_MAP_READ, _COPY_DST, "MAP_READ may be combined with COPY_DST"),
        (_MAP_WRITE, _COPY_SRC, "MAP_WRITE may be combined with COPY_SRC"),
    ):
        if usage & flag and usage & ~(flag | other):
            raise TypeError(f"is {usage:#x}; {allowed} only")
    return usage


def check_exportable(context: ContextInterface, buffer: MLBuffer) -> None:
    """Refuse a buffer that cannot be exported.

    Raises:
        TypeError: it is no buffer of the context's, destroyed, exported already, or not exportable.
    """
    check_buffer(context, "export_to_gpu", buffer)
    if buffer._exports is None:
        raise TypeError(
            f"export_to_gpu(): {buffer!r} is not exportable; create_exportable_buffer() makes buffers that are"
        )


# --- a copy of a buffer on another device ------------------------------------------------------------------------


def begin_copy(context: ContextInterface, buffer: MLBuffer) -> MLPromise[HostArray | None]:
    """Export a buffer to a device that is not this process's.

    Returns:
        A promise of its contents, as they are when everything enqueued before has run. Rejected with ``UnknownError``
        when the buffer holds no data, and ``InvalidStateError`` when the context is lost.

    Raises:
        TypeError: the buffer cannot be exported.
    """
    check_exportable(context, buffer)
    buffer._exported = True
    readback = Readback(context._device)
    work = partial(context._device.read, buffer._storage, readback, "export_to_gpu()")
    return context._enqueue("export_to_gpu", work, readback.take)


def end_copy(buffer: MLBuffer) -> Arrival | None:
    """End an export, with contents that are still to come: what is enqueued from now on waits for them.

    Returns:
        The arrival that gets the contents, or the reason why there are none; None for a destroyed buffer.
    """
    buffer._exported = False
    if buffer._destroyed:
        return None
    context, arrival = buffer._context, Arrival(buffer._descriptor)
    work = partial(context._device.take_back, buffer._storage, arrival, calling_line())
    context._timeline.enqueue(DeviceOperation("return_from_gpu", work))
    return arrival


def deliver(arrival: Arrival, data: object) -> None:
    """Deliver bytes that come back, which are copied."""
    arrival.come(host_copy(data, arrival.descriptor))


def usage_of_exports(buffer: MLBuffer) -> int | None:
    """Return the usages of a buffer's exports; None for one that is not exportable."""
    exports: Exports | None = buffer._exports
    return None if exports is None else exports.usage


def create_exported_elsewhere(  # noqa: PLR0913 - a buffer's descriptor
    context: ContextInterface, *, data_type: Any, shape: Any, readable: object, writable: object, usage: object
) -> MLPromise[MLBuffer]:
    """Create a buffer as ``create_exportable_buffer()`` does, for a GPU device of another process.

    Args:
        context: the context.
        data_type: as ``create_buffer()`` takes it.
        shape: as ``create_buffer()`` takes it.
        readable: as ``create_buffer()`` takes it.
        writable: as ``create_buffer()`` takes it.
        usage: the exported buffers' usages.
    """

    def exports() -> Exports:
        return Exports(converted("usage", usage_flags, usage))

    method = "create_exportable_buffer"
    return context._create_buffer(method, "", data_type, shape, exports, readable=readable, writable=writable)


# --- GPU buffers of this process ---------------------------------------------------------------------------------


def exports_to(value: object, usage: object) -> Exports:
    """Return the exports of a buffer to a ``wgpu.GPUDevice``, with usages or, for None, the default ones.

    Raises:
        TypeError: the value is no such device, or the usages are none.
        InvalidStateError: the device is lost.
    """
    flags = DEFAULT_USAGE if usage is None else converted("usage", usage_flags, usage)
    device = gpu_sharing().checked_device(value)
    if device is None:
        raise InvalidStateError("the GPUDevice is lost")
    return Exports(flags, device)


def export(context: ContextInterface, buffer: MLBuffer) -> MLPromise[wgpu.GPUBuffer]:
    """Export a buffer to its ``wgpu.GPUDevice``: its own memory where that is the context's, else a copy.

    Returns:
        A promise of the GPU buffer.

    Raises:
        TypeError: the buffer cannot be exported.
    """
    check_exportable(context, buffer)
    exports: Exports = buffer._exports
    device = context._device
    given: list[wgpu.GPUBuffer] = []

    def is_back() -> None:
        buffer._exported = False

    if device.shared_device is exports.gpu_device and not exports.usage & ~DEFAULT_USAGE:
        work: Any = partial(device.lend, buffer._storage, given.append, is_back)
    else:
        work = partial(_lend_copy, buffer._storage, given, buffer)
    buffer._exported = True
    return context._enqueue("export_to_gpu", work, lambda: given[0], otherwise=is_back)


def _lend_copy(storage: Storage, given: list[wgpu.GPUBuffer], buffer: MLBuffer) -> Awaitable[None] | None:
    """Read a buffer, and give a copy to its GPU device."""
    device = buffer._context._device
    readback = Readback(device)

    def come_back(contents: bytes | Exception) -> None:
        arrival = end_copy(buffer)
        if arrival is None:
            return
        if isinstance(contents, Exception):
            arrival.fail(str(contents))
        else:
            deliver(arrival, contents)

    def give(_read: None) -> None:
        exports, contents = buffer._exports, readback.take()
        lend_copy = gpu_sharing().lend_copy
        given.append(lend_copy(exports.gpu_device, contents, exports.usage, come_back, lambda: not buffer._destroyed))

    return then(device.read(storage, readback, "export_to_gpu()"), give)
