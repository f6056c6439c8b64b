"""The graph: what the builder makes and a device reads. Frozen, without arrays' values or handles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import attrs

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.operators.declaration import Operator
from webnn_py.wording import in_brackets

_MOST_INPUTS: Final = 16
"""Of how many inputs a node's text tells."""


@attrs.frozen(eq=False)
class Value:
    """An edge of the graph: the data of one operand."""

    descriptor: MLOperandDescriptor


@attrs.frozen(eq=False)
class Input(Value):
    """A graph input: its data come with each dispatch."""

    name: str


@attrs.frozen(eq=False)
class Constant(Value):
    """A constant.

    Attributes:
        data: the host's copy of its bytes, or the device's storage of a constant buffer.
        key: a digest of the bytes; constants of one key, data type and shape lie on a device once.
    """

    data: object
    key: bytes | None = None


@attrs.frozen(eq=False)
class Output(Value):
    """The ``index``-th output of a node."""

    node: Node
    index: int


@attrs.frozen(eq=False)
class Node:
    """One operator at work.

    Attributes:
        operator: the declaration.
        operands: the operands that are there, by parameter; a tuple for a sequence of operands.
        options: every other argument, by parameter; absent ones as None.
        outputs: the descriptors of the outputs.
        label: the label that the script gave, or "".
        drawn: the places, in the order of drawing, of the operators that it computes; more than one where a device has
            put several together, and the same for all that it puts in an operator's place.
        results: the values that come out, one for each output.
    """

    operator: Operator[..., Any]
    operands: Mapping[str, Value | tuple[Value, ...]]
    options: Mapping[str, Any]
    outputs: tuple[MLOperandDescriptor, ...]
    label: str = ""
    drawn: tuple[int, ...] = ()
    results: tuple[Output, ...] = attrs.field(init=False)

    @results.default
    def _results(self) -> tuple[Output, ...]:
        return tuple(Output(descriptor, self, index) for index, descriptor in enumerate(self.outputs))

    @property
    def inputs(self) -> Iterator[Value]:
        """The operands in declaration order, sequences laid flat."""
        for operand in self.operands.values():
            if isinstance(operand, tuple):
                yield from operand
            else:
                yield operand

    def operand(self, name: str) -> MLOperandDescriptor:
        """The descriptor of the operand called ``name``, which is there and no sequence."""
        value = self.operands[name]
        assert isinstance(value, Value)  # noqa: S101 - for type checkers
        return value.descriptor

    def __str__(self) -> str:
        inputs = tuple(islice(self.inputs, _MOST_INPUTS + 1))
        types = ", ".join(str(value.descriptor) for value in inputs[:_MOST_INPUTS])
        if len(inputs) > _MOST_INPUTS:
            types = f"{types}, ..."
        label = in_brackets(self.label)
        return f"{self.operator.spec_name}{label}({types})"


@attrs.frozen(eq=False)
class Graph:
    """A whole graph: nodes in an order in which they can run, and only those that the outputs need."""

    inputs: Mapping[str, Input]
    outputs: Mapping[str, Value]
    nodes: tuple[Node, ...]

    @property
    def descriptors(self) -> Iterator[MLOperandDescriptor]:
        """Those of all that nodes read and give."""
        for node in self.nodes:
            yield from (value.descriptor for value in node.inputs)
            yield from node.outputs

    @classmethod
    def reaching(cls, outputs: Mapping[str, Value]) -> Graph:
        """Walk back from ``outputs`` and keep what they need."""
        inputs: dict[str, Input] = {}
        nodes: dict[Node, None] = {}
        visited: set[Value] = set()
        stack: list[tuple[Value, bool]] = [(value, False) for value in reversed(list(outputs.values()))]
        while stack:
            value, operands_done = stack.pop()
            if operands_done:
                assert isinstance(value, Output)  # noqa: S101 - for type checkers
                nodes[value.node] = None
                continue
            if value in visited:
                continue
            visited.add(value)
            if isinstance(value, Input):
                inputs[value.name] = value
            elif isinstance(value, Output):
                stack.append((value, True))
                stack.extend((operand, False) for operand in reversed(list(value.node.inputs)))
        return cls(inputs, dict(outputs), tuple(nodes))
