"""Compute a maximum or minimum of stacked values without the stack, and nested ones along all axes at once.

onnxruntime's reductions ignore NaN, so guards check their operands; Max and Min propagate NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webnn_py.core.graph import Graph, Node, Output, Value
from webnn_py.core.operators import arithmetic, movement
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.rewriting.node_rules import NodeRule
from webnn_py.devices.rewriting.reshapes import origin_of, reshaped

OF_TWO: Final[Mapping[str, Operator[Any, Any]]] = {"reduce_max": arithmetic.max_, "reduce_min": arithmetic.min_}

MOST: Final = 4
"""The most values of a stack: for more, as many nodes take longer."""


def stacked_extremes(graph: Graph) -> NodeRule | None:
    """Return the rule that replaces a maximum or minimum of a stack, or of another one; None where a graph has none.

    A maximum of a maximum becomes one reduction along the axes of both, and so does a minimum of a minimum.
    """
    reductions = [node for node in graph.nodes if node.operator.name in OF_TWO]
    found = {node.inputs[0]: node for node in reductions if _is_of_stack(node) or _is_of_extremes(node)}
    if not found:
        return None

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        reduction = found.get(node.results[0])
        if reduction is None or not graph.has_one_reader(node.results[0]):
            return None
        make = _extreme if node.operator is movement.concat else _along_all_axes
        return {reduction.results[0]: make(reduction, current)}

    return NodeRule(replace, lambda operator: operator is movement.concat or operator.name in OF_TWO)


def _is_of_extremes(node: Node) -> bool:
    """Return whether a reduction reads one of its kind, both with explicit axes and equal ``keep_dimensions``."""
    value = node.inputs[0]
    if not isinstance(value, Output) or value.node.operator is not node.operator:
        return False
    one, other = value.node.options, node.options
    are_alike = one["keep_dimensions"] == other["keep_dimensions"]
    return are_alike and bool(one["axes"]) and bool(other["axes"])


def _along_all_axes(reduction: Node, first: Node) -> Value:
    """Return the result of a nested reduction as one reduction along the axes of both."""
    axes: tuple[int, ...] = tuple(first.options["axes"])
    left = [axis for axis in range(first.operand("input").rank) if first.options["keep_dimensions"] or axis not in axes]
    places = {*axes, *(left[axis] for axis in reduction.options["axes"])}
    options = {**reduction.options, "axes": tuple(sorted(places))}
    drawn = (*first.drawn, *reduction.drawn)
    return Node(reduction.operator, first.operands, options, reduction.outputs, reduction.label, drawn).results[0]


def _is_of_stack(node: Node) -> bool:
    """Return whether a reduction is along the axis of a concatenation of a few values of size 1 along that axis."""
    stack = node.inputs[0]
    if not isinstance(stack, Output) or stack.node.operator is not movement.concat:
        return False
    if node.outputs[0].data_type != "float32":
        return False
    axis, values = stack.node.options["axis"], stack.node.inputs
    are_single = all(value.descriptor.shape[axis] == 1 for value in values)
    return are_single and node.options["axes"] == (axis,) and 1 < len(values) <= MOST


def _extreme(reduction: Node, stack: Node) -> Value:
    """Return the elementwise extreme of the stacked values, before their reshapes where they have one shape there."""
    values = [origin_of(value) for value in stack.inputs]
    if len({value.descriptor.shape for value in values}) > 1:
        values = [*stack.inputs]
    value, drawn = values[0], (*stack.drawn, *reduction.drawn)
    for other in values[1:]:
        operands, outputs = {"a": value, "b": other}, (value.descriptor,)
        operator = OF_TWO[reduction.operator.name]
        value = Node(operator, operands, {}, outputs, reduction.label, drawn).results[0]
    return reshaped(value, reduction.outputs[0].shape, reduction)
