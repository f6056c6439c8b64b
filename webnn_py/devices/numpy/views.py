"""Find the nodes of a graph that are views of their operand."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Node, Value
from webnn_py.devices.numpy.table import Array, View, entry_of


def find_views(nodes: Iterable[Node]) -> dict[Node, View]:
    """Return the nodes that are views of their operand, where its strides allow it.

    Tests arrays with the right shapes and strides and one element of memory: views never read elements.
    """
    layouts: dict[Value, Array] = {}
    views: dict[Node, View] = {}
    for node in nodes:
        make = entry_of(node).view
        if make is None:
            continue
        base = next(iter(node.inputs))
        view = make(node)
        try:
            layouts[node.results[0]] = view(layouts.get(base, _dense(base.descriptor)))
        except ValueError:
            continue
        views[node] = view
    return views


def _dense(descriptor: MLOperandDescriptor) -> Array:
    """Return an array with a contiguous layout, but without memory for its elements."""
    memory = np.empty(1, descriptor.data_type)
    strides = [memory.itemsize * math.prod(descriptor.shape[axis + 1 :]) for axis in range(descriptor.rank)]
    return as_strided(memory, descriptor.shape, strides)
