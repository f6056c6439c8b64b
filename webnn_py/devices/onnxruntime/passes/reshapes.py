"""Move and merge reshapes: each takes microseconds to run, and keeps the operators around it from being fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Output, Value
from webnn_py.core.operators import indexing, movement
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.onnxruntime.passes.reductions_before_reshapes import BEFORE, broadcast_shape, sliced
from webnn_py.devices.onnxruntime.passes.scalar_ranks import give_numbers_ranks
from webnn_py.devices.rewriting.node_rules import NodeRule
from webnn_py.devices.rewriting.reshapes import acts_as_reshape, long, origin_of, reshaped

BY_AXES: Final = frozenset({"quantize_linear", "dequantize_linear"})
"""Elementwise operators whose operands must all have the same rank."""


MOVING: Final = frozenset({indexing.gather, movement.reshape, movement.transpose})
"""Operators that may act as reshapes, or become slices."""

PARTS: Final = frozenset({"pad", "slice", "split"})
"""Operators that need a reshape of each result, unless the readers of the results let reshapes pass, too."""


def move_reshapes(graph: Graph) -> NodeRule | None:
    """Return the rule that moves reshapes behind operators that can read the unreshaped values, and merges reshapes.

    Reshapes of constants are folded, and gathers of a constant index become slices, often without a reshape.

    Args:
        graph: the graph to rewrite.

    Returns:
        The rule; None where the graph has no reshape.
    """
    has_reshapes = any(acts_as_reshape(node) for node in graph.nodes)
    return NodeRule(_Reshaping(graph).replace, _is_for) if has_reshapes else None


def _is_for(operator: Operator[..., Any]) -> bool:
    """Return whether an operator may act as a reshape, or let one pass."""
    return operator in MOVING or operator.name in BEFORE or _is_of_elements(operator)


class _Reshaping:
    """The state of :func:`move_reshapes` for one graph."""

    def __init__(self, graph: Graph) -> None:
        self._outputs = set(graph.outputs.values())
        self._squeezed = _squeezed(graph)
        self._made: dict[tuple[Value, tuple[int, ...]], Value] = {}
        # Values whose reshapes must stay, values with readers other than reshapes, and values with two reshapes.
        self._stuck, self._read_otherwise, self._read_twice = set(self._outputs), set(self._outputs), set[Value]()
        read: set[Value] = set()
        for node in reversed(graph.nodes):
            if acts_as_reshape(node):
                value = node.inputs[0]
                (self._read_twice if value in read else read).add(value)
                continue
            self._read_otherwise.update(node.inputs)
            if not self._lets_pass(node):
                self._stuck.update(node.inputs)

    def replace(self, node: Node, current: Node) -> Mapping[Value, Value] | None:
        """Return the replacements of a node's results; None where the node stays."""
        if acts_as_reshape(current):
            value = self._only(_between_reshapes(current) if self._transposes_alone(node) else _as_one(current))
            is_constant_output = isinstance(value, Constant) and node.results[0] in self._outputs
            return None if value is current.results[0] or is_constant_output else {node.results[0]: value}
        made = self._other(node, current)
        return None if made is None else dict(zip(node.results, made, strict=True))

    def _only(self, value: Value) -> Value:
        """Return the first reshape of a value to a shape, in place of all equal ones."""
        if isinstance(value, Output) and value.node.operator is movement.reshape:
            return self._made.setdefault((value.node.inputs[0], value.descriptor.shape), value)
        return value

    def _other(self, node: Node, current: Node) -> Sequence[Value] | None:
        """Return the replacements of the results of an operator other than a reshape; None where it stays."""
        if node.operator is indexing.gather:
            return None if node.results[0] in self._read_otherwise else _as_slice(current)
        if not any(isinstance(value, Output) and acts_as_reshape(value.node) for value in current.inputs):
            return None
        if node.operator.name in BEFORE:
            is_moved = self._lets_pass(node) and self._stuck.isdisjoint(_moving(node))
            return BEFORE[node.operator.name](current) if is_moved else None
        if not _is_of_elements(node.operator):
            return None
        return (
            _moved(current) if all(value not in self._stuck for value in node.inputs if _is_wide(value, node)) else None
        )

    def _lets_pass(self, node: Node) -> bool:
        """Return whether an operator other than a reshape may read the value before a reshape."""
        if node.operator.name not in BEFORE:
            return _is_of_elements(node.operator)
        is_apart = node.operator.name in PARTS and not self._stuck.isdisjoint(node.results)
        return node.results[0] in self._squeezed and not is_apart

    def _transposes_alone(self, node: Node) -> bool:
        """Return whether a reshape is the only reader of a transpose."""
        value = node.inputs[0]
        is_alone = value not in self._read_otherwise and value not in self._read_twice
        return is_alone and isinstance(value, Output) and value.node.operator is movement.transpose


def _moving(node: Node) -> Sequence[Value]:
    """Return the operands of an operator along axes that must have been reshaped for it to be moved."""
    return node.inputs if node.operator is movement.concat else node.inputs[:1]


def _is_of_elements(operator: Operator[..., Any]) -> bool:
    return operator.is_elementwise and operator.name not in BY_AXES


