"""Copies between buffers of a context, without the host: :func:`copy_buffer` and :func:`clear_buffer`."""

import math
from functools import partial

from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.argument_checks import check_buffer
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.refused_calls import report_refusal
from webnn_py.core.descriptors import FOUR_BITS, converted, unsigned_long
from webnn_py.core.handle import forgotten_await
from webnn_py.core.message_text import shown
from webnn_py.core.timelines.device_timeline import DeviceOperation
from webnn_py.core.unreported_errors import calling_line
from webnn_py.devices.copying import CopyRegion, clear, copy


@enable_ki_protection
def copy_buffer(  # noqa: PLR0913 - the ranges of both buffers
    context: MLContext,
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
        context: the context.
        source: a buffer of this context; it may be constant.
        destination: another one, or the same, of the same data type; not constant.
        source_offset: the first element to copy.
        destination_offset: where that goes.
        count: how many elements; None for the rest of the source.

    Raises:
        TypeError: a buffer is another context's, destroyed, or a constant destination; the data types differ; an
            offset or the count is no integer or leads out of a buffer; or the ranges overlap.

    A failure on the device is reported by the next ``read_buffer()`` of ``destination``, and so is an earlier one
    that left ``source`` without data. Such a destination holds no data until all of it is written.
    """
    context.device_timeline.trio_run.check("copy_buffer()")
    try:
        for name, buffer in (("source", source), ("destination", destination)):
            if type(buffer) is not MLBuffer:
                raise TypeError(
                    f"copy_buffer(): {name} is {shown(buffer)}; it must be an MLBuffer{forgotten_await(buffer)}"
                )
            check_buffer(context, "copy_buffer", buffer)
        region = checked_copy_region(source, destination, source_offset, destination_offset, count)
    except Exception as error:
        report_refusal(context, "copy_buffer", error, source, destination)
        raise
    if region.count:
        work = partial(copy, context.device, source.storage, destination.storage, region, calling_line())
        context.device_timeline.enqueue(DeviceOperation("copy_buffer", work))


@enable_ki_protection
def clear_buffer(context: MLContext, buffer: MLBuffer) -> None:
    """Set all bytes of a buffer to zero when everything enqueued before has run.

    Args:
        context: the context.
        buffer: a buffer of this context, not constant; it need not be writable.

    Raises:
        TypeError: the buffer is another context's, destroyed or constant.

    A failure on the device is reported by the next ``read_buffer()``.
    """
    context.device_timeline.trio_run.check("clear_buffer()")
    try:
        check_buffer(context, "clear_buffer", buffer)
        if buffer.constant:
            raise TypeError(f"clear_buffer(): buffer is {buffer!r}, which is constant; it must not be")
    except Exception as error:
        report_refusal(context, "clear_buffer", error, buffer)
        raise
    work = partial(clear, context.device, buffer.storage, calling_line())
    context.device_timeline.enqueue(DeviceOperation("clear_buffer", work))


def checked_copy_region(
    source: MLBuffer, destination: MLBuffer, source_offset: object, destination_offset: object, count: object
) -> CopyRegion:
    """Return the region to copy between two buffers of one context.

    Raises:
        TypeError: the destination is constant, the data types differ, an offset or the count is no integer or leads
            out of a buffer, or the ranges overlap.
    """
    if destination.constant:
        raise TypeError(f"copy_buffer(): destination is {destination!r}, which is constant; it must not be")
    if source.data_type != destination.data_type:
        raise TypeError(
            f"copy_buffer(): source is {source.data_type} and destination {destination.data_type}; their data "
            "types must be the same (cast() converts, in a graph)"
        )
    if source.data_type in FOUR_BITS:
        raise TypeError(f"copy_buffer(): source is {source.data_type}, of which a byte holds two; read it instead")
    sizes = math.prod(source.shape), math.prod(destination.shape)
    region = region_within("copy_buffer", sizes, source_offset, destination_offset, count)
    if source is destination:
        check_apart("copy_buffer", "buffer", region)
    return region


def region_within(
    method: str, sizes: tuple[int, int], source_offset: object, destination_offset: object, count: object
) -> CopyRegion:
    """Return the region to copy between a source and a destination of so many elements.

    Raises:
        TypeError: an offset or the count is no integer or leads out of one of them.
    """
    begin = converted(f"{method}(): source_offset", unsigned_long, source_offset)
    target = converted(f"{method}(): destination_offset", unsigned_long, destination_offset)
    rest = max(sizes[0] - begin, 0)
    number = rest if count is None else converted(f"{method}(): count", unsigned_long, count)
    _check_range(method, "source", begin, number, sizes[0])
    _check_range(method, "destination", target, number, sizes[1])
    return CopyRegion(begin, target, number)


def check_apart(method: str, what: str, region: CopyRegion) -> None:
    """Refuse a region whose ranges, of the same buffer or tensor, overlap.

    Raises:
        TypeError: they do.
    """
    begin, target, count = region.source_offset, region.destination_offset, region.count
    if abs(begin - target) < count:
        raise TypeError(
            f"{method}(): elements {begin} to {begin + count} are copied to {target} of the same {what}; the ranges "
            "must not overlap"
        )


def _check_range(method: str, name: str, offset: int, count: int, there: int) -> None:
    if offset > there:
        raise TypeError(f"{method}(): {name}_offset is {offset}; the {name} has {there} elements")
    if offset + count > there:
        raise TypeError(
            f"{method}(): {count} elements from {name}_offset {offset} are more than the {name} has: {there}"
        )
