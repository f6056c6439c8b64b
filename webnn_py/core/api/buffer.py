"""``MLBuffer``: a tensor on the device, seen from the script timeline."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self, final

from trio.lowlevel import enable_ki_protection

from webnn_py.core.descriptors import MLBufferDescriptor, MLOperandDataType
from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.core.errors import DestroyedBufferError, InvalidStateError
from webnn_py.core.handle import Handle, NoArray
from webnn_py.core.message_text import named_by
from webnn_py.core.timelines.promise import MLPromise

if TYPE_CHECKING:
    from webnn_py.core.api.context import MLContext


@final
class MLBuffer(NoArray, Handle):
    """A tensor that lives on a context's device (the text's ``MLTensor``; both names are this class).

    Made by :meth:`MLContext.create_buffer` and :meth:`MLContext.create_constant_buffer`. The getters work forever,
    after :meth:`destroy` and after the loss of the context too. (Section "MLTensor interface".)
    """

    _made_by = "MLContext.create_buffer()"
    _elements_come_by = "it is on the device; array = await context.read_buffer(buffer) brings its elements here"

    __slots__ = (
        "__weakref__",
        "_context",
        "_descriptor",
        "_destroyed",
        "_pending_reads",
        "_storage",
        "attached",
        "withheld",
    )
    _context: MLContext
    _descriptor: MLBufferDescriptor
    _storage: Storage
    _destroyed: bool
    withheld: str
    """The reason why an extension has calls refuse the buffer, as "exported to …"; "" for none.

    Its first word is in the buffer's text. Not in the specification.
    """

    attached: Any
    """What an extension keeps for the buffer; None for nothing. Not in the specification."""
    _pending_reads: dict[MLPromise[HostArray] | MLPromise[None], None]

    @classmethod
    def _create(cls, context: MLContext, descriptor: MLBufferDescriptor, label: str = "") -> Self:
        self = cls.__new__(cls)
        # spec: create an MLTensor 1-7; create a constant MLTensor 1-12
        self._context = context
        self._descriptor = descriptor
        self._storage = Storage(descriptor, label)
        self._destroyed = False
        self.withheld, self.attached = "", None
        self._pending_reads = {}
        return self

    @property
    def data_type(self) -> MLOperandDataType:
        """The data type of the elements."""
        return self._descriptor.data_type

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions; empty for a scalar."""
        return self._descriptor.shape

    @property
    def readable(self) -> bool:
        """Return whether :meth:`MLContext.read_buffer` may read it."""
        return self._descriptor.readable

    @property
    def writable(self) -> bool:
        """Return whether :meth:`MLContext.write_buffer` may write it."""
        return self._descriptor.writable

    @property
    def constant(self) -> bool:
        """Return whether it is a constant, to be used by :meth:`MLGraphBuilder.constant` only."""
        return self._descriptor.constant

    @property
    def label(self) -> str:
        """The name that it was given, as WebGPU's have one; "" for none. Not in the specification."""
        return self._storage.label

    @property
    def context(self) -> MLContext:
        """The context that the buffer was created on. Not in the specification."""
        return self._context

    @property
    def destroyed(self) -> bool:
        """Return whether it is destroyed, be it with its context. Not in the specification."""
        return self._destroyed

    @property
    def storage(self) -> Storage:
        """The buffer on the device, for tools and extensions. Not in the specification."""
        return self._storage

    @enable_ki_protection
    def destroy(self) -> None:
        """Reject pending reads at once, then enqueue the release on the device timeline (section "destroy()").

        Pending reads are rejected with ``InvalidStateError``. Dispatches in flight finish first, and their other
        outputs stay readable. The second call does nothing. Raises nothing but ``RuntimeError``,
        outside the run of ``open_ml()``.
        """
        self._context._trio_run.check("destroy()")
        self._destroy()

    def _destroy(self) -> None:
        if self._destroyed:
            return
        # spec: MLTensor.destroy 1
        self._destroyed = True
        self._context._buffers.discard(self)
        pending, self._pending_reads = self._pending_reads, {}
        if pending:
            error = InvalidStateError(f"read_buffer(): {self._why_destroyed()} while the read was pending")
            # spec: MLTensor.destroy 2
            for promise in pending:
                promise._reject(error, is_reported=True)
        # spec: MLTensor.destroy 3
        self._context._releases.release(self._storage)

    def _check_alive(self, method: str, name: str) -> None:
        if self._destroyed:
            raise DestroyedBufferError(f"{method}(): {name} is destroyed: {self._why_destroyed()}")

    def _why_destroyed(self) -> str:
        context = self._context
        return "destroy() was called on the buffer" if context._lost_message is None else context._loss_text

    def __del__(self) -> None:
        if not getattr(self, "_destroyed", True):
            self._context._buffers.discard(self)
            self._context._releases.release_from_any_thread(self._storage)
            # Last, since a warning may be made an error.
            warnings.warn(f"{self!r} was never destroyed", ResourceWarning, source=self, stacklevel=1)

    def _described(self) -> str:
        flags = [name for name in ("readable", "writable", "constant") if getattr(self, name)]
        state = ", destroyed" if self._destroyed else f", {self.withheld.split()[0]}" if self.withheld else ""
        return f"{named_by(self.label)}{' '.join([str(self._descriptor), *flags])}{state}"


MLTensor = MLBuffer
