"""Descriptions of graphs for drawing: small records without constants' bytes, so that they cost nothing to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal, Self

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Constant, Graph, Input, Node, Value
from webnn_py.message_text import shown
from webnn_py.operators.declaration import Operator

LONGEST_OPTION: Final = 48


@attrs.frozen
class DrawnValue:
    """An edge.

    Attributes:
        descriptor: data type and shape.
        kind: where it comes from.
        name: of an input; of a constant of one element on the host, its number.
        source: of a result, the index of its operator.
        port: of a result, which output of the operator it is.
    """

    descriptor: MLOperandDescriptor
    kind: Literal["input", "constant", "result"]
    name: str = ""
    source: int = -1
    port: int = 0


@attrs.frozen(eq=False)
class DrawnOperator:
    """An operator.

    Attributes:
        operator: its declaration.
        label: what the script calls it, or "".
        place: its place in the order of drawing, by which a device's plan names it.
        operands: the parameter and the index of the value, sequences flattened.
        options: every argument that is no operand.
        results: the indices of what comes out.
    """

    operator: Operator[..., Any]
    label: str
    place: int
    operands: tuple[tuple[str, int], ...]
    options: Mapping[str, Any]
    results: tuple[int, ...]

    def has_default(self, name: str) -> bool:
        """Return whether an option is absent or has its default."""
        value, default = self.options[name], self.operator.parameters[name].default
        return value is None or value == default or (isinstance(value, tuple) and list(value) == default)

    def options_given(self) -> Iterator[str]:
        """Yield the options that are not the defaults, as text."""
        for name, value in self.options.items():
            if self.has_default(name):
                continue
            worded = "yes" if value is True else "no" if value is False else value
            text = shown(list(worded)) if isinstance(worded, tuple) else str(worded)
            yield f"{name} {text if len(text) <= LONGEST_OPTION else f'{text[: LONGEST_OPTION - 3]}...'}"


@attrs.frozen(eq=False)
class GraphDescription:
    """A whole graph.

    Attributes:
        values: all edges; others name them by their index.
        operators: in an order in which they can run.
        inputs: the indices of the graph's inputs.
        outputs: the graph's outputs: name and index.
    """

    values: tuple[DrawnValue, ...]
    operators: tuple[DrawnOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Describe a graph."""
        return cls.made_of(Sketch.of(graph))

    @classmethod
    def made_of(cls, sketch: Sketch) -> Self:
        """Describe a graph as it was sketched."""
        values: list[DrawnValue] = []
        numbers: dict[int, int] = {}

        def number(mark: int) -> int:
            if mark not in numbers:
                numbers[mark] = len(values)
                values.append(_drawn(*sketch.leaves[mark]))
            return numbers[mark]

        inputs = tuple(map(number, sketch.inputs))
        operators = []
        read, made = iter(sketch.operands), iter(sketch.results)
        for index, (operator, label, drawn, names, options, outputs) in enumerate(
            zip(*[iter(sketch.nodes)] * 6, strict=True)
        ):
            operands = tuple([(name, number(next(read))) for name in names])
            first = len(values)
            for port, descriptor in enumerate(outputs):
                numbers[next(made)] = len(values)
                values.append(DrawnValue(descriptor, "result", "", index, port))
            place = drawn[0] if drawn else -1
            results = tuple(range(first, len(values)))
            shown_options = {name: _without_graph(value) for name, value in options.items()}
            operators.append(DrawnOperator(operator, label, place, operands, shown_options, results))
        outputs_of_graph = tuple((name, number(mark)) for name, mark in sketch.outputs)
        return cls(tuple(values), tuple(operators), inputs, outputs_of_graph)

    def is_like(self, other: Self) -> bool:
        """Return whether another graph has the same operators with the same operands, inputs and outputs."""
        return (self.values, self.inputs, self.outputs) == (other.values, other.inputs, other.outputs) and [
            (operator.operator, operator.operands) for operator in self.operators
        ] == [(operator.operator, operator.operands) for operator in other.operators]

    def constants_of(self, graph: Graph) -> dict[int, np.ndarray[Any, Any]]:
        """Return the elements of the constants on the host, by the index of the value."""
        return {
            index: value.data
            for operator, node in zip(self.operators, graph.nodes, strict=True)
            for (_, index), value in zip(operator.operands, node.inputs, strict=True)
            if isinstance(value, Constant) and isinstance(value.data, np.ndarray)
        }


Leaf = tuple[MLOperandDescriptor, str | float | None]
"""The descriptor of a leaf, and the name of an input, or the number of a constant scalar."""


@attrs.frozen(eq=False)
class Sketch:
    """The raw material of a description: every build keeps a sketch, but few descriptions are requested.

    Values are identified by numbers that are unique while the graph exists and need no lookup: their ``id()``.

    Attributes:
        leaves: inputs and constants, by their numbers.
        nodes: for each node its operator, label, places of drawing, parameters of operands, options and outputs, in one
            flat list: the garbage collector would traverse an object for each repeatedly.
        operands: the numbers of all their operands, one operator's after the other's.
        results: those of all their results, in the same way.
        inputs: the numbers of the graph's inputs.
        outputs: the graph's outputs: name and number.
    """

    leaves: Mapping[int, Leaf]
    nodes: list[Any]
    operands: list[int]
    results: list[int]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Sketch a graph."""
        nodes: list[Any] = []
        operands: list[int] = []
        results: list[int] = []
        for node in graph.nodes:  # once: to have each of them from memory takes the most of the time
            names = _parameters(node)
            nodes += (node.operator, node.label, node.drawn, names, node.options, node.outputs)
            operands += map(id, node.inputs)
            results += map(id, node.results)
        given = [value for value in graph.outputs.values() if isinstance(value, Input)]
        return cls(
            {id(value): _leaf(value) for value in (*graph.inputs.values(), *graph.constants, *given)},
            nodes,
            operands,
            results,
            tuple(map(id, graph.inputs.values())),
            tuple((name, id(value)) for name, value in graph.outputs.items()),
        )


def _without_graph(option: object) -> object:
    return f"{len(option.nodes)} operators" if isinstance(option, Graph) else option


def _parameters(node: Node) -> tuple[str, ...]:
    """Return the parameter of each operand; of a sequence of them for each."""
    names = node.operator.operand_names
    if len(names) == len(node.inputs):  # as of nearly all; to look at the operands takes longer
        return names
    of_each = ((name,) * len(item) if isinstance(item, tuple) else (name,) for name, item in node.operands.items())
    return tuple(chain.from_iterable(of_each))


def _leaf(value: Value) -> Leaf:
    if isinstance(value, Input):
        return value.descriptor, value.name
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray) and value.data.size == 1:
        return value.descriptor, value.data.item()
    return value.descriptor, None


def _drawn(descriptor: MLOperandDescriptor, known: str | float | None) -> DrawnValue:
    if isinstance(known, str):
        return DrawnValue(descriptor, "input", known)
    return DrawnValue(descriptor, "constant", "" if known is None else f"{known:.6g}")
