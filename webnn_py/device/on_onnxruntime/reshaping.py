"""Fewer reshapes: each takes microseconds to run, and keeps what is before and behind from being computed as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.reshapes import is_reshape, origin_of, reshaped
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import indexing, movement
from webnn_py.rewriting import Replace

BY_AXES: Final = frozenset({"quantize_linear", "dequantize_linear"})
"""Element-wise operators whose operands have as many axes as each other."""


def reshaping(graph: Graph) -> Replace | None:
    """What puts reshapes behind the element-wise operators and slices that read them, and one in place of several.

    A reshape of a constant becomes a constant, and one of what is gathered from one place often none.

    Args:
        graph: what to rewrite.

    Returns:
        What replaces nodes of the graph; None where it has no reshape.
    """
    return _Reshaping(graph).replace if any(is_reshape(node) for node in graph.nodes) else None


class _Reshaping:
    """What :func:`reshaping` does to one graph."""

    def __init__(self, graph: Graph) -> None:
        self._readers: dict[Value, list[Node]] = defaultdict(list)
        for node in graph.nodes:
            for value in node.inputs:
                if not isinstance(value, Constant):  # nothing moves behind those
                    self._readers[value].append(node)
        self._outputs = set(graph.outputs.values())
        self._squeezed = _squeezed(graph)

    def replace(self, node: Node, current: Node) -> Mapping[Value, Value] | None:
        """What takes the place of a node's result."""
        if not is_reshape(current):
            value = self._other(node, current)
            return None if value is None else {node.results[0]: value}
        value = _as_one(current)
        is_constant_output = isinstance(value, Constant) and node.results[0] in self._outputs
        return None if value is current.results[0] or is_constant_output else {node.results[0]: value}

    def _other(self, node: Node, current: Node) -> Value | None:
        """What takes the place of the result of an operator that is no reshape."""
        result = node.results[0]
        if node.operator is movement.slice_:
            return _slice_before(current) if self._moves(result) and self._moves(node.inputs[0]) else None
        if node.operator is indexing.gather:
            is_reshaped = result not in self._outputs and all(map(is_reshape, self._readers[result]))
            return _as_slice(current) if is_reshaped else None
        if not _takes_any_shape(node) or not _reads_reshaped(current):
            return None
        return _moved(current) if all(self._moves(value) for value in node.inputs if _is_wide(value, node)) else None

    def _moves(self, value: Value) -> bool:
        """Whether no reshape has to stay for others that read a value."""
        return value not in self._outputs and all(map(self._lets_pass, self._readers[value]))

    def _lets_pass(self, node: Node) -> bool:
        """Whether an operator may read what a reshape was given."""
        is_slice = node.operator is movement.slice_ and node.inputs[0] in self._squeezed
        return is_slice or is_reshape(node) or _takes_any_shape(node)


def _takes_any_shape(node: Node) -> bool:
    return node.operator.is_elementwise and node.operator.name not in BY_AXES


def _reads_reshaped(node: Node) -> bool:
    return any(isinstance(value, Output) and is_reshape(value.node) for value in node.inputs)


def _is_wide(value: Value, node: Node) -> bool:
    """Whether an operand of an element-wise operator gives its result the shape, and is no number beside that."""
    count = value.descriptor.element_count
    return count > 1 or (node.outputs[0].element_count == 1 and not isinstance(value, Constant))


def _squeezed(graph: Graph) -> frozenset[Value]:
    """What is made by reshapes that do no more than add and remove axes of size 1, and what is made of that."""
    found: set[Value] = set()
    for node in graph.nodes:
        result = node.results[0]
        if is_reshape(node):
            is_squeezed = _long(origin_of(result).descriptor) == _long(result.descriptor)
        elif _takes_any_shape(node) or node.operator is movement.slice_:
            is_squeezed = not found.isdisjoint(node.inputs)
        else:
            is_squeezed = False
        if is_squeezed:
            found.add(result)
    return frozenset(found)


def _long(descriptor: MLOperandDescriptor) -> list[int]:
    """The sizes of the axes that are longer than 1."""
    return [size for size in descriptor.shape if size > 1]


def _as_one(node: Node) -> Value:
    """What a reshape makes, of what all reshapes before it were given; itself where that is not less to do."""
    value, descriptor = origin_of(node.operands["input"]), node.outputs[0]
    if value.descriptor.shape == descriptor.shape:
        return value
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray):
        return Constant(descriptor, value.data.reshape(descriptor.shape), value.key)
    is_least = value is node.operands["input"] and node.operator is movement.reshape
    return node.results[0] if is_least else reshaped(value, descriptor.shape, node)


def _moved(node: Node) -> Value | None:
    """The result of an element-wise operator, made of what its operands were before they were reshaped alike."""
    operands: dict[str, Value] = {}
    shapes = set()
    for name, value in node.operands.items():
        assert isinstance(value, Value)  # noqa: S101 - no element-wise operator has a sequence
        operands[name] = value
        if _is_wide(value, node):
            operands[name] = origin = origin_of(value)
            if origin is value or value.descriptor.shape != node.outputs[0].shape:
                return None
            shapes.add(origin.descriptor.shape)
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    if any(value.descriptor.rank > len(shape) for value in operands.values()):
        return None
    moved = attrs.evolve(node, operands=operands, outputs=(MLOperandDescriptor(node.outputs[0].data_type, shape),))
    return reshaped(moved.results[0], node.outputs[0].shape, node)


def _slice_before(node: Node) -> Value | None:
    """What a slice makes of a value that got axes of size 1, or lost some: those are of the slice."""
    value = node.inputs[0]
    origin = origin_of(value)
    if origin is value or _long(origin.descriptor) != _long(value.descriptor):
        return None
    if node.outputs[0].element_count == value.descriptor.element_count:  # also of a number, which has no axis to cut
        return reshaped(origin, node.outputs[0].shape, node)
    options = node.options
    strides = options["strides"] or [1] * value.descriptor.rank
    along = zip(value.descriptor.shape, options["starts"], options["sizes"], strides, strict=True)
    cuts = iter([cut for size, *cut in along if size > 1])
    every = [next(cuts) if size > 1 else [0, 1, 1] for size in origin.descriptor.shape]
    return reshaped(_slice(origin, every, node), node.outputs[0].shape, node)


def _as_slice(node: Node) -> Value | None:
    """What is gathered from one place that is known: a slice, reshaped."""
    value, place = node.inputs
    if not isinstance(place, Constant) or not isinstance(place.data, np.ndarray) or place.data.size != 1:
        return None
    shape, axis = value.descriptor.shape, node.options["axis"]
    start = min(max(int(place.data.item()), -shape[axis]), shape[axis] - 1) % shape[axis]
    cuts = [[start, 1, 1] if number == axis else [0, size, 1] for number, size in enumerate(shape)]
    return reshaped(_slice(value, cuts, node), node.outputs[0].shape, node)


def _slice(value: Value, cuts: Sequence[Sequence[int]], like: Node) -> Value:
    """A slice by where it begins, how long it is, and the step along each axis."""
    starts, sizes, strides = (tuple(numbers) for numbers in zip(*cuts, strict=True))
    shape = tuple(-(-size // stride) for size, stride in zip(sizes, strides, strict=True))
    output = MLOperandDescriptor(value.descriptor.data_type, shape)
    options = {"starts": starts, "sizes": sizes, "strides": strides}
    return Node(movement.slice_, {"input": value}, options, (output,), like.label, like.drawn).results[0]
