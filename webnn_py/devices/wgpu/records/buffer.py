"""Pieces of memory, and the places of values in them."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from webnn_py.core.device.backend import HostArray, Storage
from webnn_py.devices.shared_constants import Identity
from webnn_py.devices.wgpu.records.layout import Layout

GRAIN: Final = 32
"""Buffers take a multiple of so many bytes: four of the longest elements, the unit in which kernels store."""


def padded(byte_length: int) -> int:
    """Return the bytes that a buffer for ``byte_length`` bytes takes."""
    return -(-byte_length // GRAIN) * GRAIN


@attrs.frozen(eq=False)
class Buffer:
    """A piece of memory that kernels read or write.

    Attributes:
        kind: an input or output of the dispatch, a constant, or a block: memory of the graph's, given later.
        byte_length: its size.
        name: of an input or output.
        data: of a constant: the host's bytes, the storage of a constant buffer, or a GPU buffer computed at build.
        identity: of a constant that graphs may have in common.
    """

    kind: Literal["input", "output", "constant", "block"]
    byte_length: int
    name: str = ""
    data: HostArray | Storage | object = None
    identity: Identity | None = None


@attrs.frozen
class Place:
    """The place of a value: a buffer and a layout."""

    buffer: Buffer
    layout: Layout
