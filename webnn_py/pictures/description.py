"""Descriptions of graphs for drawing: records of operators and values, without the bytes of constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal, Self

import attrs
import numpy as np

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.message_text import shown
from webnn_py.core.operators.declaration import Operator

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
    def from_graph(cls, graph: Graph) -> Self:
        """Describe a graph."""
        values: list[DrawnValue] = []
        numbers: dict[Value, int] = {}

        def number(value: Value) -> int:
            if value not in numbers:
                numbers[value] = len(values)
                values.append(_leaf(value))
            return numbers[value]

        inputs = tuple(map(number, graph.inputs.values()))
        operators = []
        for index, node in enumerate(graph.nodes):
            operands = tuple(zip(_parameters(node), map(number, node.inputs), strict=True))
            first = len(values)
            for port, result in enumerate(node.results):
                numbers[result] = len(values)
                values.append(DrawnValue(result.descriptor, "result", "", index, port))
            place = node.drawn[0] if node.drawn else -1
            results = tuple(range(first, len(values)))
            options = {name: _without_graph(value) for name, value in node.options.items()}
            operators.append(DrawnOperator(node.operator, node.label, place, operands, options, results))
        outputs = tuple((name, number(value)) for name, value in graph.outputs.items())
        return cls(tuple(values), tuple(operators), inputs, outputs)

    def constants_of(self, graph: Graph) -> dict[int, np.ndarray[Any, Any]]:
        """Return the elements of the constants on the host, by the index of the value."""
        return {
            index: value.data
            for operator, node in zip(self.operators, graph.nodes, strict=True)
            for (_, index), value in zip(operator.operands, node.inputs, strict=True)
            if isinstance(value, Constant) and isinstance(value.data, np.ndarray)
        }


def _without_graph(option: object) -> object:
    return f"{len(option.nodes)} operators" if isinstance(option, Graph) else option


def _parameters(node: Node) -> tuple[str, ...]:
    """Return the parameter of each operand; of a sequence of them for each."""
    of_each = ((name,) * len(item) if isinstance(item, tuple) else (name,) for name, item in node.operands.items())
    return tuple(chain.from_iterable(of_each))


def _leaf(value: Value) -> DrawnValue:
    if isinstance(value, Input):
        return DrawnValue(value.descriptor, "input", value.name)
    if isinstance(value, Constant) and isinstance(value.data, np.ndarray) and value.data.size == 1:
        return DrawnValue(value.descriptor, "constant", f"{value.data.item():.6g}")
    return DrawnValue(value.descriptor, "constant")
