"""Give scalars the rank of tensors whose last axis has one element: ``rules.in_rank_of`` documents the reason."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Node, Value


def give_numbers_ranks(node: Node, current: Node) -> Mapping[Value, Value] | None:
    """Return the replacement of an elementwise operator with a constant scalar of lower rank; None for other nodes."""
    shape = node.outputs[0].shape
    if len(node.inputs) == 1 or not shape or shape[-1] != 1:
        return None
    operands = {name: _ranked(value, len(shape)) for name, value in current.operands.items()}
    if all(operands[name] is value for name, value in current.operands.items()):
        return None
    return {node.results[0]: attrs.evolve(current, operands=operands).results[0]}


def _ranked(value: Value | tuple[Value, ...], rank: int) -> Value:
    """Return a constant of one element in a rank; any other value as it is."""
    assert isinstance(value, Value)  # noqa: S101 - no element-wise operator has a sequence
    if not isinstance(value, Constant) or not isinstance(value.data, np.ndarray):
        return value
    if value.data.size != 1 or value.descriptor.rank == rank:
        return value
    descriptor = MLOperandDescriptor(value.descriptor.data_type, (1,) * rank)
    return Constant(descriptor, value.data.reshape(descriptor.shape), value.key)
