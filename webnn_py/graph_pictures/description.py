"""What is drawn of a graph: small records that hold no constants' bytes, so that they cost nothing to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, Self

import attrs
import numpy as np

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.graph import Constant, Graph, Input, Value
from webnn_py.operators.declaration import Operator
from webnn_py.wording import shown

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
        operands: the parameter and the index of the value, sequences laid flat.
        options: every argument that is no operand.
        results: the indices of what comes out.
    """

    operator: Operator[..., Any]
    label: str
    place: int
    operands: tuple[tuple[str, int], ...]
    options: Mapping[str, Any]
    results: tuple[int, ...]

    def options_given(self) -> Iterator[str]:
        """The options that are not the defaults, as text."""
        for name, value in self.options.items():
            default = self.operator.parameters[name].default
            if value is None or value == default or (isinstance(value, tuple) and list(value) == default):
                continue
            told = "yes" if value is True else "no" if value is False else value
            text = shown(list(told)) if isinstance(told, tuple) else str(told)
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
        values = {number: _drawn(*leaf) for number, leaf in sketch.leaves.items()}
        operators = []
        for index, (operator, label, drawn, operands, options, outputs, first) in enumerate(sketch.nodes):
            results = tuple(range(first, first + len(outputs)))
            for port, (number, descriptor) in enumerate(zip(results, outputs, strict=True)):
                values[number] = DrawnValue(descriptor, "result", "", index, port)
            place = drawn[0] if drawn else -1
            operators.append(DrawnOperator(operator, label, place, tuple(operands), options, results))
        in_order = tuple(values[number] for number in range(len(values)))
        return cls(in_order, tuple(operators), sketch.inputs, sketch.outputs)


SketchedNode = tuple[
    Operator[..., Any],
    str,
    tuple[int, ...],
    list[tuple[str, int]],
    Mapping[str, Any],
    tuple[MLOperandDescriptor, ...],
    int,
]
"""Operator, label, places of drawing, parameters with their values, options, outputs, and the first output's index."""


Leaf = tuple[MLOperandDescriptor, str | float | None]
"""Of an input its name, of a constant its number if it is one."""


@attrs.frozen(eq=False)
class Sketch:
    """What a description is made of when somebody asks for one: every build keeps a sketch, and few are asked.

    Attributes:
        leaves: inputs and constants, by their indices.
        nodes: the operators.
        inputs: the indices of the graph's inputs.
        outputs: the graph's outputs: name and index.
    """

    leaves: Mapping[int, Leaf]
    nodes: list[SketchedNode]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Sketch a graph."""
        numbers: dict[Value, int] = {}
        leaves: dict[int, Leaf] = {}

        def number(value: Value) -> int:
            if value not in numbers:
                leaves[len(numbers)] = _leaf(value)
                numbers[value] = len(numbers)
            return numbers[value]

        inputs = tuple(map(number, graph.inputs.values()))
        nodes: list[SketchedNode] = []
        for node in graph.nodes:
            operands: list[tuple[str, int]] = []
            for name, operand in node.operands.items():
                for item in operand if isinstance(operand, tuple) else (operand,):
                    index = numbers.get(item)
                    operands.append((name, number(item) if index is None else index))
            first = len(numbers)
            for result in node.results:
                numbers[result] = len(numbers)
            nodes.append((node.operator, node.label, node.drawn, operands, node.options, node.outputs, first))
        return cls(leaves, nodes, inputs, tuple((name, number(value)) for name, value in graph.outputs.items()))


def _leaf(value: Value) -> Leaf:
    if isinstance(value, Input):
        return value.descriptor, value.name
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray) and value.data.size == 1:
        return value.descriptor, value.data.item()
    return value.descriptor, None


def _drawn(descriptor: MLOperandDescriptor, told: str | float | None) -> DrawnValue:
    if isinstance(told, str):
        return DrawnValue(descriptor, "input", told)
    return DrawnValue(descriptor, "constant", "" if told is None else f"{told:.6g}")
