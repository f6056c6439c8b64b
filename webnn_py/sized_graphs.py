"""Graphs whose shapes have sizes that are known at dispatch only, and the same graphs when these are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import attrs

from webnn_py.descriptors import MAX_DIMENSION, MLOperandDescriptor, check_dimensions
from webnn_py.graph import Constant, Graph, Input, Node, Value
from webnn_py.message_text import in_brackets
from webnn_py.named_sizes.decisions import Sizes, Tracing
from webnn_py.named_sizes.expressions import SymbolicSize, named_size
from webnn_py.named_sizes.values import coverage, has_size, largest, values_of
from webnn_py.operators.declaration import Arguments, of_operands
from webnn_py.operators.limits import MAX_RANK
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused


def is_dynamic(graph: Graph) -> bool:
    """Return whether a shape has a size that is known at dispatch only: then one of an input has."""
    return any(has_size(value.descriptor.shape) for value in graph.inputs.values())


def is_dynamic_node(node: Node) -> bool:
    """Return whether what a node does depends on such a size."""
    descriptors = (*(value.descriptor for value in node.inputs), *node.outputs)
    return any(has_size(d.shape) for d in descriptors) or any(map(has_size, node.options.values()))


def at_sizes(descriptor: MLOperandDescriptor, sizes: Sizes) -> MLOperandDescriptor:
    """Return a descriptor when the names have these sizes."""
    return MLOperandDescriptor(descriptor.data_type, values_of(descriptor.shape, sizes))


def at_largest(descriptor: MLOperandDescriptor) -> MLOperandDescriptor:
    """Return a descriptor of the largest tensor that it may be."""
    return MLOperandDescriptor(descriptor.data_type, tuple(map(largest, descriptor.shape)))


@attrs.frozen
class DimensionPlaces:
    """The names of a graph's dimensions.

    Attributes:
        places: for each name an input, and its axis of that size.
        bounds: the least and the greatest size of each.
    """

    places: Mapping[str, tuple[str, int]]
    bounds: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, inputs: Mapping[str, MLOperandDescriptor]) -> Self:
        """Return the names of inputs' dimensions."""
        places: dict[str, tuple[str, int]] = {}
        bounds: dict[str, tuple[int, int]] = {}
        for name, axis, size in _dynamic_axes(inputs):
            places.setdefault(str(size), (name, axis))
            bounds[str(size)] = (size.low, size.high)
        return cls(places, bounds)

    @property
    def largest(self) -> dict[str, int]:
        """Every name at its largest size."""
        return {name: high for name, (_, high) in self.bounds.items()}

    def sizes(self, shapes: Mapping[str, Any]) -> dict[str, int]:
        """Return the size of each name, from the shapes of inputs, which fit."""
        return {name: shapes[given][axis] for name, (given, axis) in self.places.items()}


def _dynamic_axes(inputs: Mapping[str, MLOperandDescriptor]) -> Iterator[tuple[str, int, SymbolicSize]]:
    for name, descriptor in inputs.items():
        dimensions: tuple[object, ...] = descriptor.shape
        for axis, size in enumerate(dimensions):
            if type(size) is SymbolicSize:
                yield name, axis, size


@attrs.frozen(eq=False)
class SizedGraph:
    """A graph when all sizes are known.

    Attributes:
        graph: it.
        nodes: what stands in it for each node of the graph that it was made of.
    """

    graph: Graph
    nodes: Mapping[Node, Node]


