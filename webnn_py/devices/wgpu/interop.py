"""Buffers in common with WebGPU work of the user's.

``import_buffer()`` makes a buffer over a ``wgpu.GPUBuffer``, ``export_to_gpu()`` lends one out. ``WebGPUInterop`` is
the proposal "webgpu-interop": buffers that a ``GPUDevice`` gets as GPU buffers, and gives back
(docs/proposals/webgpu_interop.md). wgpu is loaded when a function needs it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs
from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.argument_checks import check_buffer, unknown
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.buffer_source import host_copy
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.refused_calls import rejected_promise, report_refusal
from webnn_py.core.descriptors import (
    MLOperandDataTypeLike,
    MLOperandDescriptor,
    converted,
    operand_descriptor,
    unsigned_long,
)
from webnn_py.core.device.backend import HostArray
from webnn_py.core.device.device import Readback
from webnn_py.core.errors import InvalidStateError, NotSupportedError
from webnn_py.core.extension import Extension
from webnn_py.core.in_flight import like, then
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.core.unreported_errors import calling_line
from webnn_py.devices.lending import Arrival, Lends, lend, shared_device, take_back

if TYPE_CHECKING:
    import wgpu

_MAP_READ, _MAP_WRITE, _COPY_SRC, _COPY_DST, _STORAGE = 0x1, 0x2, 0x4, 0x8, 0x80

DEFAULT_USAGE: Final = _STORAGE | _COPY_SRC | _COPY_DST
"""The usages of GPU buffers by default."""

_ALL_USAGES: Final = 0x3FF

_EXPORTED: Final = "exported to WebGPU; destroy() of its GPUBuffer brings it back"


class WebGPUInterop(Extension):
    """The proposal: with it, :func:`create_exportable_buffer` makes buffers for any GPU device."""

    name: ClassVar[str] = "webgpu-interop"


# --- a user's GPU buffer -----------------------------------------------------------------------------------------


@enable_ki_protection
def import_buffer(
    context: MLContext,
    gpu_buffer: wgpu.GPUBuffer,
    *,
    data_type: MLOperandDataTypeLike,
    shape: Any,
    readable: bool = False,
    writable: bool = False,
    label: str = "",
) -> MLBuffer:
    """Make a buffer over a ``wgpu.GPUBuffer`` of the context's device, without copying.

    The GPU buffer stays the user's: destroying the ``MLBuffer`` or the context does not destroy it. What uses it
    after the user has destroyed it, or while it is mapped, fails, which reading its outputs reports. What the
    user submits before a call of this context comes before it on the GPU; to submit after it, await ``drain()``.

    Args:
        context: runs on WebGPU.
        gpu_buffer: has the usages STORAGE, COPY_SRC and COPY_DST, and as many bytes as the descriptor takes,
            rounded up to a multiple of 32.
        data_type: one of the eight data types, or numpy's dtype of that name.
        shape: the dimensions, each at least 1; empty for a scalar.
        readable: whether ``read_buffer()`` may read it.
        writable: whether ``write_buffer()`` may write it.
        label: a name for it in messages, traces and statistics.

    Raises:
        TypeError: the descriptor or the GPU buffer is refused.
        InvalidStateError: the context is lost.
        NotSupportedError: the context does not run on WebGPU.
    """
    context.device_timeline.trio_run.check("import_buffer()")
    try:
        backend = _lender(context, "import_buffer")
        try:
            memory = backend.check_foreign(gpu_buffer, operand_descriptor(data_type, shape))
            buffer = context.make_buffer(
                "import_buffer", data_type=data_type, shape=shape, readable=readable, writable=writable, label=label
            )
        except TypeError as error:
            raise TypeError(f"import_buffer(): {error}") from error.__cause__
    except Exception as error:
        report_refusal(context, "import_buffer", error)
        raise
    work = partial(context.device.adopt, buffer.storage, memory)
    context.device_timeline.enqueue(DeviceOperation("import_buffer", work))
    return buffer


# --- a buffer for a GPU device -----------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Exports:
    """How a buffer is exported.

    Attributes:
        usage: the usages of its GPU buffers, WebGPU's flags.
        gpu_device: the ``wgpu.GPUDevice`` that gets them; None where the device is a script's.
    """

    usage: int
    gpu_device: Any = None


@enable_ki_protection
def create_exportable_buffer(
    context: MLContext,
    gpu_device: wgpu.GPUDevice,
    *,
    data_type: MLOperandDataTypeLike,
    shape: Any,
    readable: bool = False,
    writable: bool = False,
    usage: int | None = None,
    label: str = "",
) -> MLPromise[MLBuffer]:
    """Create a buffer for :func:`export_to_gpu`: the proposal's ``createExportableTensor()``.

    Args:
        context: of ``open_ml(experimental={"webgpu-interop"})``, on any device.
        gpu_device: a ``wgpu.GPUDevice``. Where it is the context's and ``usage`` has no more than its default,
            exports share the memory; otherwise they are copied by way of the host.
        data_type: as ``create_buffer()`` takes it.
        shape: as ``create_buffer()`` takes it.
        readable: whether ``read_buffer()`` may read it.
        writable: whether ``write_buffer()`` may write it.
        usage: the exported buffers' usages, of ``wgpu.BufferUsage``; None for STORAGE, COPY_SRC and COPY_DST.
        label: a name for it in messages, traces and statistics.

    Returns:
        A promise of the buffer, rejected as ``create_buffer()``'s is, and with ``TypeError`` for what is no GPU
        device or no usage, ``InvalidStateError`` when the GPU device is lost, ``NotSupportedError`` when the
        proposal was not asked for.
    """
    method = "create_exportable_buffer"
    context.device_timeline.trio_run.check(f"{method}()", is_call=False)
    try:
        WebGPUInterop.on_context(context, f"{method}()", "export_to_gpu() lends any buffer on WebGPU")
        exports = _exports_to(gpu_device, usage)
        flags = {"readable": readable, "writable": writable}
        buffer = context.make_buffer(method, data_type=data_type, shape=shape, label=label, **flags)
    except (TypeError, InvalidStateError, NotSupportedError) as error:
        return rejected_promise(context, method, error)
    return _allocated(buffer, exports)


create_exportable_tensor = create_exportable_buffer


def create_exported_elsewhere(
    context: MLContext, *, data_type: Any, shape: Any, readable: bool, writable: bool, usage: object
) -> MLPromise[MLBuffer]:
    """Create a buffer as :func:`create_exportable_buffer` does, for a GPU device of another process.

    Args:
        context: the context.
        data_type: as ``create_buffer()`` takes it.
        shape: as ``create_buffer()`` takes it.
        readable: as ``create_buffer()`` takes it.
        writable: as ``create_buffer()`` takes it.
        usage: the exported buffers' usages.
    """
    method = "create_exportable_buffer"
    try:
        exports = Exports(converted("usage", usage_flags, usage))
        buffer = context.make_buffer(method, data_type=data_type, shape=shape, readable=readable, writable=writable)
    except (TypeError, InvalidStateError, NotSupportedError) as error:
        return rejected_promise(context, method, error)
    return _allocated(buffer, exports)


def _allocated(buffer: MLBuffer, exports: Exports) -> MLPromise[MLBuffer]:
    """Enqueue the allocation of a new buffer, and return the promise of it."""
    context = buffer.context
    buffer.attached = exports

    async def when_done(pending: Awaitable[None]) -> MLBuffer:
        await pending
        return buffer

    def allocate() -> MLBuffer | Awaitable[MLBuffer]:
        pending = context.device.allocate(buffer.storage)
        return buffer if pending is None else like(pending, when_done(pending))

    def failed(method: str, error: Exception) -> Exception:
        buffer.destroy()
        return unknown(method, error)

    return context.enqueue("create_exportable_buffer", allocate, buffer=buffer, failed=failed)


def _exports_to(value: object, usage: object) -> Exports:
    """Return the exports of a buffer to a ``wgpu.GPUDevice``, with usages or, for None, the default ones.

    Raises:
        TypeError: the value is no such device, or the usages are none.
        InvalidStateError: the device is lost.
    """
    from webnn_py.devices.wgpu.runtime.buffer_sharing import checked_device  # noqa: PLC0415 - loads wgpu

    flags = DEFAULT_USAGE if usage is None else converted("usage", usage_flags, usage)
    device = checked_device(value)
    if device is None:
        raise InvalidStateError("the GPUDevice is lost")
    return Exports(flags, device)


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


def usage_of_exports(buffer: MLBuffer) -> int | None:
    """Return the usages of a buffer's exports; None for one that is not exportable."""
    exports: Exports | None = buffer.attached
    return None if exports is None else exports.usage


