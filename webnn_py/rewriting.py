"""Graph rewriting: other nodes in place of some, built below the script's layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDataType, MLOperandDescriptor
from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.operators.casting import cast_number
from webnn_py.operators.composites import COMPOSITES
from webnn_py.operators.declaration import Operator
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.registry import OPERATORS


class RewriteBuilder:
    """Looks like a builder to ``operators.decompositions``; its operands stand for values of the graph.

    Args:
        label: of every node that is built without one.
        drawn: the operators in whose place all nodes are built.
    """

    def __init__(self, label: str = "", drawn: tuple[int, ...] = ()) -> None:
        self._label = label
        self._drawn = drawn
        self._values: dict[MLOperand, Value] = {}

    def operand(self, value: Value) -> MLOperand:
        """An operand that stands for a value."""
        operand = MLOperand._create(value.descriptor)
        self._values[operand] = value
        return operand

    def value(self, operand: MLOperand) -> Value:
        """The value that an operand stands for."""
        return self._values[operand]

    def constant(
        self, value: float | bytes, *, data_type: MLOperandDataType, shape: Sequence[int] | None = None
    ) -> MLOperand:
        """A scalar constant, or the bytes of one of a shape."""
        if isinstance(value, bytes):
            data = np.frombuffer(value, data_type).reshape(shape or ())
        else:
            data = np.array(cast_number(value, data_type), data_type)
        return self.operand(Constant(MLOperandDescriptor(data_type, data.shape), data))

    def draw(self, node: Node) -> Sequence[Value]:
        """The values of a node's outputs."""
        return node.results

    def __getattr__(self, name: str) -> Any:
        operator = OPERATORS.get(name)
        if operator is None:
            raise AttributeError(name)

        def build(*args: object, **kwargs: object) -> MLOperand | list[MLOperand]:
            arguments = operator.bind(args, kwargs)
            outputs = tuple(operator.infer(arguments))
            values: dict[str, Value | tuple[Value, ...]] = {
                parameter: tuple(map(self.value, operand)) if isinstance(operand, tuple) else self.value(operand)
                for parameter, operand in arguments.operands.items()
            }
            node = Node(operator, values, arguments.options(), outputs, arguments.label or self._label, self._drawn)
            operands = [self.operand(value) for value in self.draw(node)]
            return operands if operator.returns_sequence else operands[0]

        return build


Replace = Callable[[Node, Node], Mapping[Value, Value] | None]
"""(a node, the same with operands that have taken the place of its own) → what takes the place of which values of the
graph, of the node's or of later ones'; None where the node stays."""


@attrs.frozen
class RewriteRule:
    """What replaces nodes of some operators.

    Attributes:
        replace: replaces them.
        is_for: whether it may replace a node of an operator; of others it is not asked.
    """

    replace: Replace
    is_for: Callable[[Operator[..., Any]], bool]


def of_operators(replace: Replace, *operators: Operator[..., Any]) -> RewriteRule:
    """The rule for nodes of these operators."""
    return RewriteRule(replace, operators.__contains__)


def readers_of(graph: Graph) -> Mapping[Value, list[Node | None]]:
    """What reads each value, as often as it does; None for an output of the graph."""
    readers: dict[Value, list[Node | None]] = defaultdict(list)
    for value in graph.outputs.values():
        readers[value].append(None)
    for node in graph.nodes:
        for value in node.inputs:
            readers[value].append(node)
    return readers


def first_of(*rules: RewriteRule | None) -> Replace | None:
    """What the first of some rules puts in the place of a node that puts anything there; None where all are None."""
    there = [rule for rule in rules if rule is not None]
    by_operator: dict[Operator[..., Any], list[Replace]] = {}

    def replace(node: Node, current: Node) -> Mapping[Value, Value] | None:
        chosen = by_operator.get(node.operator)
        if chosen is None:
            chosen = by_operator[node.operator] = [rule.replace for rule in there if rule.is_for(node.operator)]
        for replace_it in chosen:
            if (built := replace_it(node, current)) is not None:
                return built
        return None

    return replace if there else None


def rewrite(graph: Graph, replace: Replace) -> Graph:
    """The same graph with other nodes in place of some.

    Args:
        graph: what to rewrite.
        replace: says what takes their place.
    """
    replaced: dict[Value, Value] = {}
    is_changed = False
    stay = replaced.keys().isdisjoint  # of what there is by then
    for node in graph.nodes:
        current = node if stay(node.inputs) else _with_operands(node, replaced)
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


def spelled_out(graph: Graph) -> Graph:
    """The same graph with operators of the specification in place of composites."""
    if not any(node.operator.name in COMPOSITES for node in graph.nodes):
        return graph
    return rewrite(graph, lambda node, current: drawn_out(node, current) if node.operator.name in COMPOSITES else None)


def drawn_out(node: Node, current: Node) -> Mapping[Value, Value]:
    """The decomposition of a composite, which keeps its label and its place, as ``Replace`` says."""
    composite = COMPOSITES[node.operator.name]
    builder = RewriteBuilder(current.label, current.drawn)
    operands = {
        name: _elements(value) if name in composite.tables else builder.operand(value)
        for name, value in current.operands.items()
        if isinstance(value, Value)
    }
    drawn: Any = composite.decomposition(builder, **{**current.options, **operands})
    return dict(zip(node.results, map(builder.value, drawn), strict=True))


def _elements(value: Value) -> object:
    """The array of a constant that an importer drew."""
    assert isinstance(value, Constant)  # noqa: S101 - composites say which are
    return value.data


def _with_operands(node: Node, replaced: dict[Value, Value]) -> Node:
    operands: dict[str, Value | tuple[Value, ...]] = {}
    for name, value in node.operands.items():  # a loop, as a comprehension that holds ``replaced`` takes twice as long
        if isinstance(value, tuple):
            operands[name] = tuple([replaced.get(item, item) for item in value])
        else:
            operands[name] = replaced.get(value, value)
    return Node(node.operator, operands, node.options, node.outputs, node.label, node.drawn)
