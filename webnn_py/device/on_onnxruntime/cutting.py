"""What is cut into pieces: constants at once, and all the slices of a value by one operator.

As onnxruntime does it, too, but it infers all shapes anew for either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import numpy as np

from webnn_py.device.reshapes import is_reshape
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import movement
from webnn_py.rewriting.walk import NodeRule, of_operators

MOST_BYTES: Final = 2**16
"""Of a constant that is cut at once: a thread of its own costs more than so many."""


def cutting(graph: Graph) -> NodeRule | None:
    """What cuts values of a graph with fewer operators; None where it has no such."""
    slices: dict[tuple[Value, int], dict[Node, int]] = defaultdict(dict)
    is_cut = False
    for node in graph.nodes:
        if node.operator is movement.slice_:
            axis = _axis(node)
            if axis is not None:
                slices[node.inputs[0], axis][node] = node.options["starts"][axis]
        elif node.operator is movement.split:
            is_cut = is_cut or is_split_constant(node)
    firsts = {next(iter(starts)): (axis, starts) for (_, axis), starts in slices.items() if _are_all(starts, axis)}
    if not firsts and not is_cut:
        return None

    outputs = set(graph.outputs.values())

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if is_split_constant(current):  # an output is what a node makes
            return _constants(node, current) if outputs.isdisjoint(node.results) else None
        found = firsts.get(node)
        if found is None or (isinstance(value := current.inputs[0], Output) and is_reshape(value.node)):
            return None
        return _pieces(value, *found)

    return of_operators(replace, movement.slice_, movement.split)


def is_split_constant(node: Node) -> bool:
    """Whether a node cuts a small constant that lies on the host."""
    if node.operator is not movement.split:
        return False
    value = node.inputs[0]
    return isinstance(value, Constant) and isinstance(value.data, np.ndarray) and value.data.nbytes <= MOST_BYTES


def _constants(node: Node, split: Node) -> Mapping[Value, Value]:
    """The pieces of a constant, in the place of a node's results."""
    value, axis = split.inputs[0], split.options["axis"]
    assert isinstance(value, Constant)  # noqa: S101 - for type checkers
    assert isinstance(value.data, np.ndarray)  # noqa: S101 - for type checkers
    ends = np.cumsum([output.shape[axis] for output in split.outputs])[:-1]
    arrays = np.split(value.data.reshape(value.descriptor.shape), ends, axis)
    return {
        result: Constant(result.descriptor, np.ascontiguousarray(array))
        for result, array in zip(node.results, arrays, strict=True)
    }


def _axis(node: Node) -> int | None:
    """The one axis along which a slice leaves out elements; None where that is not so, or it steps over some."""
    shape, options = node.operand("input").shape, node.options
    axes = [axis for axis, size in enumerate(shape) if options["sizes"][axis] != size]
    if len(axes) != 1 or any(stride != 1 for stride in options["strides"] or ()):
        return None
    return axes[0]


def _are_all(starts: Mapping[Node, int], axis: int) -> bool:
    """Whether slices are all of a value, one behind the other."""
    if len(starts) == 1:
        return False
    place = 0
    for node, start in sorted(starts.items(), key=lambda item: item[1]):
        if start != place:
            return False
        place += node.outputs[0].shape[axis]
    return place == next(iter(starts)).operand("input").shape[axis]


def _pieces(value: Value, axis: int, starts: Mapping[Node, int]) -> Mapping[Value, Value]:
    """What slices make, by one operator."""
    nodes = sorted(starts, key=starts.__getitem__)
    outputs = tuple([node.outputs[0] for node in nodes])
    options = {"splits": tuple([output.shape[axis] for output in outputs]), "axis": axis}
    drawn = tuple([place for node in nodes for place in node.drawn])
    split = Node(movement.split, {"input": value}, options, outputs, nodes[0].label, drawn)
    return dict(zip([node.results[0] for node in nodes], split.results, strict=True))
