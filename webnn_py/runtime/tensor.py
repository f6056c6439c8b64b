"""``Tensor``: what goes into a session and comes out of it, on the host or on the device."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any, Final, Self, final

import numpy as np
import trio

from webnn_py.buffer_copies import check_apart, region_within
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.descriptors import (
    DATA_TYPES,
    MLOperandDataType,
    MLOperandDataTypeLike,
    MLOperandDescriptor,
    operand_descriptor,
    stored,
)
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import InvalidStateError, NotSupportedError
from webnn_py.core.message_text import named_by, shown
from webnn_py.devices.lending import Lends
from webnn_py.devices.wgpu.interop import import_buffer
from webnn_py.runtime.array_protocols import ArrayProtocols
from webnn_py.runtime.contexts import ContextReference, OpenContext
from webnn_py.runtime.copies import copy_elements
from webnn_py.runtime.records import TensorLocation

AWAITED: Final = "array = await tensor.get_data()"
"""The call that copies elements from the device to the host, for messages."""

GPU_BUFFER_GRAIN: Final = 32
"""GPU buffers have a multiple of so many bytes, since kernels write whole groups of elements."""


@final
class Tensor(ArrayProtocols):
    """An array on the host, or a buffer on the device.

    ``Tensor(array)`` is on the host and shares the array. :meth:`Environment.create_tensor` and sessions with
    ``preferred_output_location="ml-tensor"`` make tensors on the device, which their user disposes of.
    :meth:`from_gpu_buffer` makes one of a user's own GPU buffer.

    Where numpy takes an array, it takes a tensor on the host: ``np.argmax(tensor)``, ``tensor > 0.5``, ``tensor[0]``;
    so does what imports DLPack of the CPU. One on the device is refused there with ``TypeError``: await
    :meth:`get_data`. Tensors are compared by their elements, and are keys by their identity.

    Args:
        array: of one of the eight data types, or of booleans, which are seen as ``uint8``.

    Raises:
        TypeError: it is no such array.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_buffer",
        "_descriptor",
        "_disposed",
        "_gpu_buffer",
        "_hold",
        "_is_release_wanted",
        "_label",
        "_lent",
        "_readers",
    )

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        array = host_array("Tensor()", array)
        self._fill(operand_descriptor(array.dtype.name, array.shape), array=array)

    def _fill(
        self,
        descriptor: MLOperandDescriptor,
        *,
        array: HostArray | None = None,
        buffer: MLBuffer | None = None,
        hold: ContextReference | None = None,
        gpu_buffer: Any = None,
    ) -> Self:
        self._array = array
        self._buffer = buffer
        self._descriptor = descriptor
        self._disposed = False
        self._gpu_buffer = gpu_buffer
        self._hold = hold
        self._is_release_wanted = False
        self._label = "" if buffer is None else buffer.label
        self._lent = None
        self._readers = 0
        return self

    @classmethod
    def _on_host(cls, array: HostArray, descriptor: MLOperandDescriptor) -> Self:
        """Return a tensor of an array that is known to be of this data type and shape."""
        return cls.__new__(cls)._fill(descriptor, array=array)

    @classmethod
    def _on_device(cls, buffer: MLBuffer, hold: ContextReference) -> Self:
        """Return a tensor that owns a buffer of a context, and refers to that context."""
        descriptor = MLOperandDescriptor(buffer.data_type, buffer.shape)
        return cls.__new__(cls)._fill(descriptor, buffer=buffer, hold=hold)

    @classmethod
    def from_gpu_buffer(
        cls, gpu_buffer: Any, *, data_type: MLOperandDataTypeLike = "float32", dims: Iterable[int]
    ) -> Self:
        """Return a tensor of a user's own ``wgpu.GPUBuffer``, which is never destroyed by this library.

        It belongs to the environment that uses it first: one whose ``gpu_device`` is the buffer's.

        Args:
            gpu_buffer: has the usages STORAGE, COPY_SRC and COPY_DST, and as many bytes as the elements take, rounded
                up to a multiple of 32.
            data_type: one of the eight data types, or numpy's dtype of that name.
            dims: the dimensions.

        Raises:
            TypeError: the data type or the dimensions are refused, or that is no GPU buffer, or it is too small.
        """
        try:
            descriptor = operand_descriptor(data_type, dims)
        except TypeError as error:
            raise TypeError(f"from_gpu_buffer(): {str(error).replace('shape', 'dims', 1)}") from None
        size = getattr(gpu_buffer, "size", None)
        if not (isinstance(size, int) and hasattr(gpu_buffer, "usage")):
            raise TypeError(f"from_gpu_buffer(): gpu_buffer is {shown(gpu_buffer)}; it must be a wgpu.GPUBuffer")
        needed = -(-descriptor.byte_length // GPU_BUFFER_GRAIN) * GPU_BUFFER_GRAIN
        if size < needed:
            raise TypeError(
                f"from_gpu_buffer(): the GPU buffer has {size} bytes; {descriptor} takes {descriptor.byte_length}, and "
                f"GPU buffers of tensors have a multiple of {GPU_BUFFER_GRAIN}: it must have at least {needed}"
            )
        return cls.__new__(cls)._fill(descriptor, gpu_buffer=gpu_buffer)

    # --- what it is ------------------------------------------------------------------------------------------

    @property
    def location(self) -> TensorLocation:
        """``"cpu"`` on the host; on the device ``"gpu-buffer"`` with WebGPU, ``"ml-tensor"`` with any other."""
        if self._gpu_buffer is not None:
            return "gpu-buffer"
        return "cpu" if self._hold is None else self._hold.opened.location

    @property
    def data_type(self) -> MLOperandDataType:
        """The data type of the elements."""
        return self._descriptor.data_type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype in numpy, or that of the bytes that hold elements of four bits."""
        return np.dtype(stored(self._descriptor).data_type)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions; empty for a scalar."""
        return self._descriptor.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions, under numpy's name."""
        return self._descriptor.shape

    @property
    def label(self) -> str:
        """The name that ``create_tensor()`` was given for it; "" for none."""
        return self._label

    @property
    def disposed(self) -> bool:
        """Return whether it was disposed of."""
        return self._disposed

    @property
    def data(self) -> HostArray:
        """The array of a tensor on the host.

        Raises:
            InvalidStateError: it is on the device, or was disposed of.
        """
        return self._elements("data", refusal=InvalidStateError)

    def _elements(
        self, method: str, how: str = AWAITED, refusal: type[TypeError | InvalidStateError] = TypeError
    ) -> HostArray:
        """Return the same; ``how`` brings it to the host. What numpy or Python calls refuses by ``TypeError``."""
        if self._array is not None:
            return self._array
        self._check_alive(method)
        raise refusal(f"{method}: {self!r} is on the device; {how} brings its elements to the host")

    @property
    def gpu_buffer(self) -> Any:
        """The ``wgpu.GPUBuffer`` of a tensor on WebGPU: the user's own, or a view of ours that shares the memory.

        What the user submits comes before every later call of the API. To submit behind earlier ones, await
        :meth:`Environment.drain`. A view of ours is usable until the tensor is disposed of.

        Raises:
            InvalidStateError: it is on the host, or was disposed of.
            NotSupportedError: its device is no WebGPU device.
        """
        self._check_alive("gpu_buffer")
        if self._gpu_buffer is not None:
            return self._gpu_buffer
        buffer, hold = self._buffer, self._hold
        if buffer is None or hold is None:
            raise InvalidStateError(f"gpu_buffer: {self!r} is on the host; Environment.create_tensor() takes it over")
        hold.opened.check_usable("gpu_buffer", repr(self))
        if self._lent is None:
            backend = hold.opened.context.device.backend
            if not isinstance(backend, Lends):
                raise NotSupportedError(
                    f"gpu_buffer: {self!r} is on the device {backend.info.name}; only WebGPU has GPU buffers"
                )
            self._lent = backend.lend(buffer.storage, _nothing, lambda: False)
        return self._lent

    # --- data ------------------------------------------------------------------------------------------------

    async def get_data(self, release: bool = False) -> HostArray:  # noqa: FBT001, FBT002 - as in ONNX Runtime
        """Return the data as an array: its own for a tensor on the host, else a copy that the caller owns.

        Args:
            release: whether to dispose of the tensor when the data have come; with calls that overlap, when those of
                all have.

        Raises:
            InvalidStateError: it was disposed of, before or during the call, its device was lost, or no environment has
                used the user's GPU buffer yet.
            UnknownError: the run that should have written it failed.
        """
        self._check_alive("get_data()")
        if self._array is not None:
            array = self._array
            await trio.lowlevel.checkpoint()
            if release:
                self.dispose()
            return array
        buffer, opened = self._place("get_data")
        self._readers += 1
        try:
            data = await opened.context.read_buffer(buffer)
            self._is_release_wanted |= release
        except InvalidStateError as error:
            self._check_alive("get_data()", "while it was being read")
            opened.check_usable("get_data", repr(self))
            raise InvalidStateError(f"get_data(): {error}") from error
        finally:
            self._readers -= 1
            if self._is_release_wanted and not self._readers:
                self.dispose()
        return data

    async def copy_from(
        self, source: Tensor, *, source_offset: int = 0, destination_offset: int = 0, count: int | None = None
    ) -> None:
        """Copy elements of another tensor of the same data type here, in either direction or on the device.

        Args:
            source: where they come from.
            source_offset: the first element to copy, in row-major order.
            destination_offset: where it goes.
            count: how many; all that follow in ``source`` when absent.

        Raises:
            TypeError: data types differ, a range reaches beyond its tensor, ranges of one tensor overlap, or the
                devices are not the same.
            InvalidStateError: a tensor was disposed of, its device was lost, or no environment has used the user's
                GPU buffer yet.
        """
        usable_tensor("copy_from(): source", source)
        if source.data_type != self.data_type:
            raise TypeError(f"copy_from(): source is {source.data_type}; it must be {self.data_type}, as {self!r}")
        sizes = math.prod(source.dims), math.prod(self.dims)
        elements = region_within("copy_from", sizes, source_offset, destination_offset, count)
        if source is self:
            check_apart("copy_from", "tensor", elements)
        there = [tensor for tensor in (self, source) if tensor.location != "cpu"]
        if not there:
            await copy_elements(None, source.data, self.data, elements)
            return
        _, opened = next((tensor for tensor in there if tensor._hold is not None), there[0])._place("copy_from")
        origin, target = [
            tensor.data if tensor.location == "cpu" else tensor._buffer_on(opened, "copy_from", repr(tensor))
            for tensor in (source, self)
        ]
        await copy_elements(opened.context, origin, target, elements)

    def dispose(self) -> None:
        """Let go of the data; reads that are pending are rejected. A user's own GPU buffer stays as it is.

        The second call does nothing. Raises nothing.
        """
        self._disposed = True
        self._array = None
        self._lent = None
        buffer, self._buffer = self._buffer, None
        _let_go(buffer, self._hold)

    def __del__(self) -> None:
        if not getattr(self, "_disposed", True) and self._hold is not None:
            buffer, hold = self._buffer, self._hold
            hold.opened.owner.run_soon(lambda: _let_go(buffer, hold))
            if self._gpu_buffer is None and not hold.opened.is_lost:
                # Last, since a warning may be made an error.
                warnings.warn(f"{self!r} was never disposed of", ResourceWarning, source=self, stacklevel=1)

    def __reduce__(self) -> tuple[type[Tensor], tuple[HostArray]]:
        if self.location == "cpu":
            return Tensor, (self.data,)
        raise TypeError("a tensor on the device can be neither copied nor pickled; get_data() gives its data")

    # --- checks ----------------------------------------------------------------------------------------------

    @property
    def _identity(self) -> int:
        """A number that identifies the memory of a tensor on the device."""
        return id(self if self._gpu_buffer is None else self._gpu_buffer)

    def _check_alive(self, method: str, when: str = "") -> None:
        if self._disposed:
            raise InvalidStateError(f"{method}: {self!r} was disposed of{when and f' {when}'}")

    def _place(self, method: str) -> tuple[MLBuffer, OpenContext]:
        """Return the buffer of a tensor on the device, and whose it is.

        Raises:
            InvalidStateError: it was disposed of, its device was lost, or no environment has used it yet.
        """
        self._check_alive(f"{method}()")
        if self._buffer is None or self._hold is None:
            raise InvalidStateError(
                f"{method}(): no environment has used {self!r} yet; run a session on it, or use copy_tensors()"
            )
        self._hold.opened.check_usable(method, repr(self))
        return self._buffer, self._hold.opened

    def _buffer_on(self, opened: OpenContext, method: str, what: str) -> MLBuffer:
        """Return the buffer of a tensor on the device, in an environment's context; a user's becomes the context's.

        Raises:
            InvalidStateError: it was disposed of, or its device was lost.
            TypeError: it is on another environment's device, or the context refuses the user's buffer.
            NotSupportedError: it is a user's GPU buffer, and the context runs on none.
        """
        hold = self._hold
        if hold is not None and hold.opened is opened and self._buffer is not None:
            return self._buffer
        if self._disposed:
            raise InvalidStateError(f"{method}(): {what} was disposed of")
        if hold is not None and not hold.opened.is_lost:
            raise TypeError(f"{method}(): {what} is on the device of another environment")
        if self._gpu_buffer is None:
            if hold is not None:
                hold.opened.check_usable(method, what)
            raise TypeError(f"{method}(): {what} is on the host; it must be on the device")
        try:
            buffer = import_buffer(
                opened.context,
                self._gpu_buffer,
                data_type=self.data_type,
                shape=self.dims,
                readable=True,
                writable=True,
            )
        except (TypeError, NotSupportedError) as error:
            raise type(error)(f"{method}(): {what}: {error}") from None
        if hold is not None:
            hold.release()
        self._hold = opened.hold()
        self._buffer = buffer
        return buffer

    def __repr__(self) -> str:
        state = ", disposed" if self._disposed else ""
        return f"<Tensor {named_by(self.label)}{self._descriptor} {self.location}{state}>"


def usable_tensor(what: str, value: object, allowed: str = "a Tensor") -> Tensor:
    """Return a tensor that has data.

    Args:
        what: the argument, with its method, for the message.
        value: what was given.
        allowed: what is taken, in words.

    Raises:
        TypeError: it is no tensor.
        InvalidStateError: it was disposed of.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{what} is {type(value).__name__}; it must be {allowed}")
    if value.disposed:
        raise InvalidStateError(f"{what}, {value!r}, was disposed of")
    return value


def host_array(what: str, value: object) -> HostArray:
    """Return a numpy array of one of the eight data types; booleans are seen as ``uint8``.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{what}: {type(value).__name__} given; it must be a numpy array")
    if value.dtype == np.bool_:
        return value.view(np.uint8)
    if not value.dtype.isnative or value.dtype.name not in DATA_TYPES:
        raise TypeError(
            f"{what}: an array of {value.dtype} given; it must be one of bool, {', '.join(DATA_TYPES)}, "
            "of the machine's own byte order"
        )
    return value


def _let_go(buffer: MLBuffer | None, hold: ContextReference | None) -> None:
    if buffer is not None:
        buffer.destroy()
    if hold is not None and not hold.is_released:
        hold.release()


def _nothing() -> None:
    """Do nothing when a view is given back, since nothing waits for it."""
