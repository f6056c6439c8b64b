"""Feeds of profiles and finite checks: the data of each input of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from webnn_py.core.api.buffer_source import host_copy
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.device.backend import HostArray
from webnn_py.core.errors import UnknownError
from webnn_py.core.message_text import listed, shown


def byte_length(arrays: Mapping[str, HostArray]) -> int:
    """Return the bytes of all arrays."""
    return sum(array.nbytes for array in arrays.values())


def checked_feeds(
    method: str, feeds: object, descriptors: Mapping[str, MLOperandDescriptor], spare: Collection[str] = ()
) -> dict[str, HostArray]:
    """Return copies of the data of the inputs; data of ``spare`` inputs are left out.

    Raises:
        TypeError: the feeds do not match the inputs.
        UnknownError: there is no memory for the copies.
    """
    if not isinstance(feeds, Mapping):
        raise TypeError(f"{method}(): feeds is {shown(feeds)}; it must be a mapping of the inputs' names to arrays")
    if not descriptors.keys() <= feeds.keys() <= {*descriptors, *spare}:
        given, wanted = listed(sorted(map(str, feeds))), listed(sorted(descriptors))
        raise TypeError(f"{method}(): feeds are of {given}; the graph's inputs are {wanted}, each of which needs one")
    arrays = {}
    for name, descriptor in descriptors.items():
        try:
            arrays[name] = host_copy(feeds[name], descriptor)
        except (TypeError, UnknownError) as error:
            raise type(error)(f"{method}(): feeds[{shown(name)}]: {error}") from error.__cause__
    return arrays
