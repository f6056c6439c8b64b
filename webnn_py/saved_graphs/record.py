"""The record that is saved of a compiled graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from webnn_py.descriptors import MLOperandDescriptor

Bytes = memoryview
"""An array of unsigned bytes, in one piece."""

MOST_BYTES: Final = 2**32
"""The most bytes of a folder of saved graphs, unless ``graph_cache_bytes`` says otherwise."""


class UnusableFileError(Exception):
    """A file that is not there, or that holds no graph which can be loaded here; the text says why."""


@attrs.frozen(eq=False)
class SavedCode:
    """A compiled graph, in a form of its device's or as nodes.

    Attributes:
        form: which form it is.
        document: what JSON can say of it: dicts with strings for keys, lists, strings, numbers, booleans, None.
        blobs: the bytes that ``document`` speaks of, by their indices.
    """

    form: str
    document: Any
    blobs: tuple[Bytes, ...]


@attrs.frozen(eq=False)
class SavedGraph:
    """A compiled graph, and what a dispatch has to give it.

    Attributes:
        inputs: the descriptors of its inputs, by name.
        outputs: the descriptors of its outputs, by name.
        operator_count: how many operators were drawn.
        code: what its device made of it.
    """

    inputs: Mapping[str, MLOperandDescriptor]
    outputs: Mapping[str, MLOperandDescriptor]
    operator_count: int
    code: SavedCode


def as_json(descriptor: MLOperandDescriptor) -> list[Any]:
    """Return a descriptor as JSON says it."""
    return [descriptor.data_type, list(descriptor.shape)]


def from_json(written: Any) -> MLOperandDescriptor:
    """Return the descriptor that :func:`as_json` wrote."""
    data_type, shape = written
    return MLOperandDescriptor(data_type, shape)
