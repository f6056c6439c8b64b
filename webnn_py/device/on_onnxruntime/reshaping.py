"""Fewer reshapes: each takes microseconds to run, and keeps what is before and behind from being computed as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Constant, Graph, Node, Output, Value
from webnn_py.operators import movement
from webnn_py.rewriting import Replace

BY_AXES: Final = frozenset({"quantize_linear", "dequantize_linear"})
"""Element-wise operators whose operands have as many axes as each other."""

OF_ONE: Final = frozenset({"reduce_max", "reduce_mean", "reduce_min"})
"""Reductions that make of one element that element."""


def reshaping(graph: Graph) -> Replace | None:
    """What puts reshapes behind the element-wise operators that read them, and one in place of several.

    A reshape of a constant becomes a constant.

    Args:
        graph: what to rewrite.

    Returns:
        What replaces nodes of the graph; None where it has no reshape.
    """
    if not any(_is_reshape(node) for node in graph.nodes):
        return None
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.inputs:
            readers[value].append(node)
    outputs = set(graph.outputs.values())

    def moves(node: Node) -> bool:
        """Whether no reshape that an operator reads would have to stay for others."""
        wide = [value for value in node.inputs if value.descriptor.element_count > 1]
        return not any(
            value in outputs or not all(_is_reshape(reader) or _takes_any_shape(reader) for reader in readers[value])
            for value in wide
        )

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        if not _is_reshape(current):
            may_move = _takes_any_shape(node) and _reads_reshaped(current) and moves(node)
            made = _moved(current) if may_move else None
            return None if made is None else {node.results[0]: made}
        value = _as_one(current)
        is_constant_output = isinstance(value, Constant) and node.results[0] in outputs
        return None if value is current.results[0] or is_constant_output else {node.results[0]: value}

    return replace


def _is_reshape(node: Node) -> bool:
    """Whether a node moves no element: a reshape, or what it makes of each element alone is that element."""
    if node.operator.name not in OF_ONE:
        return node.operator.name == "reshape"
    return node.operand("input").element_count == node.outputs[0].element_count


def _takes_any_shape(node: Node) -> bool:
    return node.operator.is_elementwise and node.operator.name not in BY_AXES


def _reads_reshaped(node: Node) -> bool:
    return any(isinstance(value, Output) and _is_reshape(value.node) for value in node.inputs)


def _origin(value: object) -> Value:
    """What a value is a reshape of, or itself."""
    assert isinstance(value, Value)  # noqa: S101 - for type checkers
    while isinstance(value, Output) and _is_reshape(value.node):
        before = value.node.operands["input"]
        assert isinstance(before, Value)  # noqa: S101 - for type checkers
        value = before
    return value


def _as_one(node: Node) -> Value:
    """What a reshape makes, of what all reshapes before it were given; itself where that is not less to do."""
    value, descriptor = _origin(node.operands["input"]), node.outputs[0]
    if value.descriptor.shape == descriptor.shape:
        return value
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray):
        return Constant(descriptor, value.data.reshape(descriptor.shape), value.key)
    is_least = value is node.operands["input"] and node.operator.name not in OF_ONE
    return node.results[0] if is_least else _reshape(value, node).results[0]


def _reshape(value: Value, like: Node) -> Node:
    shape = like.outputs[0].shape
    output = MLOperandDescriptor(value.descriptor.data_type, shape)
    return Node(movement.reshape, {"input": value}, {"new_shape": shape}, (output,), like.label, like.drawn)


def _moved(node: Node) -> Value | None:
    """The result of an element-wise operator, made of what its operands were before they were reshaped alike."""
    operands: dict[str, Value] = {}
    shapes = set()
    for name, value in node.operands.items():
        assert isinstance(value, Value)  # noqa: S101 - no element-wise operator has a sequence
        operands[name] = value
        if value.descriptor.element_count > 1:
            operands[name] = origin = _origin(value)
            if origin is value or value.descriptor.shape != node.outputs[0].shape:
                return None
            shapes.add(origin.descriptor.shape)
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    if any(value.descriptor.rank > len(shape) for value in operands.values()):
        return None
    moved = attrs.evolve(node, operands=operands, outputs=(MLOperandDescriptor(node.outputs[0].data_type, shape),))
    return _reshape(moved.results[0], node).results[0]
