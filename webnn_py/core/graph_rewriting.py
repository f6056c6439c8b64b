"""Changes of graphs: the walk that replaces nodes, the builder that draws what replaces them, and decompositions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from webnn_py.core.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.declaration import Operator, of_operands
from webnn_py.core.operators.idl import MLNumber
from webnn_py.core.operators.methods import Builder
from webnn_py.core.operators.operand import MLOperand


class RewriteBuilder(Builder):
    """A builder below the script's layer, whose operands stand for values of the graph.

    It has the methods of ``MLGraphBuilder`` that draw operators.

    Args:
        label: the label of every node that is built without one.
        drawn: the places of the operators that all nodes compute.
    """

    def __init__(self, label: str = "", drawn: tuple[int, ...] = ()) -> None:
        self._label = label
        self._drawn = drawn
        self._values: dict[MLOperand, Value] = {}

    def operand(self, value: Value) -> MLOperand:
        """Return an operand that stands for a value."""
        operand = MLOperand.from_descriptor(value.descriptor)
        self._values[operand] = value
        return operand

    def value(self, operand: MLOperand) -> Value:
        """Return the value that an operand stands for."""
        return self._values[operand]

    def constant(
        self, value: MLNumber | bytes, /, *, data_type: MLOperandDataType, shape: Sequence[int] | None = None
    ) -> MLOperand:
        """Return a scalar constant, or a constant of a shape from its bytes."""
        if isinstance(value, bytes):
            data = np.frombuffer(value, data_type).reshape(shape or ())
        else:
            data = np.array(cast_number(value, data_type), data_type)
        return self.operand(Constant(MLOperandDescriptor(data_type, data.shape), data))

    def draw(self, node: Node) -> Sequence[Value]:
        """Return the values of a node's outputs."""
        return node.results

    def append(self, operator: Operator[..., Any], /, *args: object, **kwargs: object) -> Any:
        """Add one operator, as ``MLGraphBuilder.append()`` does; operands are not checked against limits."""
        arguments = operator.bind(args, kwargs)
        outputs = tuple(operator.infer(arguments))
        values = of_operands(arguments.operands, self.value)
        node = Node(operator, values, arguments.options(), outputs, arguments.label or self._label, self._drawn)
        operands = [self.operand(value) for value in self.draw(node)]
        return operands if operator.returns_sequence else operands[0]


# --- the walk -------------------------------------------------------------------------------------------------------

Replace = Callable[[Node, Node], Mapping[Value, Value] | None]
"""(a node, the same node with its replaced operands) → the replacements of values that this node or later nodes of the
graph give; None where the node stays."""


def rewrite(graph: Graph, replace: Replace, replaced: dict[Value, Value] | None = None) -> Graph:
    """Return the graph with other nodes in place of some.

    Args:
        graph: the graph.
        replace: returns the replacements for a node's results.
        replaced: an empty dictionary to record each replaced value with its replacement, if ``replace`` reads it.
    """
    replaced = {} if replaced is None else replaced
    is_changed = False
    stay = replaced.keys().isdisjoint  # the view of the keys follows the dictionary
    for node in graph.nodes:
        current = node if stay(node.inputs) else with_operands(node, replaced)
        built = replace(node, current)
        is_changed = is_changed or built is not None
        if current is not node:
            for result, same in zip(node.results, current.results, strict=True):
                replaced.setdefault(result, same)
        if built is not None:
            replaced.update(built)
    if not is_changed:
        return graph
    rewritten = Graph.reaching({name: replaced.get(value, value) for name, value in graph.outputs.items()})
    # Inputs that nothing reads any more stay inputs.
    return Graph({**graph.inputs, **rewritten.inputs}, rewritten.outputs, rewritten.nodes)


def with_operands(node: Node, replaced: Mapping[Value, Value]) -> Node:
    """Return the node with its replaced operands."""
    operands: dict[str, Value | tuple[Value, ...]] = {}
    for name, value in node.operands.items():  # a loop, as a comprehension that holds ``replaced`` takes twice as long
        if isinstance(value, tuple):
            operands[name] = tuple([replaced.get(item, item) for item in value])
        else:
            operands[name] = replaced.get(value, value)
    return Node(node.operator, operands, node.options, node.outputs, node.label, node.drawn)


# --- decompositions -------------------------------------------------------------------------------------------------


def decomposed(node: Node, builder: RewriteBuilder) -> list[Value] | None:
    """Draw the decomposition of a node's operator, and return the values of its outputs; None for a primitive.

    Raises:
        ValueError: an operand of a composite is no constant, though its decomposition needs the elements.
    """
    decompose = node.operator.decomposition
    if decompose is None:
        return None
    tables = node.operator.tables if isinstance(node.operator, Composite) else ()
    operands: dict[str, Any] = of_operands(
        {name: value for name, value in node.operands.items() if name not in tables}, builder.operand
    )
    for name in tables:
        if name in node.operands:
            operands[name] = _elements(node, name)
    drawn = decompose(builder, **{**node.options, **operands})
    return [builder.value(operand) for operand in (drawn if isinstance(drawn, list) else [drawn])]


def _elements(node: Node, name: str) -> np.ndarray[Any, Any]:
    value = node.operands[name]
    if not isinstance(value, Constant) or not isinstance(value.data, np.ndarray):
        raise ValueError(f"{node}: {name} is no constant with known elements; it must be one, on this device")  # noqa: TRY004
    return value.data
