"""The ranges of elements that ``MLContext.copy_buffer()`` and tensors of sessions copy."""

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.descriptors import FOUR_BITS, converted, unsigned_long
from webnn_py.core.device.backend import CopyRegion


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
    sizes = source._descriptor.element_count, destination._descriptor.element_count
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