@attrs.frozen(eq=False)
class DynamicGraph:
    """A graph with named dimensions.

    Attributes:
        graph: it, with sizes in its shapes.
        names: of its dimensions.
        drawing: what had to be decided when it was drawn.
        covers: whether its shapes are right for some sizes: all that decide it alike.
    """

    graph: Graph
    names: DimensionPlaces
    drawing: Tracing
    covers: Callable[[Sizes], bool]

    @classmethod
    def of(cls, graph: Graph, drawing: Tracing) -> Self:
        """Return a graph that was drawn while ``drawing`` was in force."""
        inputs = {name: value.descriptor for name, value in graph.inputs.items()}
        names = DimensionPlaces.of(inputs)
        known = {key: answer for key, answer in drawing.answers.items() if answer.expression.names <= set(names.bounds)}
        kept = Tracing(names.largest, answers=known)
        return cls(graph, names, kept, coverage(kept))

    def bounded(self, largest: Mapping[str, int]) -> DynamicGraph:
        """Return the same graph for sizes up to others.

        Args:
            largest: the new largest sizes; none is larger than before.

        Raises:
            Refused: it is none where all names have their largest size.
        """
        bounds = {name: (low, min(largest.get(name, high), high)) for name, (low, high) in self.names.bounds.items()}
        sizes: dict[str, Any] = {
            name: named_size(name, low, high) if low < high else low for name, (low, high) in bounds.items()
        }
        with Tracing({name: high for name, (_, high) in bounds.items()}).active() as tracing:
            graph = self.at(sizes, has_rules=True).graph
        return DynamicGraph.of(graph, tracing)

    def at(self, sizes: Sizes, *, has_rules: bool | None = None) -> SizedGraph:
        """Return the graph when the names have these sizes.

        Args:
            sizes: of the names.
            has_rules: whether shapes are inferred anew; None for where they are not right as they are.

        Raises:
            Refused: it is none with these; the text names operator and label.
        """
        has_rules = not self.covers(sizes) if has_rules is None else has_rules
        inputs = {name: Input(at_sizes(value.descriptor, sizes), name) for name, value in self.graph.inputs.items()}
        values: dict[Value, Value] = {self.graph.inputs[name]: value for name, value in inputs.items()}
        nodes: dict[Node, Node] = {}
        for node in self.graph.nodes:
            sized = sized_node(node, sizes, values)
            if has_rules and is_dynamic_node(node):
                sized = attrs.evolve(sized, outputs=inferred(sized))
            values.update(zip(node.results, sized.results, strict=True))
            nodes[node] = sized
        outputs = {name: values.get(value, value) for name, value in self.graph.outputs.items()}
        return SizedGraph(Graph(inputs, outputs, tuple(nodes.values())), nodes)

    def output_descriptors(self, sizes: Sizes) -> dict[str, MLOperandDescriptor]:
        """Return the descriptor of each output; raises ``Refused`` as :meth:`at`."""
        outputs = self.graph.outputs if self.covers(sizes) else self.at(sizes).graph.outputs
        return {name: at_sizes(value.descriptor, sizes) for name, value in outputs.items()}


def sized_node(node: Node, sizes: Sizes, values: Mapping[Value, Value]) -> Node:
    """Return a node when the names have these sizes.

    Args:
        node: the node.
        sizes: of the names.
        values: what stands for its operands; where there is nothing, a value of the right shape does.
    """

    def operand(value: Value) -> Value:
        found = values.get(value)
        if found is not None:
            return found
        return Value(at_sizes(value.descriptor, sizes)) if has_size(value.descriptor.shape) else value

    operands = of_operands(node.operands, operand)
    options = {name: values_of(value, sizes) for name, value in node.options.items()}
    outputs = tuple(at_sizes(descriptor, sizes) for descriptor in node.outputs)
    return Node(node.operator, operands, options, outputs, node.label, node.drawn)


def inferred(node: Node) -> tuple[MLOperandDescriptor, ...]:
    """Infer a node's outputs by its operator's shape rule; all sizes are known."""
    handles = of_operands(node.operands, lambda value: MLOperand._create(value.descriptor))
    values = {name: handles.get(name, node.options.get(name)) for name in node.operator.parameters if name != "label"}
    try:
        outputs = tuple(node.operator.infer(Arguments(values, handles, node.label)))
    except Refused as refused:
        raise Refused(f"{node.operator.name}(){in_brackets(node.label)}: {refused}") from None
    for descriptor in outputs:
        problem = check_dimensions(descriptor, max_rank=MAX_RANK, max_byte_length=MAX_DIMENSION)
        if problem is not None:
            raise Refused(f"{node.operator.name}(){in_brackets(node.label)}: {problem}")
    return outputs


def with_constants(graph: Graph, replace: Callable[[Constant], Constant]) -> Graph:
    """Return the same graph with other constants of the same shapes."""
    values: dict[Value, Value] = dict(zip(graph.inputs.values(), graph.inputs.values(), strict=True))
    nodes = []

    def operand(value: Value) -> Value:
        if isinstance(value, Constant) and value not in values:
            values[value] = replace(value)
        return values[value]

    for node in graph.nodes:
        other = attrs.evolve(node, operands=of_operands(node.operands, operand))
        values.update(zip(node.results, other.results, strict=True))
        nodes.append(other)
    return Graph(graph.inputs, {name: operand(value) for name, value in graph.outputs.items()}, tuple(nodes))


def without_data(graph: Graph) -> Graph:
    """Return the same graph with constants without bytes, which is enough to infer shapes."""
    return with_constants(graph, lambda constant: Constant(constant.descriptor, None))
