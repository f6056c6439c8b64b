"""The greatest or least of some values that are stacked to find it, found without the stack, or of what is along axes.

onnxruntime's reductions pass over NaN, so guards look at what they read; Max and Min do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webnn_py.device.reshapes import origin_of, reshaped
from webnn_py.graph import Graph, Node, Output, Value
from webnn_py.operators import arithmetic, movement
from webnn_py.operators.declaration import Operator
from webnn_py.rewriting.walk import NodeRule

OF_TWO: Final[Mapping[str, Operator[Any, Any]]] = {"reduce_max": arithmetic.max_, "reduce_min": arithmetic.min_}

MOST: Final = 4
"""Values in a stack: of more, so many nodes take longer."""


def stacked_extremes(graph: Graph) -> NodeRule | None:
    """What finds the greatest or least of stacked values without the stack; None where a graph has no such.

    And of what is the greatest or least along one axis at once, along both axes.
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
    """Whether a reduction is of another one of its kind that kept its axes as it does, each of axes that it says."""
    value = node.inputs[0]
    if not isinstance(value, Output) or value.node.operator is not node.operator:
        return False
    one, other = value.node.options, node.options
    are_alike = one["keep_dimensions"] == other["keep_dimensions"]
    return are_alike and bool(one["axes"]) and bool(other["axes"])


def _along_all_axes(reduction: Node, first: Node) -> Value:
    """What a reduction makes of another one."""
    axes: tuple[int, ...] = tuple(first.options["axes"])
    left = [axis for axis in range(first.operand("input").rank) if first.options["keep_dimensions"] or axis not in axes]
    places = {*axes, *(left[axis] for axis in reduction.options["axes"])}
    options = {**reduction.options, "axes": tuple(sorted(places))}
    drawn = (*first.drawn, *reduction.drawn)
    return Node(reduction.operator, first.operands, options, reduction.outputs, reduction.label, drawn).results[0]


def _is_of_stack(node: Node) -> bool:
    """Whether a reduction is along the axis along which a few values of one element each were joined."""
    stack = node.inputs[0]
    if not isinstance(stack, Output) or stack.node.operator is not movement.concat:
        return False
    if node.outputs[0].data_type != "float32":
        return False
    axis, values = stack.node.options["axis"], stack.node.inputs
    are_single = all(value.descriptor.shape[axis] == 1 for value in values)
    return are_single and node.options["axes"] == (axis,) and 1 < len(values) <= MOST


def _extreme(reduction: Node, stack: Node) -> Value:
    """The extreme of what is stacked, of what it was before it got the axis if all was alike."""
    values = [origin_of(value) for value in stack.inputs]
    if len({value.descriptor.shape for value in values}) > 1:
        values = [*stack.inputs]
    value, drawn = values[0], (*stack.drawn, *reduction.drawn)
    for other in values[1:]:
        operands, outputs = {"a": value, "b": other}, (value.descriptor,)
        operator = OF_TWO[reduction.operator.name]
        value = Node(operator, operands, {}, outputs, reduction.label, drawn).results[0]
    return reshaped(value, reduction.outputs[0].shape, reduction)
