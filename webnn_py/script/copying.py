"""Copies on the device: the context's ``copy_buffer`` and ``clear_buffer``.

A mixin of :class:`MLContext`, which says what the methods lean on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from trio.lowlevel import enable_ki_protection

from webnn_py.descriptors import FOUR_BITS, unsigned_long
from webnn_py.device.backend import CopyRegion
from webnn_py.device.device import Device
from webnn_py.handle import forgotten_await
from webnn_py.message_text import shown
from webnn_py.script.buffer import MLBuffer
from webnn_py.script.refusals import refused
from webnn_py.timelines.device_timeline import DeviceOperation, DeviceTimeline
from webnn_py.trio_run import TrioRun
from webnn_py.unreported_errors import calling_line

if TYPE_CHECKING:
    from webnn_py.script.context import MLContext


class CopiesBuffers:
    """What a context does with buffers' bytes without the host. Not in the specification."""

    _device: Device
    _timeline: DeviceTimeline
    _trio_run: TrioRun

    @enable_ki_protection
    def copy_buffer(
        self,
        source: MLBuffer,
        destination: MLBuffer,
        *,
        source_offset: int = 0,
        destination_offset: int = 0,
        count: int | None = None,
    ) -> None:
        """Copy elements from one buffer to another when everything enqueued before has run.

        The bytes stay on the device; on one of another package that cannot copy, they go through the host, which
        ``statistics().host_copies`` counts. Elements are counted in row-major order. Neither buffer has to be readable
        or writable, and their shapes may differ. Nothing is done where there are no elements to copy.

        Args:
            source: a buffer of this context; it may be constant.
            destination: another one, or the same, of the same data type; not constant.
            source_offset: the first element to copy.
            destination_offset: where that goes.
            count: how many elements; None for the rest of the source.

        Raises:
            TypeError: a buffer is another context's, destroyed, or a constant destination; the data types differ; an
                offset or the count is no integer or leads out of a buffer; or the ranges overlap.

        A failure on the device is told by the next ``read_buffer()`` of ``destination``, and so is one that had left
        ``source`` without data. A destination that holds no data for such a reason does so until it is wholly written.
        """
        self._trio_run.check("copy_buffer()")
        try:
            region = self._copied(source, destination, source_offset, destination_offset, count)
        except Exception as error:
            refused(cast("MLContext", self), "copy_buffer", error, source, destination)
            raise
        if region.count:
            work = partial(self._device.copy, source._storage, destination._storage, region, calling_line())
            self._timeline.enqueue(DeviceOperation("copy_buffer", work))

    @enable_ki_protection
    def clear_buffer(self, buffer: MLBuffer) -> None:
        """Set all bytes of a buffer to zero when everything enqueued before has run.

        Args:
            buffer: a buffer of this context, not constant; it need not be writable.

        Raises:
            TypeError: the buffer is another context's, destroyed or constant.

        A failure on the device is told by the next ``read_buffer()``.
        """
        self._trio_run.check("clear_buffer()")
        try:
            self._check_buffer("clear_buffer", buffer)
            if buffer.constant:
                raise TypeError(f"clear_buffer(): buffer is {buffer!r}, which is constant; it must not be")
        except Exception as error:
            refused(cast("MLContext", self), "clear_buffer", error, buffer)
            raise
        work = partial(self._device.clear, buffer._storage, calling_line())
        self._timeline.enqueue(DeviceOperation("clear_buffer", work))

    def _copied(
        self, source: MLBuffer, destination: MLBuffer, source_offset: object, destination_offset: object, count: object
    ) -> CopyRegion:
        """Check and return the ranges of two buffers that are copied."""
        for name, buffer in (("source", source), ("destination", destination)):
            if type(buffer) is not MLBuffer:
                raise TypeError(
                    f"copy_buffer(): {name} is {shown(buffer)}; it must be an MLBuffer{forgotten_await(buffer)}"
                )
            self._check_buffer("copy_buffer", buffer)
        if destination.constant:
            raise TypeError(f"copy_buffer(): destination is {destination!r}, which is constant; it must not be")
        if source.data_type != destination.data_type:
            raise TypeError(
                f"copy_buffer(): source is {source.data_type} and destination {destination.data_type}; their data "
                "types must be the same (cast() converts, in a graph)"
            )
        if source.data_type in FOUR_BITS:
            raise TypeError(f"copy_buffer(): source is {source.data_type}, of which two lie in a byte; read it instead")
        begin = _count("source_offset", source_offset)
        target = _count("destination_offset", destination_offset)
        source_count = source._descriptor.element_count
        number = max(source_count - begin, 0) if count is None else _count("count", count)
        _check_range("source", begin, number, source_count)
        _check_range("destination", target, number, destination._descriptor.element_count)
        if source is destination and begin < target + number and target < begin + number:
            raise TypeError(
                f"copy_buffer(): elements {begin} to {begin + number} are copied to {target} of the same buffer; the "
                "ranges must not overlap"
            )
        return CopyRegion(begin, target, number)

    def _check_buffer(self, method: str, buffer: MLBuffer) -> None:
        raise NotImplementedError


def _count(name: str, value: object) -> int:
    try:
        return unsigned_long(value)
    except TypeError as error:
        raise TypeError(f"copy_buffer(): {name} {error}") from None


def _check_range(name: str, offset: int, count: int, there: int) -> None:
    if offset > there:
        raise TypeError(f"copy_buffer(): {name}_offset is {offset}; the {name} has {there} elements")
    if offset + count > there:
        raise TypeError(
            f"copy_buffer(): {count} elements from {name}_offset {offset} are more than the {name} has: {there}"
        )
