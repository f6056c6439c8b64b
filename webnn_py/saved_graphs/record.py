"""The record that is saved of a compiled graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.devices.saved_code import SavedCode

MOST_BYTES: Final = 2**32
"""The most bytes of a folder of saved graphs, unless ``most_bytes`` says otherwise."""


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