# --- an export ---------------------------------------------------------------------------------------------------


@enable_ki_protection
def export_to_gpu(context: MLContext, buffer: MLBuffer) -> MLPromise[wgpu.GPUBuffer]:
    """Lend a buffer out as a ``wgpu.GPUBuffer``, when everything enqueued before has been submitted.

    Until it is given back by its ``destroy()``, the device timeline stops at the first operation that needs the
    buffer. Losing the context calls it in. When it is collected as garbage, it is given back with a
    ``ResourceWarning``.

    Args:
        context: runs on WebGPU, unless the buffer is one of :func:`create_exportable_buffer`.
        buffer: a buffer of it.

    Returns:
        A promise of the GPU buffer, which shares the memory. Rejected with ``TypeError`` for a buffer of another
        context, destroyed or constant; ``InvalidStateError`` when the context is lost; ``NotSupportedError``
        when it does not run on WebGPU.

    A buffer of :func:`create_exportable_buffer` is used by nothing else until then: its calls are refused with
    ``TypeError``. See there whether its export shares the memory.
    """
    context.device_timeline.trio_run.check("export_to_gpu()", is_call=False)
    try:
        if type(buffer) is MLBuffer and buffer.attached is not None:
            return _export(context, buffer)
        _lender(context, "export_to_gpu")
        check_buffer(context, "export_to_gpu", buffer)
        if buffer.constant:
            raise TypeError(f"{buffer!r} is constant; it must not be")
    except (TypeError, NotSupportedError) as error:
        return rejected_promise(context, "export_to_gpu", error, buffer)
    return _lent(context, buffer)


