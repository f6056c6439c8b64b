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
        numbers: dict[Value, int] = {}
        values: list[DrawnValue] = []

        def number(value: Value) -> int:
            if value not in numbers:
                numbers[value] = len(values)
                values.append(_drawn(value))
            return numbers[value]

        inputs = tuple(map(number, graph.inputs.values()))
        operators = []
        for index, node in enumerate(graph.nodes):
            operands: list[tuple[str, int]] = []
            for name, operand in node.operands.items():
                if isinstance(operand, tuple):
                    operands += [(name, number(item)) for item in operand]
                else:
                    known = numbers.get(operand)
                    operands.append((name, number(operand) if known is None else known))
            first = len(values)
            for result in node.results:
                numbers[result] = len(values)
                values.append(DrawnValue(result.descriptor, "result", "", index, result.index))
            place = node.drawn[0] if node.drawn else -1
            results = tuple(range(first, len(values)))
            operators.append(DrawnOperator(node.operator, node.label, place, tuple(operands), node.options, results))
        outputs = tuple((name, number(value)) for name, value in graph.outputs.items())
        return cls(tuple(values), tuple(operators), inputs, outputs)


def _drawn(value: Value) -> DrawnValue:
    if isinstance(value, Input):
        return DrawnValue(value.descriptor, "input", value.name)
    is_number = isinstance(value, Constant) and isinstance(value.data, np.ndarray) and value.data.size == 1
    number = f"{value.data.reshape(-1)[0].item():.6g}" if is_number else ""  # type: ignore[attr-defined]
    return DrawnValue(value.descriptor, "constant", number)
