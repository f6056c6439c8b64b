"""Find the nodes of a graph that are views of their operand."""

import math
from collections.abc import Iterable, Mapping

import attrs
import numpy as np
from numpy.lib.stride_tricks import as_strided

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_numpy.table import Array, View, entry_of
from webnn_py.graph import Node, Value


@attrs.frozen
class Views:
    """The nodes that are views of their operand, and the layouts of their results."""

    views: Mapping[Node, View]
    layouts: Mapping[Value, Array]

    def is_dense(self, value: Value) -> bool:
        """Return whether a value's elements are in row-major order without gaps."""
        layout = self.layouts.get(value)
        return layout is None or layout.flags.c_contiguous


def find_views(nodes: Iterable[Node]) -> Views:
    """Return the nodes that are views, where their operand's strides allow it.

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
    return Views(views, layouts)


def _dense(descriptor: MLOperandDescriptor) -> Array:
    """Return an array with a contiguous layout, but without memory for its elements."""
    memory = np.empty(1, descriptor.data_type)
    strides = [memory.itemsize * math.prod(descriptor.shape[axis + 1 :]) for axis in range(descriptor.rank)]
    return as_strided(memory, descriptor.shape, strides)