def _is_wide(value: Value, node: Node) -> bool:
    """Return whether an operand of an elementwise operator determines the result's shape; broadcast scalars do not."""
    if value.descriptor.element_count > 1:
        return True
    return not isinstance(value, Constant) and node.outputs[0].element_count == 1


def _squeezed(graph: Graph) -> frozenset[Value]:
    """Return the results of reshapes that only add and remove axes of size 1, and the values computed from these."""
    found: set[Value] = set()
    origins: dict[Value, Value] = {}
    for node in graph.nodes:
        if acts_as_reshape(node):
            origin = origins[node.results[0]] = origins.get(node.inputs[0], node.inputs[0])
            is_squeezed = long(origin.descriptor.shape) == long(node.outputs[0].shape)
        elif not found or found.isdisjoint(node.inputs):
            continue
        elif _is_of_elements(node.operator):
            is_squeezed = all(value in found or not _is_wide(value, node) for value in node.inputs)
        else:
            is_squeezed = node.operator.name in BEFORE and found.issuperset(_moving(node))
        if is_squeezed:
            found.update(node.results)
    return frozenset(found)


def _as_one(node: Node) -> Value:
    """Return a reshape of the value before all reshapes in a row; the node's own result where that saves nothing."""
    value, descriptor = origin_of(node.value("input")), node.outputs[0]
    if value.descriptor.shape == descriptor.shape:
        return value
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray):
        return Constant(descriptor, value.data.reshape(descriptor.shape), value.key)
    is_least = value is node.operands["input"] and node.operator is movement.reshape
    return node.results[0] if is_least else reshaped(value, descriptor.shape, node)


def _between_reshapes(node: Node) -> Value:
    """Return a reshape of a transpose of a reshape as one transpose, where its axes longer than 1 stay whole."""
    before = node.operands["input"]
    if not isinstance(before, Output) or before.node.operator is not movement.transpose:
        return _as_one(node)
    value, output, order = before.node.inputs[0], node.outputs[0], before.node.options["permutation"]
    origin = origin_of(value)
    shape, rank = origin.descriptor.shape, value.descriptor.rank
    are_long = (long(shape), long(before.descriptor.shape)) == (long(value.descriptor.shape), long(output.shape))
    if origin is value or not are_long or len(shape) != output.rank:
        return _as_one(node)
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    ranks = {axis: axes[count] for count, axis in enumerate(a for a in range(rank) if value.descriptor.shape[a] > 1)}
    of_long = iter([ranks[axis] for axis in order or range(rank)[::-1] if axis in ranks])
    of_one = iter([axis for axis, size in enumerate(shape) if size == 1])
    options = {"permutation": tuple([next(of_long if size > 1 else of_one) for size in output.shape])}
    like = before.node
    return Node(movement.transpose, {"input": origin}, options, (output,), like.label, like.drawn).results[0]


def _moved(node: Node) -> Sequence[Value] | None:
    """Return the result of an elementwise operator, computed on its operands before a common reshape; else None."""
    output = node.outputs[0]
    shape = _shape_before(node)
    if shape is None:
        return None
    operands: dict[str, Value] = {}
    for name, value in node.operands.items():
        assert isinstance(value, Value)  # noqa: S101 - no element-wise operator has a sequence
        before = _as_before(value, output.shape, shape) if _is_wide(value, node) else value
        if before is None or before.descriptor.rank > len(shape):
            return None
        operands[name] = before
    outputs = (MLOperandDescriptor(output.data_type, shape),)
    moved = Node(node.operator, operands, node.options, outputs, node.label, node.drawn)
    result = moved.results[0]
    return [reshaped((give_numbers_ranks(moved, moved) or {}).get(result, result), output.shape, node)]


def _shape_before(node: Node) -> tuple[int, ...] | None:
    """Return the shape before the reshape, common to all operands with the result's shape; None where they differ."""
    found, shape = None, node.outputs[0].shape
    for value in node.inputs:
        if isinstance(value, Output) and value.descriptor.shape == shape and _is_wide(value, node):
            before = origin_of(value).descriptor.shape
            if before == shape or found not in (None, before):
                return None
            found = before
    return found


def _as_before(value: Value, shape: tuple[int, ...], before: tuple[int, ...]) -> Value | None:
    """Return an operand in the shape that broadcasts to the shape before the reshape; None where there is none."""
    wanted = before if value.descriptor.shape == shape else broadcast_shape(value.descriptor.shape, shape, before)
    origin = origin_of(value)
    if wanted is None or origin.descriptor.shape == wanted:
        return None if wanted is None else origin
    if not isinstance(value, Constant) or not isinstance(value.data, np.ndarray):
        return None
    return Constant(MLOperandDescriptor(value.descriptor.data_type, wanted), value.data.reshape(wanted), value.key)


def _as_slice(node: Node) -> Sequence[Value] | None:
    """Return a gather with a constant index as a reshaped slice; None for other indices."""
    value, place = node.inputs
    if not isinstance(place, Constant) or not isinstance(place.data, np.ndarray) or place.data.size != 1:
        return None
    shape, axis = value.descriptor.shape, node.options["axis"]
    start = min(max(int(place.data.item()), -shape[axis]), shape[axis] - 1) % shape[axis]
    cuts = [[start, 1, 1] if number == axis else [0, size, 1] for number, size in enumerate(shape)]
    return [reshaped(sliced(value, cuts, node), node.outputs[0].shape, node)]