def _lender(context: MLContext, method: str) -> Lends:
    backend = context.device.backend
    if not isinstance(backend, Lends):
        is_proposed = method == "export_to_gpu" and WebGPUInterop.name in context.experimental
        others = ", except those of create_exportable_buffer()" if is_proposed else ""
        raise NotSupportedError(
            f"{method}(): the context runs on {backend.info.name}; it must run on WebGPU to share buffers{others}"
        )
    return backend


def _lent(context: MLContext, buffer: MLBuffer) -> MLPromise[wgpu.GPUBuffer]:
    """Lend the memory of a buffer; one that is withheld is not so any more when it is returned."""
    given: list[wgpu.GPUBuffer] = []

    def is_back() -> None:
        buffer.withheld = ""

    def failed(method: str, error: Exception) -> Exception:
        is_back()
        return unknown(method, error)

    def step() -> wgpu.GPUBuffer | Awaitable[wgpu.GPUBuffer]:
        return _when_given(lend(context.device, buffer.storage, given.append, is_back), given)

    return context.enqueue("export_to_gpu", step, buffer=buffer, failed=failed)


def _when_given(
    pending: Awaitable[None] | None, given: list[wgpu.GPUBuffer]
) -> wgpu.GPUBuffer | Awaitable[wgpu.GPUBuffer]:
    """Return the one GPU buffer of a list that a step fills."""

    async def later(step: Awaitable[None]) -> wgpu.GPUBuffer:
        await step
        return given.pop()

    return given.pop() if pending is None else like(pending, later(pending))


