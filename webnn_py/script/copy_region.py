"""The ranges of elements that ``MLContext.copy_buffer()`` copies."""

from webnn_py.descriptors import FOUR_BITS, unsigned_long
from webnn_py.device.backend import CopyRegion
from webnn_py.script.buffer import MLBuffer


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
