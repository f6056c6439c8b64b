"""Sharing buffers with a user's own WebGPU work: the context's ``import_buffer`` and ``export_to_gpu``.

A mixin of :class:`MLContext`, which says what the methods lean on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from trio.lowlevel import enable_ki_protection

from webnn_py.descriptors import MLBufferDescriptor, MLOperandDataTypeLike
from webnn_py.device.backend import Lends
from webnn_py.device.device import Device
from webnn_py.errors import NotSupportedError
from webnn_py.script.buffer import MLBuffer
from webnn_py.script.checks import buffer_descriptor, label_of, reject_failed, unknown
from webnn_py.script.living import Living
from webnn_py.script.refusals import refused, rejected
from webnn_py.timelines.device_timeline import DeviceOperation, DeviceTimeline
from webnn_py.timelines.promise import MLPromise
from webnn_py.trio_run import TrioRun
from webnn_py.unreported_errors import calling_line

if TYPE_CHECKING:
    import wgpu

    from webnn_py.script.context import MLContext


class SharesBuffers:
    """What a context offers to users who have WebGPU work of their own. Not in the specification."""

    _device: Device
    _timeline: DeviceTimeline
    _trio_run: TrioRun
    _buffers: Living[MLBuffer]

    @enable_ki_protection
    def import_buffer(  # noqa: PLR0913 - a buffer's descriptor
        self,
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
        after the user has destroyed it, or while it is mapped, fails, which the read of its outputs tells. What the
        user submits before a call of this context comes before it on the GPU; to submit behind it, await ``drain()``.

        Args:
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
        self._trio_run.check("import_buffer()")
        try:
            backend = self._lender("import_buffer")
            try:
                descriptor = buffer_descriptor(data_type, shape, readable=readable, writable=writable)
                name = label_of(label)
                self._check_not_lost("import_buffer")
                self._check_descriptor(descriptor)
                memory = backend.check_foreign(gpu_buffer, descriptor)
            except TypeError as error:
                raise TypeError(f"import_buffer(): {error}") from error.__cause__
        except Exception as error:
            refused(cast("MLContext", self), "import_buffer", error)
            raise
        buffer = MLBuffer._create(self, descriptor, name)  # type: ignore[arg-type]  # the context, of which this is a part
        self._buffers.add(buffer)
        self._timeline.enqueue(DeviceOperation("import_buffer", partial(self._device.adopt, buffer._storage, memory)))
        return buffer

    @enable_ki_protection
    def export_to_gpu(self, buffer: MLBuffer) -> MLPromise[wgpu.GPUBuffer]:
        """Lend a buffer out as a ``wgpu.GPUBuffer``, when everything enqueued before has been submitted.

        Until it is given back by its ``destroy()``, the device timeline stops at the first operation that needs the
        buffer. Losing the context calls it in. When it is collected as garbage, it is given back with a
        ``ResourceWarning``.

        Returns:
            A promise of the GPU buffer, which shares the memory. Rejected with ``TypeError`` for a buffer of another
            context, destroyed or constant; ``InvalidStateError`` when the context is lost; ``NotSupportedError``
            when it does not run on WebGPU.
        """
        self._trio_run.check("export_to_gpu()")
        try:
            self._lender("export_to_gpu")
            self._check_buffer("export_to_gpu", buffer)
            if buffer.constant:
                raise TypeError(f"{buffer!r} is constant; it must not be")
        except (TypeError, NotSupportedError) as error:
            return rejected(cast("MLContext", self), "export_to_gpu", error, buffer)
        promise: MLPromise[wgpu.GPUBuffer] = MLPromise._create("export_to_gpu()", self._trio_run, calling_line())
        given: list[wgpu.GPUBuffer] = []

        def settled(error: Exception | None) -> None:
            if error is not None:
                reject_failed(promise, unknown("export_to_gpu", error), self._device)
            else:
                promise._resolve(given[0])

        self._timeline.enqueue(
            DeviceOperation(
                "export_to_gpu",
                partial(self._device.lend, buffer._storage, given.append),
                settled,
                aborted=partial(self._abort, promise, "export_to_gpu"),
            )
        )
        return promise

    def _lender(self, method: str) -> Lends:
        backend = self._device.backend
        if not isinstance(backend, Lends):
            raise NotSupportedError(
                f"{method}(): the context runs on {backend.info.name}; it must run on WebGPU to share buffers"
            )
        return backend

    def _check_not_lost(self, method: str) -> None:
        raise NotImplementedError

    def _check_descriptor(self, descriptor: MLBufferDescriptor) -> None:
        raise NotImplementedError

    def _check_buffer(self, method: str, buffer: MLBuffer) -> None:
        raise NotImplementedError

    def _abort(self, promise: MLPromise[Any], method: str) -> None:
        raise NotImplementedError