def _export(context: MLContext, buffer: MLBuffer) -> MLPromise[wgpu.GPUBuffer]:
    """Export a buffer to its ``wgpu.GPUDevice``: its own memory where that is the context's, else a copy."""
    check_exportable(context, buffer)
    exports: Exports = buffer.attached
    buffer.withheld = _EXPORTED
    if shared_device(context.device) is exports.gpu_device and not exports.usage & ~DEFAULT_USAGE:
        return _lent(context, buffer)

    def failed(method: str, error: Exception) -> Exception:
        buffer.withheld = ""
        return unknown(method, error)

    return context.enqueue("export_to_gpu", partial(_lend_copy, buffer, exports), buffer=buffer, failed=failed)


def _lend_copy(buffer: MLBuffer, exports: Exports) -> wgpu.GPUBuffer | Awaitable[wgpu.GPUBuffer]:
    """Read a buffer, and give a copy to its GPU device."""
    from webnn_py.devices.wgpu.runtime.buffer_sharing import lend_copy  # noqa: PLC0415 - loads wgpu

    device = buffer.context.device
    readback = Readback(device)
    given: list[wgpu.GPUBuffer] = []

    def come_back(contents: bytes | Exception) -> None:
        arrival = end_copy(buffer)
        if arrival is None:
            return
        if isinstance(contents, Exception):
            arrival.fail(str(contents))
        else:
            deliver(arrival, contents)

    def give(_read: None) -> None:
        contents = readback.take()
        copy = lend_copy(exports.gpu_device, contents, exports.usage, come_back, lambda: not buffer.destroyed)
        given.append(copy)

    return _when_given(then(device.read(buffer.storage, readback, "export_to_gpu()"), give), given)


def check_exportable(context: MLContext, buffer: MLBuffer) -> None:
    """Refuse a buffer that cannot be exported.

    Raises:
        TypeError: it is no buffer of the context's, destroyed, exported already, or not exportable.
    """
    check_buffer(context, "export_to_gpu", buffer)
    if buffer.attached is None:
        raise TypeError(
            f"export_to_gpu(): {buffer!r} is not exportable; create_exportable_buffer() makes buffers that are"
        )


# --- a copy of a buffer on another device ------------------------------------------------------------------------


def begin_copy(context: MLContext, buffer: MLBuffer) -> MLPromise[HostArray | None]:
    """Export a buffer to a device that is not this process's.

    Returns:
        A promise of its contents, as they are when everything enqueued before has run. Rejected with ``UnknownError``
        when the buffer holds no data, and ``InvalidStateError`` when the context is lost.

    Raises:
        TypeError: the buffer cannot be exported.
    """
    check_exportable(context, buffer)
    buffer.withheld = _EXPORTED

    async def later(pending: Awaitable[None], readback: Readback) -> HostArray | None:
        await pending
        return readback.take()

    def read() -> HostArray | Awaitable[HostArray | None] | None:
        readback = Readback(context.device)
        pending = context.device.read(buffer.storage, readback, "export_to_gpu()")
        return readback.take() if pending is None else like(pending, later(pending, readback))

    return context.enqueue("export_to_gpu", read, buffer=buffer)


def end_copy(buffer: MLBuffer) -> Arrival | None:
    """End an export, with contents that are still to come: what is enqueued from now on waits for them.

    Returns:
        The arrival that gets the contents, or the reason why there are none; None for a destroyed buffer.
    """
    buffer.withheld = ""
    if buffer.destroyed:
        return None
    context, arrival = buffer.context, Arrival(MLOperandDescriptor(buffer.data_type, buffer.shape))
    work = partial(take_back, context.device, buffer.storage, arrival, calling_line())
    context.device_timeline.enqueue(DeviceOperation("return_from_gpu", work))
    return arrival


def deliver(arrival: Arrival, data: object) -> None:
    """Deliver bytes that come back, which are copied."""
    arrival.come(host_copy(data, arrival.descriptor))
